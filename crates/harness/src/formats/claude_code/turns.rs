//! Lines gathered into turns, so that what ran in parallel is one node of the tree and only a real
//! change of course is a branch.
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::clones;
use super::entry::{Body, UserKind};
use super::link::Links;
use super::load::SessionLog;
use crate::core::threads::{self, Branch};

/// A node of the tree of a conversation: a call with its results, a compaction, or a line of its
/// own.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) kind: TurnKind,
    pub(super) conversation: usize,
    /// Its first line.
    pub(super) head: usize,
    pub(super) parent: Option<usize>,
    pub(super) children: Vec<usize>,
    /// What it brings into the contexts behind it, besides the output of a call.
    pub(super) items: Vec<Item>,
}

#[derive(Debug)]
pub(super) enum TurnKind {
    /// A call: all lines of one message.
    Call(Vec<usize>),
    /// A full compaction, by its index.
    Compaction(usize),
    /// A line that is no call.
    Line,
    /// Merged into the turn it hung on.
    Merged,
}

/// A line that a turn brings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) entry: usize,
    /// It stands behind the turn wherever it is written; any other line is seen only by calls that
    /// begin behind it.
    pub(super) always: bool,
}

/// The turns of all conversations.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) turns: Vec<Turn>,
    /// The turn of an entry that has one.
    pub(super) of: Vec<Option<usize>>,
    /// Calls that another conversation has, each with the turn that it repeats.
    pub(super) clones: FxHashMap<usize, usize>,
    by_message: FxHashMap<(usize, Arc<str>), usize>,
    /// The turns that make a call of an id, in their order: some providers count ids anew.
    by_call: FxHashMap<(usize, String), Vec<usize>>,
}

impl Turns {
    pub(super) fn new(session: &mut SessionLog, links: &Links) -> Self {
        let mut order: Vec<usize> = (0..session.entries.len()).collect();
        order.sort_by_key(|&entry| links.place[entry]);
        let mut turns = Self {
            turns: Vec::new(),
            of: vec![None; order.len()],
            clones: FxHashMap::default(),
            by_message: FxHashMap::default(),
            by_call: FxHashMap::default(),
        };
        turns.gather_calls(session, links, &order);
        turns.clones = clones::find(session, links, &turns.turns);
        turns.gather_compactions(links);
        turns.gather_lines(session, links, &order);
        turns.pass_on(links);
        turns.connect(session, links);
        turns.merge(session, links);
        turns
    }

    fn add(&mut self, kind: TurnKind, conversation: usize, head: usize) -> usize {
        self.of[head] = Some(self.turns.len());
        self.turns.push(Turn {
            kind,
            conversation,
            head,
            parent: None,
            children: Vec::new(),
            items: Vec::new(),
        });
        self.turns.len() - 1
    }

    fn gather_calls(&mut self, session: &mut SessionLog, links: &Links, order: &[usize]) {
        let (mut repeated, mut anew) = (Vec::new(), Vec::new());
        for &entry in order {
            let Some(assistant) = session.entries[entry].assistant() else { continue };
            let conversation = links.conversation[entry];
            let key = (conversation, Arc::clone(&assistant.message));
            let known = self.by_message.get(&key).copied();
            let turn = match known.filter(|&turn| !self.is_anew(session, links, entry, turn)) {
                Some(turn) => turn,
                None => {
                    anew.extend(known.map(|_| entry));
                    let turn = self.add(TurnKind::Call(Vec::new()), conversation, entry);
                    self.by_message.insert(key, turn);
                    turn
                }
            };
            self.of[entry] = Some(turn);
            if let TurnKind::Call(lines) = &mut self.turns[turn].kind {
                let same = |&&line: &&usize| {
                    session.entries[line]
                        .assistant()
                        .is_some_and(|other| other.said == assistant.said)
                };
                match lines.iter().find(same).filter(|_| !assistant.said.is_empty()) {
                    Some(&first) => repeated.push((entry, first)),
                    None => lines.push(entry),
                }
            }
            for call in assistant.said.iter().filter_map(|said| said.call.clone()) {
                let callers = self.by_call.entry((conversation, call)).or_default();
                if !callers.contains(&turn) {
                    callers.push(turn);
                }
            }
        }
        for entry in anew {
            let message =
                "the message stands before a prompt as well; what follows the prompt is taken as a call of its own".into();
            session.warn(entry, "message.id", "repeated-message-id", message);
        }
        for (entry, first) in repeated {
            let message = format!(
                "the line says again what line {} of the same message says",
                session.entries[first].line
            );
            session.warn(entry, "message.content", "repeated-part", message);
        }
    }

    /// Whether a line is a call of its own although one of the same message stands above: behind
    /// another prompt than that one, or behind the same words with something else to say; else the
    /// history was written again.
    fn is_anew(&self, session: &SessionLog, links: &Links, line: usize, call: usize) -> bool {
        let start = links.place[self.turns[call].head];
        let above = |line: usize| std::iter::successors(links.parent[line], |&at| links.parent[at]);
        let asks =
            |&at: &usize| session.entries[at].user().filter(|user| user.kind == UserKind::Prompt);
        let between =
            above(line).take_while(|&at| self.of[at] != Some(call) && links.place[at] > start);
        let Some(prompt) = between.filter_map(|at| asks(&at)).next() else { return false };
        let TurnKind::Call(lines) = &self.turns[call].kind else { return true };
        let said = |line: usize| {
            session.entries[line].assistant().map_or(&[][..], |call| call.said.as_slice())
        };
        let known =
            said(line).iter().all(|part| lines.iter().any(|&line| said(line).contains(part)));
        let before = above(self.turns[call].head).find_map(|at| asks(&at));
        !(known && before.is_some_and(|before| before.texts == prompt.texts))
    }

    fn gather_compactions(&mut self, links: &Links) {
        for (index, compaction) in links.compactions.iter().enumerate() {
            let boundary = compaction.boundary;
            let turn =
                self.add(TurnKind::Compaction(index), links.conversation[boundary], boundary);
            for &summary in &compaction.summary {
                self.of[summary] = Some(turn);
            }
        }
    }

    fn gather_lines(&mut self, session: &mut SessionLog, links: &Links, order: &[usize]) {
        let mut answered = FxHashSet::default();
        for &entry in order {
            let conversation = links.conversation[entry];
            let mut caller = None;
            let turn = match &session.entries[entry].body {
                _ if self.of[entry].is_some() => continue,
                Body::User(user) => {
                    let place = links.place[entry];
                    let mut answers = user.answers.iter();
                    caller = answers.find_map(|answer| {
                        self.caller(links, conversation, &answer.call, place, &answered)
                    });
                    caller.unwrap_or_else(|| self.add(TurnKind::Line, conversation, entry))
                }
                Body::Clearing(_) | Body::Notice(_) | Body::Prompt(_) => {
                    self.add(TurnKind::Line, conversation, entry)
                }
                Body::Link | Body::Assistant(_) | Body::Boundary(_) => continue,
            };
            self.of[entry] = Some(turn);
            self.turns[turn].items.push(Item { entry, always: true });
            drop_repeated(session, entry, (conversation, caller), &mut answered);
        }
    }

    /// The turn whose call a result at `place` answers: the newest one above that is open; where
    /// none is, the first one behind, as a result may be written late, else the newest of all.
    fn caller(
        &self,
        links: &Links,
        conversation: usize,
        call: &str,
        place: u64,
        answered: &FxHashSet<(Caller, String)>,
    ) -> Option<usize> {
        let callers = self.by_call.get(&(conversation, call.to_owned()))?;
        let is_open =
            |&turn: &usize| !answered.contains(&((conversation, Some(turn)), call.to_owned()));
        let open = || callers.iter().copied().filter(is_open);
        let above = |&turn: &usize| links.place[self.turns[turn].head] < place;
        open().rev().find(above).or_else(|| open().next()).or(callers.last().copied())
    }

    /// Gives lines that bring nothing the turn of their parent.
    fn pass_on(&mut self, links: &Links) {
        let mut done: Vec<bool> = self.of.iter().map(Option::is_some).collect();
        let mut path = Vec::new();
        for start in 0..self.of.len() {
            let mut at = start;
            while !done[at] {
                done[at] = true;
                path.push(at);
                match links.parent[at] {
                    Some(parent) => at = parent,
                    None => break,
                }
            }
            let turn = self.of[at];
            for entry in path.drain(..) {
                self.of[entry] = turn;
            }
        }
    }

    fn connect(&mut self, session: &mut SessionLog, links: &Links) {
        for turn in 0..self.turns.len() {
            let mut above = links.parent[self.turns[turn].head];
            let mut steps = 0;
            while let Some(entry) =
                above.filter(|&entry| self.of[entry] == Some(turn) && steps < links.parent.len())
            {
                above = links.parent[entry];
                steps += 1;
            }
            self.turns[turn].parent =
                above.and_then(|entry| self.of[entry]).filter(|&parent| parent != turn);
        }
        self.cut_cycles(session);
        let mut by_start: Vec<usize> = (0..self.turns.len()).collect();
        by_start.sort_by_key(|&turn| links.place[self.turns[turn].head]);
        for turn in by_start {
            if let Some(parent) = self.turns[turn].parent {
                self.turns[parent].children.push(turn);
            }
        }
    }

    fn cut_cycles(&mut self, session: &mut SessionLog) {
        let mut seen = vec![0_usize; self.turns.len()];
        for start in 0..self.turns.len() {
            let (mut at, mark) = (start, start + 1);
            while seen[at] == 0 {
                seen[at] = mark;
                let Some(parent) = self.turns[at].parent else { break };
                if seen[parent] == mark {
                    self.turns[at].parent = None;
                    let message = "the call follows what follows it; it is taken as a start".into();
                    session.fault(self.turns[at].head, "parentUuid", "parent-cycle", message);
                    break;
                }
                at = parent;
            }
        }
    }

    /// Merges what hangs on a turn and leads nowhere into that turn.
    fn merge(&mut self, session: &mut SessionLog, links: &Links) {
        let order = self.parents_first();
        let mut leads: Vec<bool> =
            (0..self.turns.len()).map(|turn| self.opens(session, links, turn)).collect();
        for &turn in order.iter().rev() {
            if let Some(parent) = self.turns[turn].parent.filter(|_| leads[turn]) {
                leads[parent] = true;
            }
        }
        for &turn in order.iter().rev() {
            let Some(parent) = self.turns[turn].parent.filter(|_| !leads[turn]) else { continue };
            let items = std::mem::take(&mut self.turns[turn].items);
            self.turns[parent]
                .items
                .extend(items.into_iter().map(|item| Item { always: false, ..item }));
            self.turns[turn].kind = TurnKind::Merged;
        }
        for turn in 0..self.turns.len() {
            let children = std::mem::take(&mut self.turns[turn].children);
            self.turns[turn].children =
                children.into_iter().filter(|&child| leads[child]).collect();
        }
        self.report_unanswered(session);
    }

    /// All turns, each behind its parent.
    pub(super) fn parents_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..self.turns.len()).filter(|&turn| self.turns[turn].parent.is_none()).collect();
        let mut at = 0;
        while at < order.len() {
            order.extend_from_slice(&self.turns[order[at]].children);
            at += 1;
        }
        order
    }

    /// The name of the thread of every turn.
    pub(super) fn threads(&self, links: &Links) -> Vec<Arc<str>> {
        let branch = |turn: &Turn| Branch {
            parent: turn.parent,
            conversation: turn.conversation,
            place: links.place[turn.head],
            is_call: matches!(turn.kind, TurnKind::Call(_)),
        };
        let branches: Vec<Branch> = self.turns.iter().map(branch).collect();
        let conversations: Vec<&str> =
            links.conversations.iter().map(|conversation| conversation.name.as_str()).collect();
        threads::names(&branches, &self.parents_first(), &conversations)
    }

    /// Whether a turn opens a branch where another one goes on from the same place.
    fn opens(&self, session: &SessionLog, links: &Links, turn: usize) -> bool {
        let Turn { kind, head, .. } = &self.turns[turn];
        let TurnKind::Line = kind else { return true };
        match session.entries[*head].user().map(|user| user.kind) {
            Some(UserKind::Prompt | UserKind::Summary) => true,
            Some(UserKind::Command) => {
                let mut above = links.parent[*head];
                while let Some(link) =
                    above.filter(|&above| matches!(session.entries[above].body, Body::Link))
                {
                    above = links.parent[link];
                }
                above.is_none_or(|above| {
                    session.entries[above].user().is_none_or(|user| user.answers.is_empty())
                })
            }
            Some(UserKind::Hanging | UserKind::Attachment) | None => false,
        }
    }

    fn report_unanswered(&self, session: &mut SessionLog) {
        for turn in &self.turns {
            let TurnKind::Call(lines) = &turn.kind else { continue };
            let goes_on = turn
                .children
                .iter()
                .any(|&child| matches!(self.turns[child].kind, TurnKind::Call(_)));
            if !goes_on {
                continue;
            }
            let answered: FxHashSet<&str> = turn
                .items
                .iter()
                .filter_map(|item| session.entries[item.entry].user())
                .flat_map(|user| user.answers.iter().map(|answer| answer.call.as_str()))
                .collect();
            let open: Vec<(usize, String)> = lines
                .iter()
                .flat_map(|&line| {
                    session.entries[line]
                        .assistant()
                        .into_iter()
                        .flat_map(move |a| a.said.iter().map(move |s| (line, s)))
                })
                .filter_map(|(line, said)| said.call.clone().map(|call| (line, call)))
                .filter(|(_, call)| !answered.contains(call.as_str()))
                .collect();
            for (line, call) in open {
                let message = format!(
                    "call {call} has no result in the file although the conversation went on"
                );
                session.warn(line, "message.content", "missing-result", message);
            }
        }
    }
}

/// Who made a call: a turn of a conversation, where it is known.
type Caller = (usize, Option<usize>);

/// Takes out results of calls that an earlier line has answered.
fn drop_repeated(
    session: &mut SessionLog,
    entry: usize,
    caller: Caller,
    answered: &mut FxHashSet<(Caller, String)>,
) {
    let Body::User(user) = &mut session.entries[entry].body else { return };
    let mut repeated = Vec::new();
    user.answers.retain(|answer| {
        let new = answered.insert((caller, answer.call.clone()));
        if !new {
            repeated.push(answer.call.clone());
        }
        new
    });
    for call in repeated {
        let message = format!("call {call} has a second result; the first is kept");
        session.fault(entry, "message.content", "duplicate-result", message);
    }
}

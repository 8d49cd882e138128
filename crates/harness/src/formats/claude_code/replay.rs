//! The session played again: every turn makes the contexts and generations that the harness made of
//! it.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

use pleach_tree::{ForkReason, GenerationId, Origin, Segment, SegmentId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::entry::UserKind;
use super::head::Head;
use super::link::{BEHIND, Conversation, Links};
use super::load::SessionLog;
use super::summary::Summariser;
use super::transform::Dropped;
use super::turns::{TurnKind, Turns};
use crate::core::ledger::{Held, Ledger};
use crate::core::script::Player;
use crate::core::usage::Counted;

/// What stands behind a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) held: Option<Held>,
    /// What comes behind the context in the next request.
    pub(super) pending: Vec<Pending>,
    /// The system prompt and the tools, where they are recorded.
    pub(super) head: Head,
    /// What requests hold and the model does not see.
    pub(super) dropped: Rc<[Dropped]>,
    /// The model of the last call.
    pub(super) model: Option<Arc<str>>,
    /// The stretch between compactions, whose unrecorded part is taken as constant.
    pub(super) era: usize,
}

/// Something that the next request shows.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) place: u64,
    /// Shown whatever its place.
    pub(super) always: bool,
    pub(super) what: What,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    Output(Rc<[SegmentId]>),
    Line(usize),
}

/// The replay so far.
#[derive(Debug)]
pub(super) struct Replay<'s> {
    pub(super) session: &'s mut SessionLog,
    pub(super) links: &'s Links,
    pub(super) turns: &'s Turns,
    pub(super) summarisers: Vec<Option<Summariser>>,
    pub(super) threads: Vec<Arc<str>>,
    pub(super) counted: Vec<Counted>,
    pub(super) eras: usize,
    pub(super) lines: FxHashMap<usize, Rc<LineSegments>>,
    /// The heads of requests that are written, by their lines.
    pub(super) heads: FxHashMap<usize, Head>,
    pub(super) player: Player,
    /// Segments of lines that a compaction put into a context although they had left it.
    pub(super) brought_back: FxHashSet<SegmentId>,
    /// Segments of a summariser's text that stand in a summary, by compaction.
    pub(super) quoted: FxHashMap<usize, Vec<SegmentId>>,
    pub(super) generations: FxHashMap<usize, GenerationId>,
    after: FxHashMap<usize, State>,
    /// What stands before calls that conversations were forked at.
    pub(super) before: FxHashMap<usize, Option<State>>,
    done: Vec<bool>,
}

/// The segments of a line once they are written.
#[derive(Debug, Default)]
pub(super) struct LineSegments {
    /// Each with the call that it answers.
    pub(super) answers: Vec<(String, SegmentId)>,
    pub(super) rest: Vec<SegmentId>,
}

struct Ready {
    turn: usize,
    state: State,
    fork: Option<ForkReason>,
}

impl<'s> Replay<'s> {
    pub(super) fn new(
        session: &'s mut SessionLog,
        links: &'s Links,
        turns: &'s Turns,
        summarisers: Vec<Option<Summariser>>,
    ) -> Self {
        Self {
            threads: turns.threads(links),
            done: vec![false; links.conversations.len()],
            session,
            links,
            turns,
            summarisers,
            counted: Vec::new(),
            eras: 0,
            lines: FxHashMap::default(),
            heads: FxHashMap::default(),
            player: Player::new(false),
            brought_back: FxHashSet::default(),
            quoted: FxHashMap::default(),
            generations: FxHashMap::default(),
            after: FxHashMap::default(),
            before: FxHashMap::default(),
        }
    }

    /// Plays every conversation, those that start from another one behind it.
    pub(super) fn run(&mut self) {
        let starts = self
            .links
            .conversations
            .iter()
            .filter_map(|conversation| self.turn_at(conversation.inherits?));
        self.after = starts.map(|turn| (turn, State::default())).collect();
        self.before = (0..self.links.conversations.len())
            .filter_map(|fork| Some((self.forked_at(fork)?, None)))
            .collect();
        self.done = self
            .links
            .conversations
            .iter()
            .enumerate()
            .map(|(index, _)| self.summarises(index))
            .collect();
        loop {
            let conversations = &self.links.conversations;
            let open = || (0..conversations.len()).filter(|&index| !self.done[index]);
            let ready = open().find(|&index| {
                conversations[index]
                    .inherits
                    .is_none_or(|start| self.done[self.links.conversation[start]])
            });
            let Some(next) = ready.or_else(|| open().next()) else { break };
            let state = self.start(next);
            self.play(next, state, ForkReason::Subagent, Origin::Policy);
        }
    }

    /// What a conversation starts from: nothing, or what stood behind a line, or before the call
    /// that forked it.
    fn start(&mut self, conversation: usize) -> State {
        if let Some(state) =
            self.forked_at(conversation).and_then(|call| self.before.get(&call).cloned().flatten())
        {
            return state;
        }
        let Conversation { inherits, forks, entries, .. } = &self.links.conversations[conversation];
        let Some(start) = *inherits else { return State::default() };
        if let (Some(line), Some(&first)) = (forks, entries.first())
            && self.links.compactions.iter().any(|compaction| compaction.preserved.contains(line))
        {
            let message = "the contexts go on from a line that a compaction preserved, and which call forked them is not recorded; what stood before the compaction is taken".into();
            self.session.warn(first, "parentLastUuid", "uncertain-fork", message);
        }
        let mut state =
            self.turn_at(start).and_then(|turn| self.after.get(&turn)).cloned().unwrap_or_default();
        // What hangs on the turn and was written later came after the conversation had begun.
        self.flush(&mut state, self.links.place[start] + BEHIND);
        state.pending.clear();
        state
    }

    /// The call that a conversation was forked at, where it begins with a clone of it and no prompt
    /// of its own.
    fn forked_at(&self, conversation: usize) -> Option<usize> {
        let Conversation { forks: Some(_), entries, .. } = &self.links.conversations[conversation]
        else {
            return None;
        };
        let begins = entries.iter().copied().find(|&entry| {
            let entry = &self.session.entries[entry];
            entry.assistant().is_some()
                || entry.user().is_some_and(|user| user.kind == UserKind::Prompt)
        });
        self.turns.clones.get(&self.turns.of[begins?]?).copied()
    }

    /// Whether a conversation is played where its compaction stands.
    fn summarises(&self, conversation: usize) -> bool {
        self.summarisers.iter().flatten().any(|summariser| summariser.conversation == conversation)
    }

    fn turn_at(&self, entry: usize) -> Option<usize> {
        let mut turn = self.turns.of[entry]?;
        while let TurnKind::Merged = self.turns.turns[turn].kind {
            turn = self.turns.turns[turn].parent?;
        }
        Some(turn)
    }

    /// Plays one conversation from `start`, where it begins in another one.
    pub(super) fn play(
        &mut self,
        conversation: usize,
        mut start: State,
        reason: ForkReason,
        origin: Origin,
    ) {
        self.done[conversation] = true;
        let turns = self.turns;
        if !start.pending.is_empty() {
            self.flush(&mut start, u64::MAX);
        }
        let inherits = start.held.is_some();
        let mut ready = BinaryHeap::new();
        let mut waiting: Vec<Option<Ready>> = Vec::new();
        for (turn, record) in turns.turns.iter().enumerate() {
            if record.conversation == conversation && record.parent.is_none() {
                let mut state = start.clone();
                if !inherits {
                    state.era = self.era();
                }
                ready.push(Reverse((self.place(turn), waiting.len())));
                waiting.push(Some(Ready { turn, state, fork: inherits.then_some(reason) }));
            }
        }
        while let Some(Reverse((_, next))) = ready.pop() {
            let Some(Ready { turn, mut state, fork }) = waiting[next].take() else { continue };
            if let (Some(reason), Some(held)) = (fork, state.held) {
                state.held = Some(self.ledger().fork(held, reason));
            }
            self.turn(turn, &mut state, origin);
            for child in self.children(turn, state) {
                ready.push(Reverse((self.place(child.turn), waiting.len())));
                waiting.push(Some(child));
            }
        }
    }

    /// Writes a segment that was read at an entry, under a key.
    pub(super) fn write(&mut self, entry: usize, key: &str, segment: Segment) -> SegmentId {
        let spot = self.session.spot(entry);
        self.player.write_one(&mut self.session.draft, spot.segment(key, segment), &spot)
    }

    /// The records that are written.
    pub(super) fn ledger(&mut self) -> &mut Ledger {
        &mut self.session.draft.ledger
    }

    pub(super) fn place(&self, turn: usize) -> u64 {
        self.links.place[self.turns.turns[turn].head]
    }

    pub(super) fn era(&mut self) -> usize {
        self.eras += 1;
        self.eras - 1
    }

    fn turn(&mut self, turn: usize, state: &mut State, origin: Origin) {
        let turns = self.turns;
        let record = &turns.turns[turn];
        match &record.kind {
            TurnKind::Call(lines) => self.call(turn, lines, state, origin),
            TurnKind::Compaction(compaction) => self.compact(*compaction, state),
            TurnKind::Line | TurnKind::Merged => {}
        }
        state.pending.extend(record.items.iter().map(|item| Pending {
            place: self.links.place[item.entry],
            always: item.always,
            what: What::Line(item.entry),
        }));
        if let Some(after) = self.after.get_mut(&turn) {
            after.clone_from(state);
        }
    }

    /// Whether the branch that a turn opens begins with attachments, before any call of its own.
    fn attaches(&self, turn: usize) -> bool {
        let mut open = vec![turn];
        while let Some(turn) = open.pop() {
            let record = &self.turns.turns[turn];
            if !matches!(record.kind, TurnKind::Line) {
                continue;
            }
            let attached = record.items.iter().any(|item| {
                let user = self.session.entries[item.entry].user();
                user.is_some_and(|user| user.kind == UserKind::Attachment)
            });
            if attached {
                return true;
            }
            open.extend_from_slice(&record.children);
        }
        false
    }

    /// What goes on from a turn; the first branch continues it, every later one is a fork.
    fn children(&mut self, turn: usize, mut state: State) -> Vec<Ready> {
        let turns = self.turns;
        let children = &turns.turns[turn].children;
        match children.as_slice() {
            [] => {
                if state.pending.iter().any(|pending| matches!(pending.what, What::Line(_))) {
                    self.flush(&mut state, u64::MAX);
                }
                Vec::new()
            }
            [only] => vec![Ready { turn: *only, state, fork: None }],
            [first, ..] => {
                let loose = match children.iter().any(|&child| self.attaches(child)) {
                    true => self.loose(&mut state),
                    false => Vec::new(),
                };
                self.flush(&mut state, self.place(*first));
                state.pending.extend(loose);
                let call = |turn: usize| matches!(turns.turns[turn].kind, TurnKind::Call(_));
                let fork = |rank: usize, turn: usize| match rank {
                    0 => None,
                    _ if call(turn) && children[..rank].iter().any(|&before| call(before)) => {
                        Some(ForkReason::Retry)
                    }
                    _ => Some(ForkReason::Rewind),
                };
                let branch = |(rank, &turn): (usize, &usize)| Ready {
                    turn,
                    state: state.clone(),
                    fork: fork(rank, turn),
                };
                children.iter().enumerate().map(branch).collect()
            }
        }
    }
}

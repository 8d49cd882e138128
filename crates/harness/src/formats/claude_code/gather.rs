//! Which lines are one turn.
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::entry::{Body, UserKind};
use super::link::Links;
use super::load::Session;
use super::turns::{Item, TurnKind, Turns};

impl Turns {
    pub(super) fn gather_calls(&mut self, session: &mut Session, links: &Links, order: &[usize]) {
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
                self.by_call.entry((conversation, call)).or_insert(turn);
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
    fn is_anew(&self, session: &Session, links: &Links, line: usize, call: usize) -> bool {
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

    pub(super) fn gather_compactions(&mut self, links: &Links) {
        for (index, compaction) in links.compactions.iter().enumerate() {
            let boundary = compaction.boundary;
            let turn =
                self.add(TurnKind::Compaction(index), links.conversation[boundary], boundary);
            for &summary in &compaction.summary {
                self.of[summary] = Some(turn);
            }
        }
    }

    pub(super) fn gather_lines(&mut self, session: &mut Session, links: &Links, order: &[usize]) {
        let mut answered = FxHashSet::default();
        for &entry in order {
            let conversation = links.conversation[entry];
            let turn = match &session.entries[entry].body {
                _ if self.of[entry].is_some() => continue,
                Body::User(user) => {
                    let call = user
                        .answers
                        .iter()
                        .find_map(|answer| self.by_call.get(&(conversation, answer.call.clone())));
                    call.copied().unwrap_or_else(|| self.add(TurnKind::Line, conversation, entry))
                }
                Body::Clearing(_) => self.add(TurnKind::Line, conversation, entry),
                Body::Link | Body::Assistant(_) | Body::Boundary(_) => continue,
            };
            self.of[entry] = Some(turn);
            self.turns[turn].items.push(Item { entry, always: true });
            drop_repeated(session, entry, conversation, &mut answered);
        }
    }
}

/// Takes out results of calls that an earlier line has answered.
fn drop_repeated(
    session: &mut Session,
    entry: usize,
    conversation: usize,
    answered: &mut FxHashSet<(usize, String)>,
) {
    let Body::User(user) = &mut session.entries[entry].body else { return };
    let mut repeated = Vec::new();
    user.answers.retain(|answer| {
        let new = answered.insert((conversation, answer.call.clone()));
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

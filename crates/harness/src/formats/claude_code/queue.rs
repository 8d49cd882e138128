//! Text that was typed while a call ran: the harness queues it and takes it into the turn with the
//! next results, which old versions record as movements of the queue only.
use std::sync::Arc;

use pleach_tree::{Fidelity, Location, Origin, Role};
use rustc_hash::FxHashSet;

use super::entry::{Body, LogEntry, User, UserKind, is_command};
use super::line::Line;
use super::load::SessionLog;
use crate::core::block::joined;
use crate::core::wording::SHORTEST_QUOTE;

/// A movement of the queue.
#[derive(Debug)]
pub(super) struct Move {
    kind: MoveKind,
    text: Option<String>,
    /// Why text was taken out, since version 2.1.246.
    reason: Option<String>,
    line: u64,
    /// How many lines of the tree stand above.
    above: usize,
    /// The line that holds the place of text that was taken out.
    entry: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MoveKind {
    In,
    /// Taken out to be the prompt of a turn of its own.
    Prompt,
    /// Taken out into the turn that runs, or cancelled.
    Out,
    /// Given back to the person, one text or all.
    Back,
}

/// Text that waits.
#[derive(Debug)]
struct Waiting {
    text: Option<String>,
    line: u64,
    above: usize,
}

/// What became of text that was taken out of the queue.
enum Fate {
    /// A line has it, or no call came behind it, or it went elsewhere.
    Told,
    /// It stands before the next call.
    Taken,
    Missing,
}

/// Why text was taken out where it went into the turn that ran.
const ABSORBED: &str = "absorbed_mid_turn";

impl SessionLog {
    /// Notes a movement of the queue; text that is taken out gets a place behind the last line.
    pub(super) fn queue(&mut self, line: &mut Line, at: &Location) {
        let kind = match line.operation.as_str() {
            Some("enqueue") => MoveKind::In,
            Some("dequeue") => MoveKind::Prompt,
            Some("remove") => MoveKind::Out,
            Some("popAll") => MoveKind::Back,
            operation => {
                let name = operation.unwrap_or_default();
                let message = format!("operation {name:?} of the queue is not known");
                self.draft.warn(at, "operation", "unknown-operation", message);
                return;
            }
        };
        let text = line.content.take().map(joined).filter(|text| !text.trim().is_empty());
        let above = self.entries.len();
        let is_line = |entry: &LogEntry| !entry.sidechain && self.find(0, &entry.uuid).is_some();
        let last = self.entries.iter().rposition(is_line);
        let entry = last.filter(|_| kind == MoveKind::Out).map(|last| {
            let (file, parent) = (self.entries[last].file, Arc::clone(&self.entries[last].uuid));
            let uuid: Arc<str> = format!("line-{}", at.line).into();
            self.entries.push(LogEntry {
                file,
                line: at.line,
                uuid,
                parent: Some(parent),
                sidechain: false,
                copied: false,
                body: Body::Link,
            });
            above
        });
        let reason = line.reason.as_str().map(str::to_owned);
        self.moves.push(Move { kind, text, reason, line: at.line, above, entry });
    }

    /// Puts queued text that a turn took in before the call that saw it, where no line has it.
    pub(super) fn take_queued(&mut self) {
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut told = FxHashSet::default();
        for moved in std::mem::take(&mut self.moves) {
            let Move { kind, text, line, above, .. } = &moved;
            let named = |item: &Waiting| text.is_some() && item.text == *text;
            let first = waiting.iter().position(named);
            match kind {
                MoveKind::In => {
                    waiting.push(Waiting { text: text.clone(), line: *line, above: *above });
                }
                MoveKind::Back if text.is_none() => waiting.clear(),
                MoveKind::Back => {
                    first.map(|at| waiting.remove(at));
                }
                MoveKind::Prompt => {
                    let follows = |item: &Waiting| {
                        let text = item.text.as_deref().unwrap_or_default();
                        self.tells(*above, self.next_call(*above), text, &told).is_some()
                    };
                    let at = first.or_else(|| waiting.iter().position(follows)).unwrap_or(0);
                    if at < waiting.len() {
                        waiting.remove(at);
                    }
                }
                MoveKind::Out => {
                    let is_text = |item: &Waiting| {
                        item.text.as_ref().is_some_and(|text| !text.starts_with('/'))
                    };
                    let at = first.or_else(|| waiting.iter().position(is_text)).unwrap_or(0);
                    let item = (at < waiting.len()).then(|| waiting.remove(at));
                    self.taken_out(moved, item, &mut told);
                }
            }
        }
    }

    /// Finds what became of text that was taken out of the queue.
    fn taken_out(&mut self, moved: Move, item: Option<Waiting>, told: &mut FxHashSet<usize>) {
        let Some(entry) = moved.entry else { return };
        let since = item.as_ref().map_or(moved.above, |item| item.above);
        let line = item.as_ref().map_or(moved.line, |item| item.line);
        let text = moved.text.or(item.and_then(|item| item.text));
        let next = self.next_call(entry);
        let fate = match &text {
            _ if moved.reason.as_deref().is_some_and(|reason| reason != ABSORBED) => Fate::Told,
            Some(text) => match self.tells(since, next, text, told) {
                Some(line) => {
                    told.insert(line);
                    Fate::Told
                }
                None if next == self.entries.len() => Fate::Told,
                None if self.prompts(entry, next) => Fate::Missing,
                // Where such lines are written, text without one was cancelled.
                None if self.queued_lines && moved.reason.is_none() => Fate::Missing,
                None => Fate::Taken,
            },
            None if next == self.entries.len() => Fate::Told,
            None => Fate::Missing,
        };
        let (code, message) = match (fate, text) {
            (Fate::Told, _) => return,
            (Fate::Taken, Some(text)) => {
                let origin = if is_command(&text) { Origin::Harness } else { Origin::Human };
                let (role, kind) = (Role::User, UserKind::Attachment);
                let user = User { answers: Vec::new(), texts: vec![text], role, origin, kind };
                let placed = &mut self.entries[entry];
                (placed.line, placed.uuid) = (line, format!("line-{line}").into());
                placed.body = Body::User(user);
                self.draft.header.fidelity = Fidelity::Inferred;
                (
                    "queued-text",
                    "the text was queued while a call ran, taken in by the turn, and is in no line; it stands before the next call, without the words that the harness puts around it",
                )
            }
            _ => (
                "queued-text",
                "text was taken out of the queue, and no line says what became of it; if it was sent, it is missing",
            ),
        };
        let at = Location::line(&self.files[0].name, moved.line);
        self.draft.warn(&at, "operation", code, message);
    }

    /// The first line behind `entry` of a call that does not begin above it.
    fn next_call(&self, entry: usize) -> usize {
        let message = |line: &LogEntry| line.assistant().map(|call| Arc::clone(&call.message));
        let (above, behind) = self.entries.split_at(entry);
        let open = above.iter().rev().filter(|line| !line.sidechain).find_map(message);
        let is_next = |line: &LogEntry| {
            !line.sidechain && message(line).is_some_and(|message| Some(message) != open)
        };
        behind.iter().position(is_next).map_or(self.entries.len(), |at| entry + at)
    }

    /// The first line between two that says a text in a person's place, or beside a result.
    fn tells(&self, from: usize, to: usize, text: &str, told: &FxHashSet<usize>) -> Option<usize> {
        let text = text.trim();
        let says = |line: &LogEntry| {
            let Some(user) = line.user().filter(|_| !text.is_empty()) else { return false };
            let quotes = |whole: &str| whole.contains(text) && text.len() >= SHORTEST_QUOTE;
            let attached = user.kind == UserKind::Attachment;
            user.texts.iter().any(|whole| {
                whole.trim() == text || quotes(whole) || attached && whole.contains(text)
            }) || user.answers.iter().any(|answer| quotes(&answer.text))
        };
        (from..to.max(from)).find(|at| !told.contains(at) && says(&self.entries[*at]))
    }

    /// Whether a person's prompt stands between two lines, so that the turn was over.
    fn prompts(&self, from: usize, to: usize) -> bool {
        self.entries[from..to.max(from)]
            .iter()
            .any(|line| line.user().is_some_and(|user| user.kind == UserKind::Prompt))
    }
}

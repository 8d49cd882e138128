//! From the items of a rollout to runs of what the model said, and what stands between them.
use pleach_tree::Segment;

use super::history::HistoryEntry;
use super::item::{self, Piece};
use super::known::{Key, Standing};
use super::line::Item;
use super::session::Rollout;
use crate::core::script::{self, Call, Script, Spot, Step};

/// A run that may go on.
pub(super) struct Open {
    output: Vec<Segment>,
    keys: Vec<Key>,
    standing: Standing,
    /// How many of its items have no id and say what was said above.
    doubts: usize,
    spot: Spot,
}

impl Rollout {
    pub(super) fn item(&mut self, script: &mut Script, item: Item, spot: &Spot) {
        let key = format!("line-{}", spot.at.line);
        let id = item.id.clone().filter(|id| !id.is_empty());
        if item.is_sealed() {
            self.sealed(script, item.sealed_bytes(), spot);
        }
        let piece = item::piece(item, &key, spot);
        let Some(number) = piece.number() else {
            if let Piece::Unknown(kind) = piece {
                script.unknown(&format!("response_item {kind}"), &spot.at);
            }
            return;
        };
        let keys = Key::of(&piece, id.as_deref(), number);
        // Every item is held against the parent's, also those that are left out, so that both are
        // counted alike.
        let copied = self.copied.is_copy(id.as_deref(), number, spot);
        let standing = match self.known.standing(&keys) {
            Standing::Repeated => Standing::Repeated,
            _ if copied => Standing::Copied,
            standing => standing,
        };
        match piece {
            Piece::Said(output) => {
                self.tell(script, &keys, standing, spot);
                self.said(script, output, keys, standing, spot);
            }
            Piece::Given { segments, turn } => {
                self.tell(script, &keys, standing, spot);
                self.close(script);
                if standing != Standing::Repeated {
                    self.answer(script);
                    self.put(script, segments, turn, keys, spot);
                    self.asked_again = if turn {
                        matches!(standing, Standing::Doubt { .. })
                    } else {
                        self.asked_again
                    };
                }
            }
            Piece::Output(segment) => {
                self.close(script);
                if let Some(key) = keys.into_iter().next() {
                    self.output(script, *segment, key, spot);
                }
            }
            Piece::Silent | Piece::Unknown(_) => {}
        }
    }

    /// Says what an item is that was met before, and which id names calls that differ.
    fn tell(&mut self, script: &mut Script, keys: &[Key], standing: Standing, spot: &Spot) {
        if let Some(call) = self.known.shares(keys) {
            let message = format!(
                "the id {call} names calls that differ; each is a call of its own, and an output answers the newest without one"
            );
            script.draft.warn(&spot.at, "payload.call_id", "repeated-id", message);
        }
        let (what, id, at) = match self.known.named(keys, standing) {
            Some(Key::Item(id, _)) => ("item", id, "payload.id"),
            Some(Key::Call(call, _)) => ("call", call, "payload.call_id"),
            _ => return,
        };
        match standing {
            Standing::Repeated if what == "call" => {
                let message = format!(
                    "call {id} stands above already; the call that makes it again is left out"
                );
                script.draft.warn(&spot.at, at, "repeated-call", message);
            }
            Standing::Repeated => {
                let message =
                    format!("item {id} stands above already; what is written again is left out");
                script.draft.warn(&spot.at, at, "repeated-line", message);
            }
            Standing::Again => {
                let message = format!(
                    "{what} {id} was taken out of the history above; written again, it is context here"
                );
                script.draft.warn(&spot.at, at, "written-again", message);
            }
            Standing::New | Standing::Copied | Standing::Doubt { .. } => {}
        }
    }

    /// Takes a part of what the model said into the run that is open, or into one of its own.
    fn said(
        &mut self,
        script: &mut Script,
        output: Vec<Segment>,
        keys: Vec<Key>,
        standing: Standing,
        spot: &Spot,
    ) {
        let joined = self.open.as_ref().map(|open| open.standing.joined(standing));
        match joined {
            // A run goes on behind what is left out.
            Some(None) if standing == Standing::Repeated => return,
            Some(None) => self.close(script),
            Some(Some(_)) | None => {}
        }
        let new = || Open {
            output: Vec::new(),
            keys: Vec::new(),
            standing,
            doubts: 0,
            spot: spot.clone(),
        };
        let open = self.open.get_or_insert_with(new);
        open.standing = joined.flatten().unwrap_or(standing);
        open.doubts += usize::from(matches!(standing, Standing::Doubt { .. }));
        if standing != Standing::Repeated {
            self.known.add(&keys);
            open.output.extend(output);
            open.keys.extend(keys);
        }
    }

    /// Ends the run that may go on.
    pub(super) fn close(&mut self, script: &mut Script) {
        let Some(Open { output, keys, standing, doubts, spot }) = self.open.take() else { return };
        match standing {
            Standing::Repeated if doubts > 0 => {
                let message = format!(
                    "items without an id beside a repeated one ({doubts}) say what stands above; they are left out"
                );
                script.draft.warn(&spot.at, "payload", "repeated-line", message);
            }
            Standing::Doubt { stands } if !stands || self.asked_again => {
                let message = "the call has no id and says what was said above; it is taken for a call of its own";
                script.draft.warn(&spot.at, "payload", "maybe-repeated", message);
            }
            _ => {}
        }
        if standing == Standing::Repeated {
            return;
        }
        self.answer(script);
        self.unanswered.extend(output.iter().flat_map(|said| &said.calls).cloned());
        let bytes = output.iter().map(Segment::extent).sum();
        let step = match standing {
            Standing::Copied | Standing::Again => Step::Put(output),
            _ => Step::Call(Call { output, model: self.model.clone(), ..Call::default() }),
        };
        self.copied.calls += u64::from(standing == Standing::Copied);
        let node = self.cursor.push(script, &spot, step);
        self.history.entries.push(HistoryEntry::of(node, false, false, bytes, keys));
    }

    fn output(&mut self, script: &mut Script, segment: Segment, key: Key, spot: &Spot) {
        let call = segment.result_of.clone().unwrap_or_default();
        if let Some(open) = self.unanswered.iter().rposition(|open| *open == call) {
            self.unanswered.remove(open);
            self.put(script, vec![segment], false, vec![key], spot);
            self.belongs();
            return;
        }
        match (self.known.is_made(&call), self.known.stands(&key)) {
            (true, true) => {
                let message = format!("call {call} has the same output twice; the first is kept");
                script.draft.warn(&spot.at, "payload.call_id", "repeated-line", message);
            }
            (true, false) => {
                let message = format!("call {call} has a second output; the first is kept");
                script.draft.fault(&spot.at, "payload.call_id", "duplicate-result", message);
            }
            (false, _) if self.known.was_made(&call) => {
                let message = format!(
                    "call {call} was taken out of the history above; the harness does not send its output"
                );
                script.draft.warn(&spot.at, "payload.call_id", "orphan-output", message);
            }
            (false, _) => {
                let message = format!(
                    "no call {call} stands above; the harness does not send such an output"
                );
                script.draft.fault(&spot.at, "payload.call_id", "orphan-output", message);
            }
        }
    }

    /// Answers calls that have no output, as the harness does in the next request: where none of
    /// their id has one.
    fn answer(&mut self, script: &mut Script) {
        let open = std::mem::take(&mut self.unanswered);
        let Some(spot) =
            self.cursor.at.filter(|_| !open.is_empty()).map(|at| script.nodes[at].spot.clone())
        else {
            return;
        };
        let (shared, open): (Vec<String>, Vec<String>) =
            open.into_iter().partition(|call| self.known.is_answered(call));
        let mut warn = |calls: &[String], rest: &str| {
            if !calls.is_empty() {
                let message =
                    format!("calls ({}) have no output in the file; {rest}", calls.join(", "));
                script.draft.warn(&spot.at, "payload.call_id", "missing-result", message);
            }
        };
        warn(&open, "the request shows the harness's own");
        warn(&shared, "the request shows none, as another call of the id has one");
        let (mut answers, mut keys) = (Vec::new(), Vec::new());
        for call in open {
            let (answer, key) = missing(&call, &spot);
            answers.push(answer);
            keys.push(key);
        }
        if !answers.is_empty() {
            self.put(script, answers, false, keys, &spot);
            self.belongs();
        }
    }

    /// Lets outputs belong to their calls: a rollback of the turn behind them leaves them there.
    fn belongs(&mut self) {
        if let Some(entry) = self.history.entries.last_mut() {
            entry.context = false;
        }
    }
}

/// What the harness answers to a call that has no output, and what that is known by.
pub(super) fn missing(call: &str, spot: &Spot) -> (Segment, Key) {
    let answer = spot.segment(format!("{call}#missing"), item::aborted(call));
    let number = script::content_number(std::slice::from_ref(&answer));
    (answer, Key::Output(call.into(), number))
}

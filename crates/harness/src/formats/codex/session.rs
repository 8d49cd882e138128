//! From the lines of a rollout to its script.
use std::sync::Arc;

use pleach_tree::{Origin, ReadOptions, Role, Segment};

use super::copied::Copied;
use super::history::{History, HistoryEntry};
use super::known::{Key, Known};
use super::line::{Event, Instructions, Line, Meta, Payload};
use super::run::Open;
use crate::core::format::Format;
use crate::core::script::{self, Back, Cursor, Script, Spot, Step};
use crate::core::shape::Shape;
use crate::{Conversion, HarnessError, Input};

/// How a rollout of Codex is told from other files.
pub(crate) const FORMAT: Format = Format::new("codex", "a Codex CLI rollout", is_line, convert);

fn is_line(shape: &Shape) -> bool {
    let kinds = ["session_meta", "turn_context", "response_item", "event_msg", "compacted"];
    shape.is("type", &kinds) && shape.has("payload")
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let mut script = Script::new("codex", options);
    let mut rollout = Rollout::default();
    script.lines(&input.main(), |script, line: Line, spot| {
        if let Payload::Meta(meta) = &line.payload {
            rollout.copied.meta(script, input, meta, spot);
        }
        rollout.take(script, line, spot);
    })?;
    rollout.close(&mut script);
    rollout.copied.report(&mut script);
    script.play()
}

/// The rollout as far as it is read.
#[derive(Default)]
pub(super) struct Rollout {
    /// The node that the next one goes on from.
    pub(super) cursor: Cursor,
    pub(super) history: History,
    pub(super) compactions: usize,
    /// The node of the base instructions.
    pub(super) base: Option<usize>,
    pub(super) open: Option<Open>,
    started: bool,
    pub(super) model: Option<Arc<str>>,
    tokens: i64,
    /// The ordinal of the last line; they only grow.
    ordinal: Option<u64>,
    pub(super) known: Known,
    /// Calls of the history that have no output yet; an id stands here once for each call that it
    /// names.
    pub(super) unanswered: Vec<String>,
    /// Whether the last prompt has no id and says what was said above.
    pub(super) asked_again: bool,
    pub(super) copied: Copied,
    /// Whether what a provider encrypted was met.
    pub(super) unreadable: bool,
}

impl Rollout {
    fn take(&mut self, script: &mut Script, line: Line, spot: &Spot) {
        if self.repeats(script, &line, spot) {
            return;
        }
        match line.payload {
            Payload::Meta(meta) => self.meta(script, *meta, spot),
            Payload::Turn(turn) => {
                self.close(script);
                self.model = turn.model.map(Arc::from).or(self.model.take());
            }
            Payload::Item(item) => self.item(script, *item, spot),
            Payload::Event(event) => self.event(script, &event, spot),
            Payload::Compacted(compacted) => {
                self.close(script);
                self.compaction(script, *compacted, spot);
            }
            Payload::Other => match line.kind.as_str() {
                "world_state" | "inter_agent_communication_metadata" | "token_usage_record" => {}
                "rollout_reference" => {
                    let message =
                        "the history lies in another rollout; what follows is taken as a start";
                    script.draft.fault(&spot.at, "payload", "history-elsewhere", message);
                }
                kind => script.unknown(kind, &spot.at),
            },
        }
    }

    /// Whether a line has the ordinal of an earlier one.
    fn repeats(&mut self, script: &mut Script, line: &Line, spot: &Spot) -> bool {
        let Some(ordinal) = line.ordinal else { return false };
        match self.ordinal {
            Some(last) if ordinal <= last => {
                let message = format!(
                    "ordinal {ordinal} stands behind {last}; a line above has it and is kept"
                );
                script.draft.fault(&spot.at, "ordinal", "duplicate-ordinal", message);
                true
            }
            _ => {
                self.ordinal = Some(ordinal);
                false
            }
        }
    }

    fn meta(&mut self, script: &mut Script, meta: Meta, spot: &Spot) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        script.draft.header.harness_version = meta.cli_version;
        let text = match meta.base_instructions {
            Some(Instructions::Text(text)) => Some(text),
            Some(Instructions::Object { text }) => text,
            None => None,
        };
        if let Some(text) = text {
            let segment = spot
                .segment("base_instructions", script::text(Role::System, Origin::Harness, text));
            self.put(script, vec![segment], false, Vec::new(), spot);
            self.base = self.cursor.at;
        }
    }

    fn event(&mut self, script: &mut Script, event: &Event, spot: &Spot) {
        match event.kind.as_str() {
            "token_count" => {
                let total = event.total_tokens().unwrap_or(self.tokens);
                if total != self.tokens {
                    self.close(script);
                    self.tokens = total;
                }
            }
            "task_started" | "turn_started" | "task_complete" | "turn_complete"
            | "turn_aborted" => self.close(script),
            "thread_rolled_back" => {
                self.close(script);
                match event.turns() {
                    Some(turns) => self.roll_back(script, turns, spot),
                    None => {
                        let message =
                            "the rollback does not say of how many turns; none is taken back";
                        script.draft.fault(
                            &spot.at,
                            "payload.num_turns",
                            "rollback-unsaid",
                            message,
                        );
                    }
                }
            }
            _ => {}
        }
    }

    /// Brings segments into the context.
    pub(super) fn put(
        &mut self,
        script: &mut Script,
        segments: Vec<Segment>,
        turn: bool,
        keys: Vec<Key>,
        spot: &Spot,
    ) {
        self.known.add(&keys);
        let harness = segments.iter().all(|segment| segment.origin == Origin::Harness);
        let bytes = segments.iter().map(Segment::extent).sum();
        let node = self.cursor.push(script, spot, Step::Put(segments));
        self.history.entries.push(HistoryEntry::of(node, turn, harness && !turn, bytes, keys));
    }

    fn roll_back(&mut self, script: &mut Script, turns: usize, spot: &Spot) {
        if turns == 0 {
            return;
        }
        let back = self.history.back(turns);
        if !back.is_some_and(|(_, enough)| enough) {
            let message = format!(
                "{turns} turns are taken back, which is more than there are; all of them are"
            );
            script.draft.fault(&spot.at, "payload.num_turns", "rollback-too-far", message);
        }
        let Some((back, _)) = back else { return };
        // A prompt answers what stands before it, so what has no output yet is of the turns that
        // leave.
        self.unanswered.clear();
        self.known.hold(&self.history.entries);
        let into = matches!(back, Back::Into(..));
        self.cursor.at = back.node(script, 0, spot);
        for entry in self.history.entries.iter_mut().filter(|_| into) {
            if let (Back::Into(_, upto), Some(cut)) = (entry.back, self.cursor.at) {
                entry.back = Back::Into(cut, upto);
            }
        }
    }
}

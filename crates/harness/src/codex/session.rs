//! From the lines of a rollout to its script.
use std::sync::Arc;

use pleach_tree::{Origin, ReadOptions, Role, Segment};
use rustc_hash::{FxHashMap, FxHashSet};

use super::copied::Copied;
use super::history::{Entry, History};
use super::item::{self, Piece};
use super::line::{Event, Instructions, Item, Line, Meta, Payload};
use crate::detect::Format;
use crate::script::{self, Back, Call, Script, Spot, Step};
use crate::shape::Shape;
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
    pub(super) at: Option<usize>,
    pub(super) history: History,
    pub(super) compactions: usize,
    /// The node of the base instructions.
    pub(super) base: Option<usize>,
    open: Option<Open>,
    started: bool,
    model: Option<Arc<str>>,
    tokens: i64,
    /// The ordinal of the last line; they only grow.
    ordinal: Option<u64>,
    /// Items of the history that have an id, each with a number for what it says. An id that a server gives twice is no item again.
    items: FxHashSet<(String, u64)>,
    /// Calls of tools, each with a number for what its output says.
    calls: FxHashMap<String, Option<u64>>,
    unanswered: Vec<String>,
    copied: Copied,
}

/// A call that may say more.
struct Open {
    output: Vec<Segment>,
    spot: Spot,
    copied: bool,
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
                self.items.clear();
                self.compaction(script, *compacted, spot);
            }
            Payload::Other => match line.kind.as_str() {
                "world_state" | "inter_agent_communication_metadata" | "token_usage_record" => {}
                "rollout_reference" => {
                    let message = "the history lies in another rollout; what follows is taken as a start";
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
                let message = format!("ordinal {ordinal} stands behind {last}; a line above has it and is kept");
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
            let segment = spot.segment("base_instructions", script::text(Role::System, Origin::Harness, text));
            self.put(script, vec![segment], false, spot);
            self.base = self.at;
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
            "task_started" | "turn_started" | "task_complete" | "turn_complete" | "turn_aborted" => self.close(script),
            "thread_rolled_back" => {
                self.close(script);
                match event.turns() {
                    Some(turns) => self.roll_back(script, turns, spot),
                    None => {
                        let message = "the rollback does not say of how many turns; none is taken back";
                        script.draft.fault(&spot.at, "payload.num_turns", "rollback-unsaid", message);
                    }
                }
            }
            _ => {}
        }
    }

    fn item(&mut self, script: &mut Script, item: Item, spot: &Spot) {
        let key = format!("line-{}", spot.at.line);
        let id = item.id.clone().filter(|id| !id.is_empty());
        let piece = item::piece(item, &key, spot);
        if let (Some(id), Some(said)) = (id, piece.number()) {
            let message = format!("item {id} stands above already; what is written again is left out");
            if !self.items.insert((id, said)) {
                script.draft.warn(&spot.at, "payload.id", "repeated-line", message);
                return;
            }
        }
        let copied = self.copied.is_copy(&piece);
        match piece {
            Piece::Said(output) => {
                if self.open.is_none() {
                    self.answer(script);
                }
                let open = self.open.get_or_insert_with(|| Open { output: Vec::new(), spot: spot.clone(), copied });
                open.output.extend(output);
            }
            Piece::Given { segments, turn } => {
                self.close(script);
                self.answer(script);
                self.put(script, segments, turn, spot);
            }
            Piece::Output(segment) => {
                self.close(script);
                self.output(script, *segment, spot);
            }
            Piece::Silent => {}
            Piece::Unknown(kind) => script.unknown(&format!("response_item {kind}"), &spot.at),
        }
    }

    /// Brings segments into the context.
    fn put(&mut self, script: &mut Script, segments: Vec<Segment>, turn: bool, spot: &Spot) {
        let harness = segments.iter().all(|segment| segment.origin == Origin::Harness);
        let bytes = segments.iter().map(Segment::extent).sum();
        let node = script.push(self.at, 0, spot, Step::Put(segments));
        self.history.entries.push(Entry::of(node, turn, harness && !turn, bytes));
        self.at = Some(node);
    }

    fn output(&mut self, script: &mut Script, segment: Segment, spot: &Spot) {
        let call = segment.result_of.clone().unwrap_or_default();
        let said = script::content_number(std::slice::from_ref(&segment));
        match self.calls.get_mut(&call) {
            Some(answered @ None) => {
                *answered = Some(said);
                self.unanswered.retain(|open| *open != call);
                self.put(script, vec![segment], false, spot);
                if let Some(entry) = self.history.entries.last_mut() {
                    entry.context = false;
                }
            }
            Some(Some(first)) if *first == said => {
                let message = format!("call {call} has the same output twice; the first is kept");
                script.draft.warn(&spot.at, "payload.call_id", "repeated-line", message);
            }
            Some(Some(_)) => {
                let message = format!("call {call} has a second output; the first is kept");
                script.draft.fault(&spot.at, "payload.call_id", "duplicate-result", message);
            }
            None => {
                let message = format!("no call {call} stands above; the harness does not send such an output");
                script.draft.fault(&spot.at, "payload.call_id", "orphan-output", message);
            }
        }
    }

    /// Answers calls that have no output, as the harness does in the next request.
    fn answer(&mut self, script: &mut Script) {
        let open = std::mem::take(&mut self.unanswered);
        let Some(spot) = self.at.filter(|_| !open.is_empty()).map(|at| script.nodes[at].spot.clone()) else { return };
        let message = format!("calls ({}) have no output in the file; the request shows the harness's own", open.join(", "));
        script.draft.warn(&spot.at, "payload.call_id", "missing-result", message);
        let mut answers = Vec::new();
        for call in open {
            answers.push(spot.segment(format!("{call}#missing"), item::aborted(&call)));
            self.calls.insert(call, Some(0));
        }
        self.put(script, answers, false, &spot);
        // They belong to their calls, and a rollback of the turn behind them leaves them there.
        if let Some(entry) = self.history.entries.last_mut() {
            entry.context = false;
        }
    }

    /// Ends the call that may say more.
    pub(super) fn close(&mut self, script: &mut Script) {
        let Some(Open { output, spot, copied }) = self.open.take() else { return };
        let known = output.iter().flat_map(|said| &said.calls).find(|call| self.calls.contains_key(*call));
        if let Some(call) = known {
            let message = format!("call {call} stands above already; the call that makes it again is left out");
            script.draft.warn(&spot.at, "payload.call_id", "repeated-call", message);
            return;
        }
        for call in output.iter().flat_map(|said| &said.calls) {
            self.calls.insert(call.clone(), None);
            self.unanswered.push(call.clone());
        }
        let bytes = output.iter().map(Segment::extent).sum();
        let step = match copied {
            true => Step::Put(output),
            false => Step::Call(Call { output, model: self.model.clone(), ..Call::default() }),
        };
        self.copied.calls += u64::from(copied);
        let node = script.push(self.at, 0, &spot, step);
        self.history.entries.push(Entry::of(node, false, false, bytes));
        self.at = Some(node);
    }

    fn roll_back(&mut self, script: &mut Script, turns: usize, spot: &Spot) {
        self.unanswered.clear();
        if turns == 0 {
            return;
        }
        self.items.clear();
        let back = self.history.back(turns);
        if !back.is_some_and(|(_, enough)| enough) {
            let message = format!("{turns} turns are taken back, which is more than there are; all of them are");
            script.draft.fault(&spot.at, "payload.num_turns", "rollback-too-far", message);
        }
        let Some((back, _)) = back else { return };
        let into = matches!(back, Back::Into(..));
        self.at = back.node(script, 0, spot);
        for entry in self.history.entries.iter_mut().filter(|_| into) {
            if let (Back::Into(_, upto), Some(cut)) = (entry.back, self.at) {
                entry.back = Back::Into(cut, upto);
            }
        }
    }
}

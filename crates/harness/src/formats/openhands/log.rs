//! From the events of a log to its script.
use std::sync::Arc;

use pleach_tree::{By, Evidence, ReplacementKind, Role, Segment, Trigger};
use rustc_hash::{FxHashMap, FxHashSet};

use super::event::Event;
use super::view::{self, Batches, Kind, Shown};
use crate::core::script::{self, Author, Call, Change, Cursor, Item, List, Script, Spot, Step};

/// The log as far as it is read.
#[derive(Default)]
pub(super) struct Log {
    cursor: Cursor,
    pub(super) model: Option<Arc<str>>,
    open: Option<Open>,
    /// Every id with the number of what its event says.
    seen: FxHashMap<String, u64>,
    batches: Batches,
    /// The events after all condensations.
    view: Vec<Shown>,
    /// The events that the last context holds.
    live: Vec<Shown>,
    /// Calls that are not answered, and answers without a call, since the context was last held
    /// against the view.
    halves: FxHashSet<String>,
    /// Calls with an event that the view holds and the context does not, until their other half
    /// comes.
    torn: FxHashSet<String>,
    answered: FxHashSet<String>,
    /// How many calls have each id of a provider's, and which of them have no answer yet.
    named: FxHashMap<String, (usize, Vec<String>)>,
    /// Whether the context may differ from the view in more than those.
    differs: bool,
    request: Option<Option<String>>,
}

/// A response that may have more actions.
struct Open {
    response: String,
    output: Vec<Segment>,
    shown: Vec<Shown>,
    spot: Spot,
}

impl Log {
    pub(super) fn take(&mut self, script: &mut Script, mut event: Event, spot: &Spot) {
        let id = match event.id.take() {
            Some(id) => id,
            None => {
                script.draft.fault(
                    &spot.at,
                    "id",
                    "no-id",
                    "the event has no id; the number of the line stands for it",
                );
                format!("line-{}", spot.at.line)
            }
        };
        let is_agents = event.llm_response_id.is_some()
            && matches!(event.kind.as_str(), "ActionEvent" | "MessageEvent");
        let condenses = matches!(event.kind.as_str(), "Condensation" | "CondensationRequest");
        let shows = matches!(
            event.kind.as_str(),
            "SystemPromptEvent"
                | "MessageEvent"
                | "ObservationEvent"
                | "UserRejectObservation"
                | "AgentErrorEvent"
                | "CondensationSummaryEvent"
        );
        let segments = match event.kind.as_str() {
            _ if is_agents => event.said(&id, spot),
            _ if shows => event.given(&id, spot),
            _ => Vec::new(),
        };
        if self.repeats(script, &id, script::content_number(&segments), spot) {
            return;
        }
        if is_agents {
            self.said(script, event, id, segments, spot);
        } else if condenses {
            self.close(script);
            self.condense(script, event, &id, spot);
        } else if shows {
            self.close(script);
            self.given(script, event, id, segments, spot);
        } else if !event.kind.ends_with("Event") {
            script.unknown(&event.kind, &spot.at);
        }
    }

    fn repeats(&mut self, script: &mut Script, id: &str, number: u64, spot: &Spot) -> bool {
        match self.seen.insert(id.to_owned(), number) {
            None => false,
            Some(first) if first == number => {
                script.draft.warn(
                    &spot.at,
                    "id",
                    "repeated-line",
                    format!("the event {id} stands above already"),
                );
                true
            }
            Some(first) => {
                self.seen.insert(id.to_owned(), first);
                let message =
                    format!("the event {id} stands above with other content; the first is kept");
                script.draft.fault(&spot.at, "id", "duplicate-id", message);
                true
            }
        }
    }

    fn said(
        &mut self,
        script: &mut Script,
        event: Event,
        id: String,
        segments: Vec<Segment>,
        spot: &Spot,
    ) {
        let response = event.llm_response_id.unwrap_or_default();
        let joins = self.open.as_ref().is_some_and(|open| open.response == response);
        if !joins {
            self.close(script);
            self.reach(script, spot);
        }
        let call = segments.iter().flat_map(|said| said.calls.first()).next().cloned();
        let call = call.map(|call| self.opens(call));
        let open = self.open.get_or_insert_with(|| Open {
            response: response.clone(),
            output: Vec::new(),
            shown: Vec::new(),
            spot: spot.clone(),
        });
        let start = open.output.len();
        open.output.extend(segments);
        let parts = Some((start, open.output.len()));
        let kind = match call {
            Some(call) => {
                let count = self.batches.entry(response.clone()).or_default();
                *count += 1;
                self.differs |= !joins && *count > 1 || self.torn.remove(&call);
                self.halves.insert(call.clone());
                Kind::Action { response, call }
            }
            None => Kind::Other,
        };
        open.shown.push(Shown { id, node: 0, parts, kind });
    }

    /// The name of a call: its id, and behind the first call of that id its number too, because a
    /// provider may count ids anew each turn.
    fn opens(&mut self, id: String) -> String {
        let (count, open) = self.named.entry(id.clone()).or_default();
        *count += 1;
        let call = if *count == 1 { id } else { format!("{id}#{count}") };
        if !self.answered.contains(&call) {
            open.push(call.clone());
        }
        call
    }

    /// The name of the call that an answer is to: the newest of its id that has none.
    fn answers(&mut self, id: String) -> String {
        self.named.get_mut(&id).and_then(|(_, open)| open.pop()).unwrap_or(id)
    }

    /// Ends the response that may have more actions.
    pub(super) fn close(&mut self, script: &mut Script) {
        let Some(Open { output, mut shown, spot, .. }) = self.open.take() else { return };
        let call = Call { output, model: self.model.clone(), ..Call::default() };
        let node = self.cursor.push(script, &spot, Step::Call(call));
        shown.iter_mut().for_each(|event| event.node = node);
        self.live.extend(shown.iter().cloned());
        self.view.extend(shown);
    }

    fn given(
        &mut self,
        script: &mut Script,
        event: Event,
        id: String,
        segments: Vec<Segment>,
        spot: &Spot,
    ) {
        let call = event.tool_call_id.map(|call| self.answers(call));
        let kind = match call {
            Some(call) if !self.answered.insert(call.clone()) => {
                let message = format!("call {call} has a second answer; the first is kept");
                script.draft.fault(&spot.at, "tool_call_id", "duplicate-result", message);
                return;
            }
            Some(call) => {
                if self.torn.remove(&call) {
                    self.differs = true;
                } else if !self.halves.remove(&call) {
                    self.halves.insert(call.clone());
                }
                Kind::Answer { call }
            }
            None => Kind::Other,
        };
        let node = self.cursor.push(script, spot, Step::Put(segments));
        let shown = Shown { id, node, parts: None, kind };
        self.live.push(shown.clone());
        self.view.push(shown);
    }

    fn condense(&mut self, script: &mut Script, event: Event, id: &str, spot: &Spot) {
        if event.kind == "CondensationRequest" {
            self.request = Some(event.reason);
            return;
        }
        let trigger = match self.request.take() {
            None => Some(Trigger::Auto),
            Some(None) => None,
            Some(Some(reason)) if reason == "manual" => Some(Trigger::Manual),
            Some(Some(_)) => Some(Trigger::Auto),
        };
        let forgotten: FxHashSet<&str> =
            event.forgotten_event_ids.iter().map(String::as_str).collect();
        for gone in &event.forgotten_event_ids {
            let summary = gone.strip_suffix("-summary").unwrap_or(gone);
            if !self.seen.contains_key(gone.as_str()) && !self.seen.contains_key(summary) {
                let message = format!(
                    "the forgotten event {gone} is not in the file above; it is passed over"
                );
                script.draft.fault(&spot.at, "forgotten_event_ids", "forgotten-missing", message);
            }
        }
        self.view.retain(|shown| !forgotten.contains(shown.id.as_str()));
        let node = script.nodes.len();
        let summary = event.summary.zip(event.summary_offset);
        if let Some((_, offset)) = &summary {
            if *offset > self.view.len() {
                let message = format!(
                    "the offset {offset} is beyond the {} events that are left; the summary stands at the end",
                    self.view.len()
                );
                script.draft.warn(&spot.at, "summary_offset", "offset-outside", message);
            }
            let shown = Shown { id: format!("{id}-summary"), node, parts: None, kind: Kind::Other };
            self.view.insert((*offset).min(self.view.len()), shown);
        }
        let target = view::whole(&self.view, &self.batches);
        let text = summary.map(|(text, _)| {
            vec![spot.segment(
                format!("{id}-summary"),
                script::text(Role::User, pleach_tree::Origin::ExternalModel, text),
            )]
        });
        let mut text = text;
        let items = target.iter().flat_map(|shown| match text.take_if(|_| shown.node == node) {
            Some(segments) => vec![Item::New(segments)],
            None => shown.items(),
        });
        let items = items.collect();
        let change = Change::new(ReplacementKind::Summary).trigger(trigger);
        self.cursor.push(script, spot, Step::List(Box::new(List { items, change })));
        self.warn_torn(script, &target, spot);
        self.hold(target);
    }

    /// Takes note of what the context holds now, which is the view without halves.
    fn hold(&mut self, target: Vec<Shown>) {
        let call = |event: &Shown| match &event.kind {
            Kind::Action { call, .. } | Kind::Answer { call } => Some(call.clone()),
            Kind::Other => None,
        };
        let mut kept = target.iter().peekable();
        for event in &self.view {
            if kept.next_if(|kept| kept.id == event.id).is_none() {
                self.torn.extend(call(event));
            }
        }
        self.halves.clear();
        self.differs = false;
        self.live = target;
    }

    fn warn_torn(&self, script: &mut Script, target: &[Shown], spot: &Spot) {
        let torn = self.view.len() - target.len();
        if torn > 0 {
            let message = format!(
                "events ({torn}) whose other half, or another part of whose response, is gone are not sent either"
            );
            script.draft.warn(&spot.at, "forgotten_event_ids", "pair-broken", message);
        }
    }

    /// Makes the context what the request before a call shows.
    fn reach(&mut self, script: &mut Script, spot: &Spot) {
        if self.halves.is_empty() && !self.differs {
            return;
        }
        let target = view::whole(&self.view, &self.batches);
        if target.iter().map(|shown| &shown.id).eq(self.live.iter().map(|shown| &shown.id)) {
            self.hold(target);
            return;
        }
        let items = target.iter().flat_map(Shown::items).collect();
        let change = Change { evidence: Evidence::Inferred, ..Change::new(ReplacementKind::None) };
        let change = change.by(Author::Known(By::rule("view-properties")));
        self.cursor.push(script, spot, Step::List(Box::new(List { items, change })));
        self.hold(target);
    }
}

#[cfg(test)]
mod tests {
    use pleach_tree::{Location, ReadOptions};

    use super::*;

    fn read(log: &mut Log, script: &mut Script, events: &[&str]) {
        let spot = Spot { file: 0, at: Location::line(&"events.jsonl".into(), 1) };
        for event in events {
            log.take(script, serde_json::from_str(event).unwrap_or_default(), &spot);
        }
    }

    fn says(id: u32) -> String {
        format!(
            r#"{{"id":"e{id}","kind":"MessageEvent","source":"agent","llm_response_id":"r{id}","llm_message":{{"role":"assistant","content":"x"}}}}"#
        )
    }

    #[test]
    fn behind_a_condensation_and_an_action_without_an_answer_the_view_is_compared_once() {
        let (mut log, mut script) = (Log::default(), Script::new("openhands", ReadOptions::STRICT));
        let acts = r#"{"id":"a","kind":"ActionEvent","source":"agent","llm_response_id":"r","tool_call_id":"c","tool_call":{"id":"c","name":"f"}}"#;
        let condenses = r#"{"id":"k","kind":"Condensation","forgotten_event_ids":["u"],"summary":"s","summary_offset":0}"#;
        let user = r#"{"id":"u","kind":"MessageEvent","source":"user","llm_message":{"role":"user","content":"hi"}}"#;
        read(&mut log, &mut script, &[user, acts, &says(1), condenses, &says(2), &says(3)]);
        assert_eq!((log.halves.len(), log.torn.len(), log.differs), (0, 1, false));
        let answers = r#"{"id":"o","kind":"ObservationEvent","tool_call_id":"c","observation":{"content":"out"}}"#;
        read(&mut log, &mut script, &[answers]);
        assert!(log.differs, "the action is back with its answer");
        read(&mut log, &mut script, &[&says(4)]);
        assert_eq!((log.halves.len(), log.torn.len(), log.differs), (0, 0, false));
    }
}

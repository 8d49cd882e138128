//! Steps as what happened to a context, message by message.
use std::sync::Arc;

use pleach_tree::{By, ByKind, Origin, Part as SegmentPart, ReplacementKind, Role, Segment};
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::import::Part;
use super::model::{Boundary, TrajectoryStep, text};
use crate::core::script::{self, Author, Call, Change, Cursor, Item, List, Script, Spot, Step};

/// The files that a step's observation refers to.
pub(super) fn referred(step: &TrajectoryStep) -> Vec<String> {
    let results = step.observation.iter().flat_map(|observation| &observation.results);
    let references = results.filter_map(|result| result.subagent_trajectory_ref.as_ref());
    let each = references.flat_map(|reference| match reference {
        Value::Array(items) => items.clone(),
        item => vec![item.clone()],
    });
    each.filter_map(|item| item.get("trajectory_path")?.as_str().map(str::to_owned)).collect()
}

/// The threads so far.
#[derive(Default)]
pub(super) struct Steps {
    threads: usize,
    cursor: Cursor,
    /// Nodes of leading system steps of the thread.
    heads: Vec<usize>,
    begun: bool,
}

impl Steps {
    pub(super) fn part(&mut self, script: &mut Script, part: Part) {
        let Part { trajectory, thread, spot, key } = part;
        let mut steps: Vec<TrajectoryStep> = trajectory.steps;
        self.ordinals(script, &steps, &spot, &key);
        match thread {
            Some(thread) => {
                let first = self.threads == 0;
                self.cursor = Cursor::new(if first { 0 } else { script.conversation(thread) });
                self.threads += 1;
                self.begun = false;
                self.heads.clear();
            }
            None => {
                let given = steps
                    .iter()
                    .take_while(|step| !step.is_call() && step.boundary().is_none())
                    .count();
                let rest = steps.split_off(given);
                self.continued(script, &steps, &spot, &key);
                steps = rest;
            }
        }
        let model = trajectory.agent.model_name;
        for (index, step) in steps.into_iter().enumerate() {
            self.step(script, step, model.as_deref(), &spot, &format!("{key}steps[{index}]"));
        }
    }

    /// Ordinals that stand twice say that steps of two runs were mixed, or that a step was written
    /// twice.
    fn ordinals(&self, script: &mut Script, steps: &[TrajectoryStep], spot: &Spot, key: &str) {
        let mut seen: FxHashMap<i64, usize> = FxHashMap::default();
        for (index, step) in steps.iter().enumerate() {
            let Some(id) = step.step_id else { continue };
            if let Some(first) = seen.insert(id, index) {
                let message = format!(
                    "step_id {id} stands at steps[{first}] already; both are taken, in the order of the file"
                );
                script.draft.fault(
                    &spot.at,
                    &format!("{key}steps[{index}].step_id"),
                    "duplicate-step",
                    message,
                );
            }
        }
    }

    /// What a run that goes on in another file is given there.
    fn continued(&mut self, script: &mut Script, steps: &[TrajectoryStep], spot: &Spot, key: &str) {
        let mut items = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let key = format!("{key}steps[{index}]");
            let told = said(step, spot, &key).into_iter().chain(observed(step, spot, &key));
            items.push(Item::Told(told.collect()));
        }
        let change = Change {
            evidence: pleach_tree::Evidence::Inferred,
            ..Change::new(ReplacementKind::Summary)
        };
        let list = List { items, change };
        self.cursor.push(script, spot, Step::List(Box::new(list)));
        self.heads.clear();
    }

    fn step(
        &mut self,
        script: &mut Script,
        step: TrajectoryStep,
        model: Option<&str>,
        spot: &Spot,
        key: &str,
    ) {
        let boundary = step.boundary();
        let mut call = None;
        if step.is_call() {
            if step.llm_call_count.is_some_and(|count| count > 1) {
                let message = format!(
                    "the step is {} calls in one; it is taken as one",
                    step.llm_call_count.unwrap_or_default()
                );
                script.draft.warn(
                    &spot.at,
                    &format!("{key}.llm_call_count"),
                    "aggregated-calls",
                    message,
                );
            }
            let model: Option<Arc<str>> = step.model_name.as_deref().or(model).map(Into::into);
            let node =
                Step::Call(Call { output: said(&step, spot, key), model, ..Call::default() });
            call = Some(self.cursor.push(script, spot, node));
            self.begun = true;
        } else if boundary.is_none() || step.source == "agent" {
            self.put(script, said(&step, spot, key), spot, step.source == "system");
        }
        match boundary {
            None => self.put(script, observed(&step, spot, key), spot, false),
            Some(Boundary::Append) => {
                let segments = injected(&step, spot, key);
                self.put(script, segments, spot, false);
            }
            Some(Boundary::Unsaid) => {
                let message = "the step takes something out of the context and does not say what; the context stays as it is";
                script.draft.warn(
                    &spot.at,
                    &format!("{key}.extra.context_management"),
                    "pruning-unsaid",
                    message,
                );
                let results =
                    if step.source == "agent" { observed(&step, spot, key) } else { Vec::new() };
                self.put(script, results, spot, false);
            }
            Some(boundary) => self.rewrite(script, &step, boundary, call, spot, key),
        }
    }

    fn put(&mut self, script: &mut Script, segments: Vec<Segment>, spot: &Spot, head: bool) {
        if segments.is_empty() {
            return;
        }
        let node = self.cursor.push(script, spot, Step::Put(segments));
        if head && !self.begun {
            self.heads.push(node);
        } else {
            self.begun = true;
        }
    }

    fn rewrite(
        &mut self,
        script: &mut Script,
        step: &TrajectoryStep,
        boundary: Boundary,
        call: Option<usize>,
        spot: &Spot,
        key: &str,
    ) {
        let mut items: Vec<Item> = self.heads.iter().copied().map(Item::Of).collect();
        let put =
            if boundary == Boundary::Replace { observed(step, spot, key) } else { Vec::new() };
        let kind = if put.is_empty() { ReplacementKind::None } else { ReplacementKind::Summary };
        // A summary is the harness's message to the policy, whatever wrote it.
        let told = |mut segment: Segment| {
            (segment.role, segment.result_of) = (Role::User, None);
            segment.origin = Origin::Harness;
            segment
        };
        items.push(Item::New(put.into_iter().map(told).collect()));
        let author = call.map_or_else(|| Author::Known(By::new(ByKind::Unknown)), Author::Of);
        let list = List { items, change: Change::new(kind).by(author) };
        self.cursor.push(script, spot, Step::List(Box::new(list)));
    }
}

/// What a step itself says.
fn said(step: &TrajectoryStep, spot: &Spot, key: &str) -> Vec<Segment> {
    let message = text(&step.message);
    let mut segments = Vec::new();
    match step.source.as_str() {
        "agent" => {
            let reasoning = step.reasoning_content.as_deref().filter(|text| !text.is_empty());
            segments.extend(reasoning.map(|text| script::said(SegmentPart::Reasoning, text)));
            if !message.is_empty() {
                segments.push(script::said(SegmentPart::Content, message));
            }
            for call in step.tool_calls.iter().flatten() {
                let arguments =
                    if call.arguments.is_null() { "{}".into() } else { call.arguments.to_string() };
                segments.push(script::call(&call.tool_call_id, &call.function_name, &arguments));
            }
        }
        "system" => segments.push(script::text(Role::System, Origin::Harness, message)),
        _ => segments.push(script::text(Role::User, Origin::Human, message)),
    }
    if !step.is_call() && step.source == "agent" {
        let origin = if step.is_copied_context == Some(true) {
            Origin::ExternalModel
        } else {
            Origin::Harness
        };
        segments.iter_mut().for_each(|segment| segment.origin = origin);
    }
    segments.into_iter().map(|segment| spot.segment(key, segment)).collect()
}

/// What a step observed.
fn observed(step: &TrajectoryStep, spot: &Spot, key: &str) -> Vec<Segment> {
    let results = step.observation.iter().flat_map(|observation| &observation.results);
    let observed = results.enumerate().filter(|(_, result)| !result.content.is_null()).map(
        |(index, result)| {
            let content = text(&result.content);
            let segment = match &result.source_call_id {
                Some(call) => script::result(call, content, false),
                None => script::text(Role::User, Origin::Environment, content),
            };
            spot.segment(format!("{key}.observation.results[{index}]"), segment)
        },
    );
    observed.collect()
}

/// What a step adds to the context from outside: its observation, else its message.
fn injected(step: &TrajectoryStep, spot: &Spot, key: &str) -> Vec<Segment> {
    let observed = observed(step, spot, key);
    if !observed.is_empty() || step.source == "agent" {
        return observed;
    }
    vec![spot.segment(key, script::text(Role::User, Origin::Harness, text(&step.message)))]
}

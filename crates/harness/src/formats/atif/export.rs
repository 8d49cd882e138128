//! From a tree of contexts to a trajectory.
use std::io::Write;

use indexmap::IndexMap;
use pleach_tree::{
    BranchTree, Evict, Generation, Part, Record, ReplacementKind, Role, Segment, SegmentId,
};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};

use super::skeleton::{self, At};
use crate::HarnessError;

/// Writes a tree as one ATIF trajectory, version 1.7, whose reading gives the same records.
///
/// The first thread is the trajectory itself, every other one a sub-agent's. Token ids, where they
/// are known, are in the metrics.
///
/// # Errors
/// [`HarnessError::Write`] where `writer` fails.
pub fn write(tree: &BranchTree, mut writer: impl Write) -> Result<(), HarnessError> {
    let trajectory =
        Export::new(tree).trajectory().map_err(|error| HarnessError::Write(error.into()))?;
    serde_json::to_writer(&mut writer, &trajectory)
        .map_err(|error| HarnessError::Write(error.into()))?;
    writer.write_all(b"\n").and_then(|()| writer.flush()).map_err(HarnessError::Write)
}

type Thread = (String, String);

struct Export<'t> {
    tree: &'t BranchTree,
    /// The thread that first holds a segment.
    threads: FxHashMap<SegmentId, Thread>,
    /// The eviction that puts a segment in.
    put: FxHashMap<SegmentId, usize>,
    steps: IndexMap<Thread, Vec<Map<String, Value>>>,
    /// The step that makes a tool call.
    calls: FxHashMap<String, (Thread, usize)>,
    /// Where the text of a segment stands: thread, pointer behind the steps, range.
    texts: FxHashMap<SegmentId, (Thread, At)>,
    tokens: FxHashMap<SegmentId, (Thread, At)>,
    logprobs: FxHashMap<SegmentId, (Thread, At)>,
}

impl<'t> Export<'t> {
    fn new(tree: &'t BranchTree) -> Self {
        let (mut threads, mut put) = (FxHashMap::default(), FxHashMap::default());
        for generation in tree.generations() {
            let thread = || (generation.rollout.clone(), generation.thread.clone());
            for &segment in &generation.output {
                threads.entry(segment).or_insert_with(thread);
            }
            for span in tree.spans(generation.context).unwrap_or_default() {
                threads.entry(span.segment).or_insert_with(thread);
            }
        }
        for (index, record) in tree.records().iter().enumerate() {
            if let Record::Evict(evict) = record {
                let segments =
                    evict.replacement.iter().flat_map(|replacement| &replacement.segments);
                for &segment in segments.filter(|id| tree.owner(**id).is_none()) {
                    put.entry(segment).or_insert(index);
                }
            }
        }
        let steps = IndexMap::from([(first(tree), Vec::new())]);
        let (calls, texts) = (FxHashMap::default(), FxHashMap::default());
        Self {
            tree,
            threads,
            put,
            steps,
            calls,
            texts,
            tokens: FxHashMap::default(),
            logprobs: FxHashMap::default(),
        }
    }

    fn trajectory(mut self) -> Result<Value, serde_json::Error> {
        for (index, record) in self.tree.records().iter().enumerate() {
            match record {
                Record::Segment(segment)
                    if self.tree.owner(segment.id).is_none()
                        && !self.put.contains_key(&segment.id) =>
                {
                    self.given(segment);
                }
                Record::Generation(generation) => self.call(generation),
                Record::Evict(evict) => self.evict(evict, index),
                _ => {}
            }
        }
        let order: Vec<Thread> = self.steps.keys().cloned().collect();
        let root = |thread: &Thread| match order.iter().position(|other| other == thread) {
            Some(0) | None => "/steps".to_owned(),
            Some(at) => format!("/subagent_trajectories/{}/steps", at - 1),
        };
        let mut trajectory = self.whole();
        let mut records = Vec::with_capacity(self.tree.records().len());
        for record in self.tree.records() {
            let mut places = Vec::new();
            if let Record::Segment(segment) = record {
                for (key, held) in
                    [("text", &self.texts), ("tokens", &self.tokens), ("logprobs", &self.logprobs)]
                {
                    if let Some((thread, at)) = held.get(&segment.id) {
                        places.push((
                            key,
                            At { pointer: format!("{}{}", root(thread), at.pointer), ..at.clone() },
                        ));
                    }
                }
            }
            records.push(skeleton::of(record, &places, &trajectory)?);
        }
        trajectory["extra"] = json!({"eviction_records": {"version": 1, "records": records}});
        Ok(trajectory)
    }

    fn whole(&self) -> Value {
        let header = self.tree.header();
        let model = self.tree.generations().find_map(|generation| generation.policy.as_deref());
        let agent = json!({
            "name": header.harness,
            "version": header.harness_version.as_deref().unwrap_or("unknown"),
            "model_name": model,
        });
        let one = |thread: &Thread, steps: &Vec<Map<String, Value>>| json!({"schema_version": "ATIF-v1.7", "session_id": thread.0, "trajectory_id": thread.1, "agent": agent, "steps": steps});
        let mut all = self.steps.iter().map(|(thread, steps)| one(thread, steps));
        let mut root = all.next().unwrap_or_else(|| json!({}));
        let others: Vec<Value> = all.collect();
        if !others.is_empty() {
            root["subagent_trajectories"] = others.into();
        }
        root
    }

    fn thread(&self, segment: SegmentId) -> Thread {
        self.threads.get(&segment).cloned().unwrap_or_else(|| first(self.tree))
    }

    fn push(&mut self, thread: &Thread, mut step: Map<String, Value>) -> usize {
        let steps = self.steps.entry(thread.clone()).or_default();
        step.shift_insert(0, "step_id".into(), (steps.len() + 1).into());
        steps.push(step);
        steps.len() - 1
    }

    /// A step for what a context is given, or a result in the step that made the call.
    fn given(&mut self, segment: &Segment) {
        let text = segment.text.clone().unwrap_or_default();
        let caller = segment.result_of.as_ref().and_then(|call| self.calls.get(call)).cloned();
        if let Some((thread, step)) =
            caller.filter(|(thread, _)| *thread == self.thread(segment.id))
        {
            let result = json!({"source_call_id": segment.result_of, "content": text});
            let at = self.observe(&thread, step, result);
            self.text(segment, thread, at);
            return;
        }
        let source = if segment.role == Role::System { "system" } else { "user" };
        let thread = self.thread(segment.id);
        let step = self.push(&thread, object(json!({"source": source, "message": text})));
        self.text(segment, thread, format!("/{step}/message"));
    }

    fn observe(&mut self, thread: &Thread, step: usize, result: Value) -> String {
        let steps = self.steps.entry(thread.clone()).or_default();
        let observation =
            steps[step].entry("observation").or_insert_with(|| json!({"results": []}));
        let Some(results) = observation.get_mut("results").and_then(Value::as_array_mut) else {
            return String::new();
        };
        results.push(result);
        format!("/{step}/observation/results/{}/content", results.len() - 1)
    }

    fn text(&mut self, segment: &Segment, thread: Thread, pointer: String) {
        let end = segment.text.as_ref().map_or(0, String::len);
        self.texts.insert(segment.id, (thread, At { pointer, start: 0, end }));
    }

    fn call(&mut self, generation: &Generation) {
        let thread = (generation.rollout.clone(), generation.thread.clone());
        let step = self.steps.get(&thread).map_or(0, Vec::len);
        let (mut message, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
        for segment in generation.output.iter().filter_map(|&id| self.tree.segment(id)) {
            let text = segment.text.as_deref().unwrap_or_default();
            let call = if segment.part == Some(Part::ToolCall) {
                skeleton::tool_call(segment)
            } else {
                None
            };
            let at = match (call, segment.part) {
                (Some(call), _) => {
                    calls.push(call);
                    At {
                        pointer: format!("/{step}/tool_calls/{}", calls.len() - 1),
                        start: 0,
                        end: 0,
                    }
                }
                (None, Some(Part::Reasoning)) => {
                    joined(&mut reasoning, text, format!("/{step}/reasoning_content"))
                }
                (None, _) => joined(&mut message, text, format!("/{step}/message")),
            };
            self.texts.entry(segment.id).or_insert((thread.clone(), at));
            for call in &segment.calls {
                self.calls.insert(call.clone(), (thread.clone(), step));
            }
        }
        let mut fields = object(
            json!({"source": "agent", "model_name": generation.policy, "message": message, "llm_call_count": 1}),
        );
        if !reasoning.is_empty() {
            fields.insert("reasoning_content".into(), reasoning.into());
        }
        if !calls.is_empty() {
            fields.insert("tool_calls".into(), calls.into());
        }
        if let Some(metrics) = self.metrics(generation, &thread, step) {
            fields.insert("metrics".into(), metrics);
        }
        self.push(&thread, fields);
    }

    /// The ids of a call, where all of them are known.
    fn metrics(&mut self, generation: &Generation, thread: &Thread, step: usize) -> Option<Value> {
        let spans = self.tree.spans(generation.context)?;
        let known =
            |id: &SegmentId| self.tree.segment(*id).is_some_and(|segment| segment.tokens.is_some());
        if !spans.iter().all(|span| known(&span.segment)) || !generation.output.iter().all(known) {
            return None;
        }
        let (mut prompt, mut completion, mut logprobs) = (Vec::new(), Vec::new(), Some(Vec::new()));
        for span in &spans {
            let ids = self.tree.tokens(*span);
            if span.start == 0
                && self
                    .tree
                    .segment(span.segment)
                    .is_some_and(|segment| segment.extent() == ids.len())
            {
                let at = At {
                    pointer: format!("/{step}/metrics/prompt_token_ids"),
                    start: prompt.len(),
                    end: prompt.len() + ids.len(),
                };
                self.tokens.entry(span.segment).or_insert((thread.clone(), at));
            }
            prompt.extend_from_slice(ids);
        }
        for segment in generation.output.iter().filter_map(|&id| self.tree.segment(id)) {
            let ids = segment.tokens.as_deref().unwrap_or_default();
            let (start, end) = (completion.len(), completion.len() + ids.len());
            let at = |list: &str| {
                (thread.clone(), At { pointer: format!("/{step}/metrics/{list}"), start, end })
            };
            self.tokens.entry(segment.id).or_insert_with(|| at("completion_token_ids"));
            self.logprobs.entry(segment.id).or_insert_with(|| at("logprobs"));
            logprobs = logprobs
                .zip(segment.logprobs.as_ref())
                .map(|(all, own)| [all, own.clone()].concat());
            completion.extend_from_slice(ids);
        }
        let mut metrics =
            object(json!({"prompt_token_ids": prompt, "completion_token_ids": completion}));
        if let Some(logprobs) = logprobs {
            metrics.insert("logprobs".into(), logprobs.into());
        }
        Some(Value::Object(metrics))
    }

    /// A step that says that the context changed; what was put in is its observation.
    fn evict(&mut self, evict: &Evict, index: usize) {
        let replacement = evict.replacement.as_ref();
        let segments: Vec<&Segment> = replacement
            .iter()
            .flat_map(|replacement| &replacement.segments)
            .filter_map(|&id| self.tree.segment(id))
            .collect();
        let behind = self.tree.spans(evict.context).unwrap_or_default();
        let held = segments
            .iter()
            .map(|segment| segment.id)
            .find(|id| self.put.contains_key(id))
            .or(behind.first().map(|span| span.segment));
        let thread = held.map_or_else(|| first(self.tree), |id| self.thread(id));
        let summary =
            replacement.is_some_and(|replacement| replacement.kind == ReplacementKind::Summary);
        let kind = if summary { "compaction" } else { "pruning" };
        let mut management = object(json!({"type": kind}));
        let put: Vec<SegmentId> =
            replacement.map_or_else(Vec::new, |replacement| replacement.segments.clone());
        let is_system = |id: SegmentId| {
            self.tree.segment(id).is_some_and(|segment| segment.role == Role::System)
        };
        if behind.iter().all(|span| put.contains(&span.segment) || is_system(span.segment)) {
            management.insert("boundary".into(), "replace".into());
        }
        let message = if summary {
            "The context was compacted."
        } else {
            "A part of the context was taken out."
        };
        let fields = json!({"source": "system", "message": message, "extra": {"context_management": management}});
        let step = self.push(&thread, object(fields));
        for segment in segments {
            let result = json!({"content": segment.text.as_deref().unwrap_or_default()});
            let at = self.observe(&thread, step, result);
            if self.put.get(&segment.id) == Some(&index) {
                self.text(segment, thread.clone(), at);
            }
        }
    }
}

/// The thread of the first call, or of a file without one.
fn first(tree: &BranchTree) -> Thread {
    let of = |generation: &Generation| (generation.rollout.clone(), generation.thread.clone());
    tree.generations().next().map_or_else(|| ("r0".into(), "main".into()), of)
}

/// Adds a text behind others and tells where it stands.
fn joined(all: &mut String, text: &str, pointer: String) -> At {
    if !all.is_empty() {
        all.push('\n');
    }
    let start = all.len();
    all.push_str(text);
    At { pointer, start, end: all.len() }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

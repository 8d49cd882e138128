//! Trajectories of SWE-agent (`.traj`), read from its public code of 2026.
//!
//! A document is `{"trajectory":[{"query","response","action",..}],"history":[..],"info"}`. A step
//! is a call of the model: `query` (`messages` in some versions) is the list that its history
//! processors made, `response` the text of the answer.
//!
//! # What a trajectory becomes
//! - The context of a call is its query. What history processors took out of it, such as old
//!   observations for which a line stands, is found by comparing queries, so it is `inferred`: see
//!   [`crate::core::prompts`].
//! - What a call said is in `history`, with its tool calls and thinking; an answer that the harness
//!   refused is in no history, so only its text is known.
//! - A step without a query was written by the harness as it ended the run, and is no call.
//! - `attempts` are rollouts; the steps beside them are a copy of the chosen one.
//! - Where steps hold no queries, as before version 1.0, calls see the whole history, whatever the
//!   processors did, which a warning says.
//!
//! The tools that were sent with the queries are not recorded.
use std::sync::Arc;

use pleach_tree::{Extra, Fidelity, Location, Origin, Part, ReadOptions, Segment};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use crate::core::draft::Draft;
use crate::core::format::Format;
use crate::core::prompts::{Call, Lineage, Messages, Prompts, Said};
use crate::core::script::{self, Spot};
use crate::core::shape::{Kind, Shape};
use crate::formats::requests::{chat, parts};
use crate::{Conversion, HarnessError, Input};

/// How a trajectory of SWE-agent is told from other files.
pub(crate) const FORMAT: Format =
    Format::new("swe-agent", "a trajectory of SWE-agent", is_trajectory, convert);

fn is_trajectory(shape: &Shape) -> bool {
    let steps = shape.has_all(&["trajectory[].action", "trajectory[].observation"])
        && (shape.has("trajectory[].response") || shape.has("trajectory[].thought"));
    let list = |key: &str| shape.kind(key) == Some(Kind::List);
    steps || list("attempts[].trajectory") && list("attempts[].history")
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let member = input.main();
    let mut draft = Draft::new("swe-agent", Fidelity::Inferred, options);
    let file = draft.file(&member);
    let mut report = draft.report.take();
    let mut runs = Runs {
        draft,
        prompts: Prompts::default(),
        count: 0,
        with_tools: None,
        media: FxHashMap::default(),
        with_media: None,
    };
    member.values(options, &mut report, |value: Value, at, _| {
        runs.document(&value, &Spot { file, at: at.clone() });
    })?;
    runs.draft.report.diagnostics.append(&mut report.diagnostics);
    runs.tell();
    let Runs { mut draft, prompts, .. } = runs;
    prompts.finish(&mut draft);
    draft.finish()
}

/// The runs of a file, each a rollout.
struct Runs {
    draft: Draft,
    prompts: Prompts<Messages>,
    count: usize,
    /// Where a tool is called first.
    with_tools: Option<Location>,
    /// Parts of messages that are no text, and where one was seen first.
    media: FxHashMap<u64, String>,
    with_media: Option<Location>,
}

/// A call of the model as a run records it.
struct Asked<'v> {
    query: Vec<&'v Value>,
    said: Vec<Segment>,
    unrecorded: Vec<String>,
    key: String,
}

impl Runs {
    fn document(&mut self, value: &Value, spot: &Spot) {
        let model = model(value);
        let attempts = value.get("attempts").and_then(Value::as_array);
        match attempts.filter(|attempts| !attempts.is_empty()) {
            Some(attempts) => {
                for (index, attempt) in attempts.iter().enumerate() {
                    self.run(attempt, model.as_ref(), &format!("attempts[{index}]."), spot);
                }
            }
            None => self.run(value, model.as_ref(), "", spot),
        }
    }

    fn run(&mut self, run: &Value, model: Option<&Arc<str>>, key: &str, spot: &Spot) {
        let Some(steps) = run.get("trajectory").and_then(Value::as_array) else {
            let key = format!("{key}trajectory");
            let why = "the value holds no trajectory; it is left out";
            self.draft.fault(&spot.at, &key, "no-trajectory", why);
            return;
        };
        let history = run.get("history").and_then(Value::as_array);
        let history = own(history.map_or(&[][..], Vec::as_slice));
        let rollout = format!("r{}", self.count);
        self.count += 1;
        let asked = match steps.iter().any(|step| query(step).is_some()) {
            true => self.steps(steps, &history, key, spot),
            false => self.history(&history, key, spot),
        };
        for asked in asked {
            self.call(asked, &rollout, model, spot);
        }
    }

    /// The calls of steps that hold their queries.
    fn steps<'v>(
        &mut self,
        steps: &'v [Value],
        history: &[&'v Value],
        key: &str,
        spot: &Spot,
    ) -> Vec<Asked<'v>> {
        let mut answers = history.iter().copied().filter(|item| is_answer(item)).peekable();
        let calls_tools = history.iter().any(|item| calls_tools(item));
        let mut asked = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            let key = format!("{key}trajectory[{index}]");
            if !step.is_object() {
                let why = "the step is no object; it is left out";
                self.draft.fault(&spot.at, &key, "no-step", why);
                continue;
            }
            let answer = answers.next_if(|item| is_of(item, step));
            let Some(query) = query(step) else {
                let why = "the step has no query, as where the harness ends a run; it is no call";
                self.draft.warn(&spot.at, &format!("{key}.query"), "no-query", why);
                continue;
            };
            let mut unrecorded = Vec::new();
            let mut said = match answer {
                Some(item) => message(item, true),
                None => {
                    if calls_tools {
                        unrecorded.push("tool_calls".into());
                    }
                    let text = parts::field(step, "response");
                    let said = (!text.is_empty()).then(|| script::said(Part::Content, text));
                    said.into_iter().collect()
                }
            };
            let reasoning = parts::field(step, "reasoning_content");
            let is_reasoning = |part: &Segment| part.part == Some(Part::Reasoning);
            if !reasoning.is_empty() && !said.iter().any(is_reasoning) {
                let reasoning = script::said(Part::Reasoning, reasoning);
                said.insert(0, Segment { origin: Origin::Policy, ..reasoning });
            }
            asked.push(Asked { query: query.iter().collect(), said, unrecorded, key });
        }
        asked
    }

    /// The calls of a history, each behind all that stands before it.
    fn history<'v>(&mut self, history: &[&'v Value], key: &str, spot: &Spot) -> Vec<Asked<'v>> {
        let key = format!("{key}history");
        let why = "the steps hold no queries: every call is taken to have seen the whole history, and what history processors left out of it is not recorded";
        self.draft.warn(&spot.at, &key, "queries-not-recorded", why);
        let answers = history.iter().enumerate().filter(|(_, item)| is_answer(item));
        answers
            .map(|(index, item)| Asked {
                query: history[..index].to_vec(),
                said: message(item, true),
                unrecorded: Vec::new(),
                key: format!("{key}[{index}]"),
            })
            .collect()
    }

    fn call(&mut self, asked: Asked<'_>, rollout: &str, model: Option<&Arc<str>>, spot: &Spot) {
        let Asked { query, said, mut unrecorded, key } = asked;
        if said.is_empty() {
            let why = "the answer says nothing that is recorded; it is no call";
            self.draft.warn(&spot.at, &key, "empty-answer", why);
            return;
        }
        let mut prompt = Vec::with_capacity(query.len());
        for (index, item) in query.into_iter().enumerate() {
            item.get("content")
                .into_iter()
                .for_each(|content| parts::media(content, &mut self.media));
            for segment in message(item, false) {
                let segment = spot.segment(format!("{key}.query[{index}]"), segment);
                prompt.push(self.prompts.units.unit(&segment));
            }
        }
        if !self.media.is_empty() {
            self.with_media.get_or_insert_with(|| spot.at.key(key.as_str()));
        }
        if said.iter().any(|part| !part.calls.is_empty()) {
            self.with_tools.get_or_insert_with(|| spot.at.key(key.as_str()));
        }
        let reasons =
            |part: &Segment| part.part == Some(Part::Reasoning) && part.origin != Origin::Policy;
        if said.iter().any(reasons) {
            unrecorded.push("reasoning".into());
        }
        let said = said.into_iter().map(|segment| {
            let segment = spot.segment(key.as_str(), segment);
            let unit = self.prompts.units.unit(&segment);
            Said { segment, units: vec![unit] }
        });
        let call = Call {
            rollout: rollout.to_owned(),
            thread: None,
            lineage: Lineage::default(),
            prompt,
            said: said.collect(),
            model: model.cloned(),
            unrecorded,
            spot: spot.clone(),
            key,
            extra: Extra::new(),
        };
        self.prompts.push(&mut self.draft, call);
    }

    /// Says what of the prompts is not in the file.
    fn tell(&mut self) {
        if let Some(at) = self.with_tools.take() {
            let why = "the definitions of the tools are not in the file; they stand in no context";
            self.draft.warn(&at, &at.key, "tools-not-recorded", why);
        }
        if let Some(at) = self.with_media.take() {
            self.draft.warn(&at, &at.key, "no-text", parts::media_note(&self.media));
        }
    }
}

/// The model that the configuration of a run names.
fn model(value: &Value) -> Option<Arc<str>> {
    let config = match value.get("replay_config")? {
        Value::String(text) => serde_json::from_str(text).ok()?,
        config => config.clone(),
    };
    Some(config.pointer("/agent/model/name")?.as_str()?.into())
}

/// The query of a step; an empty one is that of a step that called no model.
fn query(step: &Value) -> Option<&Vec<Value>> {
    let of = |key: &str| step.get(key).and_then(Value::as_array);
    let query = of("query").or_else(|| of("messages"))?;
    query.iter().any(|item| item.get("role").is_some()).then_some(query)
}

/// The items of a history that are of the agent whose run it is.
fn own(history: &[Value]) -> Vec<&Value> {
    let agent = history.first().map_or("", |item| parts::field(item, "agent"));
    history.iter().filter(|item| parts::field(item, "agent") == agent).collect()
}

fn is_answer(item: &Value) -> bool {
    let demo = item.get("is_demo").and_then(Value::as_bool) == Some(true);
    parts::field(item, "role") == "assistant" && !demo
}

fn calls_tools(item: &Value) -> bool {
    item.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty())
}

/// Whether an item of the history is what a step said.
fn is_of(item: &Value, step: &Value) -> bool {
    parts::field(item, "content") == parts::field(step, "response")
        && parts::field(item, "action") == parts::field(step, "action")
}

/// The parts of an item as the harness sends it: thinking goes with tool calls only, and the one
/// call of a result is its first.
fn message(item: &Value, whole: bool) -> Vec<Segment> {
    let mut fields = item.as_object().cloned().unwrap_or_default();
    let sends_thinking = whole || fields.get("tool_calls").is_some_and(|calls| !calls.is_null());
    if let Some(id) = fields.get("tool_call_ids").and_then(|ids| ids.get(0)).cloned() {
        fields.entry("tool_call_id").or_insert(id);
    }
    let mut segments = match sends_thinking {
        true => thinking(&fields),
        false => Vec::new(),
    };
    segments.extend(chat::message(&Value::Object(fields)));
    segments
}

fn thinking(fields: &Map<String, Value>) -> Vec<Segment> {
    let blocks = fields.get("thinking_blocks").and_then(Value::as_array).into_iter().flatten();
    let texts = blocks.map(|block| parts::field(block, "thinking"));
    texts.filter(|text| !text.is_empty()).map(|text| script::said(Part::Reasoning, text)).collect()
}

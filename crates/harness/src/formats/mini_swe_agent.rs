//! Trajectories of mini-SWE-agent (`.traj.json`), read from its public code of 2026, which writes
//! the formats `mini-swe-agent-1` and `mini-swe-agent-1.1`.
//!
//! A document is `{"messages":[..],"info":{"mini_version",..},"trajectory_format"}`. The harness
//! keeps one list and sends all of it, so nothing leaves: every answer is a call that sees what
//! stands before it. Messages are those of chat completions, or, with the responses API, whole
//! responses and the outputs of their calls.
//!
//! - An answer that could not be parsed is in the list only as the complaint about it. Where that
//!   holds the response, it is a call that no later one sees; else a warning says that it is lost.
//! - A message of the role `exit` ends the run and is never sent.
//!
//! The tools that are sent are in the harness's code and not in the file.
use std::sync::Arc;

use pleach_tree::{Location, ReadOptions, Segment};
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::core::format::Format;
use crate::core::script::{Call, Cursor, Script, Spot, Step};
use crate::core::shape::{Kind, Shape};
use crate::formats::requests::{chat, parts, responses};
use crate::{Conversion, HarnessError, Input};

/// How a trajectory of mini-SWE-agent is told from other files.
pub(crate) const FORMAT: Format =
    Format::new("mini-swe-agent", "a trajectory of mini-SWE-agent", is_trajectory, convert);

fn is_trajectory(shape: &Shape) -> bool {
    let named =
        shape.text("trajectory_format").is_some_and(|text| text.starts_with("mini-swe-agent"));
    named || shape.kind("messages") == Some(Kind::List) && shape.has("info.mini_version")
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let member = input.main();
    let mut script = Script::new("mini-swe-agent", options);
    let file = script.draft.file(&member);
    let mut report = script.draft.report.take();
    let mut runs = MiniRuns::default();
    member.values(options, &mut report, |value: Value, at, _| {
        runs.run(&mut script, &value, &Spot { file, at: at.clone() });
    })?;
    script.draft.report.diagnostics.append(&mut report.diagnostics);
    runs.tell(&mut script);
    script.play()
}

/// The runs of a file, each a rollout.
#[derive(Default)]
struct MiniRuns {
    count: usize,
    /// Where a tool is called first.
    with_tools: Option<Location>,
    /// Parts of messages that are no text, and where one was seen first.
    media: FxHashMap<u64, String>,
    with_media: Option<Location>,
}

impl MiniRuns {
    fn run(&mut self, script: &mut Script, run: &Value, spot: &Spot) {
        let Some(messages) = run.get("messages").and_then(Value::as_array) else {
            let why = "the value holds no list of messages; it is left out";
            script.draft.fault(&spot.at, "messages", "no-messages", why);
            return;
        };
        if run.get("segments").is_some_and(|segments| !segments.is_null()) {
            let why = "lists of earlier messages are nothing that the harness itself writes; they are not read";
            script.draft.warn(&spot.at, "segments", "unknown-key", why);
        }
        let rollout = format!("r{}", self.count);
        let conversation =
            if self.count == 0 { 0 } else { script.conversation_of(&rollout, "main") };
        self.count += 1;
        let model = run.pointer("/info/config/model/model_name").and_then(Value::as_str);
        let model: Option<Arc<str>> = model.map(Into::into);
        let mut cursor = Cursor::new(conversation);
        for (index, message) in messages.iter().enumerate() {
            let key = format!("messages[{index}]");
            for step in self.message(script, message, &key, spot) {
                let step = match step {
                    Step::Call(call) => Step::Call(Call { model: model.clone(), ..call }),
                    step => step,
                };
                cursor.push(script, spot, step);
            }
        }
    }

    /// What a message does.
    fn message(
        &mut self,
        script: &mut Script,
        message: &Value,
        key: &str,
        spot: &Spot,
    ) -> Vec<Step> {
        if !message.is_object() {
            let why = "the message is no object; it is left out";
            script.draft.fault(&spot.at, key, "no-message", why);
            return Vec::new();
        }
        for name in ["content", "output"] {
            message.get(name).into_iter().for_each(|part| parts::media(part, &mut self.media));
        }
        if !self.media.is_empty() {
            self.with_media.get_or_insert_with(|| spot.at.key(key));
        }
        if let Some(said) = response(message) {
            return self.answer(script, said, false, key, spot).into_iter().collect();
        }
        let segments = match (parts::field(message, "role"), parts::field(message, "type")) {
            ("exit", _) => return Vec::new(),
            ("assistant", _) => {
                let said = chat::message(message);
                return self.answer(script, said, false, key, spot).into_iter().collect();
            }
            ("system" | "developer" | "user" | "tool", _) => chat::message(message),
            ("", kind) if !kind.is_empty() => vec![responses::item(message)],
            (role, _) => {
                script.unknown(role, &spot.at.key(format!("{key}.role")));
                return Vec::new();
            }
        };
        let mut steps = Vec::new();
        if message.pointer("/extra/interrupt_type").and_then(Value::as_str) == Some("FormatError") {
            steps.extend(self.refused(script, message, key, spot));
        }
        let segments = segments.into_iter().map(|segment| spot.segment(key, segment)).collect();
        steps.push(Step::Put(segments));
        steps
    }

    /// The call whose answer a message complains of.
    fn refused(
        &mut self,
        script: &mut Script,
        message: &Value,
        key: &str,
        spot: &Spot,
    ) -> Option<Step> {
        let text = || message.pointer("/extra/model_response");
        let said = match message.pointer("/extra/response") {
            Some(body) => match body.pointer("/choices/0/message") {
                Some(message) => chat::message(message),
                None => response(body).unwrap_or_default(),
            },
            None => match text().and_then(Value::as_str).filter(|text| !text.is_empty()) {
                Some(text) => {
                    chat::message(&serde_json::json!({"role": "assistant", "content": text}))
                }
                None => Vec::new(),
            },
        };
        if said.is_empty() {
            let why = "the answer that could not be parsed is not in the file; it is no call";
            script.draft.warn(&spot.at, key, "failed-call", why);
            return None;
        }
        self.answer(script, said, true, &format!("{key}.extra"), spot)
    }

    fn answer(
        &mut self,
        script: &mut Script,
        said: Vec<Segment>,
        dropped: bool,
        key: &str,
        spot: &Spot,
    ) -> Option<Step> {
        if said.is_empty() {
            let why = "the answer says nothing; it is no call and stands in no context";
            script.draft.warn(&spot.at, key, "empty-answer", why);
            return None;
        }
        if said.iter().any(|part| !part.calls.is_empty()) {
            self.with_tools.get_or_insert_with(|| spot.at.key(key));
        }
        let is_said = said.iter().any(parts::by_model);
        let output = said.into_iter().map(|segment| spot.segment(key, segment)).collect();
        if !is_said {
            let why = "nothing of the answer was said by a model; it stands in the context and is no call";
            script.draft.fault(&spot.at, key, "no-answer", why);
            return (!dropped).then_some(Step::Put(output));
        }
        Some(Step::Call(Call { output, dropped, ..Call::default() }))
    }

    /// Says what of the prompts is not in the file.
    fn tell(self, script: &mut Script) {
        if let Some(at) = self.with_tools {
            let why = "the definitions of the tools are not in the file; they stand in no context";
            script.draft.warn(&at, &at.key, "tools-not-recorded", why);
        }
        if let Some(at) = self.with_media {
            script.draft.warn(&at, &at.key, "no-text", parts::media_note(&self.media));
        }
    }
}

/// What a response of the responses API says, where a value is one.
fn response(value: &Value) -> Option<Vec<Segment>> {
    let output = value.get("output").and_then(Value::as_array);
    let output = output.filter(|_| parts::field(value, "object") == "response")?;
    Some(output.iter().map(responses::item).collect())
}

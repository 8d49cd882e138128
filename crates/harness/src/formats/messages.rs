//! Lists of messages with nothing around them, as sets of conversations on Hugging Face and files
//! for fine-tuning hold them.
//!
//! A line, a document or an item of a list is `{"messages":[{"role","content"}],"tools"?}`, in the
//! chat format of OpenAI: `tool_calls` with arguments as text or as an object, results under
//! `tool_call_id`, `reasoning_content`; `tools` as a list, or as its JSON in a string.
//!
//! # What a list becomes
//! - A rollout of its own in which nothing leaves: every message stands behind those before it,
//!   the tools at the head.
//! - Every message of the assistant is a call, as it is what such a file trains. One of `"weight":0`
//!   is not, as in the files that OpenAI's fine-tuning takes: it is context by another model.
use std::collections::BTreeMap;

use pleach_tree::{Location, Origin, ReadOptions, Segment};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use crate::core::format::Format;
use crate::core::script::{Call, Cursor, Script, Spot, Step};
use crate::core::shape::Shape;
use crate::formats::requests::{chat, parts};
use crate::{Conversion, HarnessError, Input};

/// How such lists are told from other files.
pub(crate) const FORMAT: Format =
    Format::new("messages", "conversations as lists of messages", is_list, convert);

const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];

/// The keys of a message that are read, or that say nothing of what a model saw.
const KEYS: [&str; 12] = [
    "role",
    "content",
    "reasoning_content",
    "reasoning",
    "tool_calls",
    "function_call",
    "tool_call_id",
    "name",
    "weight",
    "refusal",
    "audio",
    "annotations",
];

/// What stands beside the messages of a log of requests, or of another harness's file.
const OTHERS: [&str; 9] = [
    "request",
    "response",
    "error",
    "stream",
    "max_tokens",
    "harness",
    "segment_type",
    "trajectory_format",
    "sessionId",
];

fn is_list(shape: &Shape) -> bool {
    ["", "[]."].into_iter().any(|at| {
        let key = |key: &str| format!("{at}{key}");
        shape.is(&key("messages[].role"), &ROLES)
            && (shape.kind(&key("messages[].content")).is_some()
                || shape.has(&key("messages[].tool_calls")))
            && OTHERS.iter().all(|other| shape.kind(&key(other)).is_none())
    })
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let member = input.main();
    let mut script = Script::new("messages", options);
    let file = script.draft.file(&member);
    let mut report = script.draft.report.take();
    let mut lists = Lists::default();
    member.values(options, &mut report, |value: Value, at, _| {
        lists.value(&mut script, value, "", &Spot { file, at: at.clone() });
    })?;
    script.draft.report.diagnostics.append(&mut report.diagnostics);
    lists.tell(&mut script);
    script.play()
}

/// The lists of a file, each a rollout.
#[derive(Default)]
struct Lists {
    count: usize,
    /// Keys of messages that are not read, how often each was met, and where first.
    keys: BTreeMap<String, (Location, u64)>,
    /// Parts of messages that are no text, and where a list with one was seen first.
    media: FxHashMap<u64, String>,
    with_media: Option<Location>,
}

impl Lists {
    fn value(&mut self, script: &mut Script, value: Value, key: &str, spot: &Spot) {
        match value {
            Value::Array(values) if key.is_empty() => {
                for (index, value) in values.into_iter().enumerate() {
                    self.value(script, value, &format!("[{index}]."), spot);
                }
            }
            Value::Object(mut fields) => match fields.shift_remove("messages") {
                Some(Value::Array(messages)) => self.list(script, fields, &messages, key, spot),
                _ => no_messages(script, key, spot),
            },
            _ => no_messages(script, key, spot),
        }
    }

    fn list(
        &mut self,
        script: &mut Script,
        mut fields: Map<String, Value>,
        messages: &[Value],
        key: &str,
        spot: &Spot,
    ) {
        let rollout = format!("r{}", self.count);
        let conversation =
            if self.count == 0 { 0 } else { script.conversation_of(&rollout, "main") };
        self.count += 1;
        let mut cursor = Cursor::new(conversation);
        unpack_tools(script, &mut fields, key, spot);
        if let Some(tools) = parts::tools(&fields) {
            let tools = spot.segment(format!("{key}tools"), tools);
            cursor.push(script, spot, Step::Put(vec![tools]));
        }
        for (index, message) in messages.iter().enumerate() {
            let key = format!("{key}messages[{index}]");
            if let Some(step) = self.message(script, message, &key, spot) {
                cursor.push(script, spot, step);
            }
        }
    }

    /// What a message does, where it does anything.
    fn message(
        &mut self,
        script: &mut Script,
        message: &Value,
        key: &str,
        spot: &Spot,
    ) -> Option<Step> {
        let Some(fields) = message.as_object() else {
            let why = "the message is no object; it is left out";
            script.draft.fault(&spot.at, key, "no-message", why);
            return None;
        };
        for (name, _) in fields.iter().filter(|(_, value)| !value.is_null()) {
            if !KEYS.contains(&name.as_str()) {
                let at = || (spot.at.clone().key(format!("{key}.{name}")), 0);
                self.keys.entry(name.clone()).or_insert_with(at).1 += 1;
            }
        }
        let role = parts::field(message, "role");
        if !ROLES.contains(&role) {
            let why = format!("the role {role:?} is not known; the message stands as a user's");
            script.draft.warn(&spot.at, &format!("{key}.role"), "unknown-role", why);
        }
        fields
            .get("content")
            .into_iter()
            .for_each(|content| parts::media(content, &mut self.media));
        if !self.media.is_empty() {
            self.with_media.get_or_insert_with(|| spot.at.clone().key(key));
        }
        let segments = chat::message(message).into_iter();
        let segments: Vec<Segment> = segments.map(|segment| spot.segment(key, segment)).collect();
        if role != "assistant" {
            return Some(Step::Put(segments));
        }
        if segments.is_empty() {
            let why = "the assistant says nothing; the message is no call and stands in no context";
            script.draft.warn(&spot.at, key, "empty-answer", why);
            return None;
        }
        if fields.get("weight").and_then(Value::as_f64) == Some(0.0) {
            let given = |segment| Segment { origin: Origin::ExternalModel, ..segment };
            return Some(Step::Put(segments.into_iter().map(given).collect()));
        }
        Some(Step::Call(Call { output: segments, ..Call::default() }))
    }

    /// Says what of the messages is not read.
    fn tell(self, script: &mut Script) {
        for (name, (at, count)) in self.keys {
            let message = format!(
                "{name:?} of a message is not known to this adapter ({count}); it stands in no context"
            );
            script.draft.warn(&at, &at.key, "unknown-key", message);
        }
        if let Some(at) = self.with_media {
            script.draft.warn(&at, &at.key, "no-text", parts::media_note(&self.media));
        }
    }
}

fn no_messages(script: &mut Script, key: &str, spot: &Spot) {
    let key = format!("{key}messages");
    let why = "the value holds no list of messages; it is left out";
    script.draft.fault(&spot.at, &key, "no-messages", why);
}

/// Tools that stand as JSON in a string, as sets with one type a column have them, as a list.
fn unpack_tools(script: &mut Script, fields: &mut Map<String, Value>, key: &str, spot: &Spot) {
    for name in ["tools", "functions"] {
        let Some(value) = fields.get_mut(name) else { continue };
        match value {
            Value::Null | Value::Array(_) => {}
            Value::String(text) if text.trim().is_empty() => {}
            Value::String(text) => match serde_json::from_str(text) {
                Ok(tools @ (Value::Array(_) | Value::Null)) => *value = tools,
                _ => no_tools(script, &format!("{key}{name}"), spot),
            },
            _ => no_tools(script, &format!("{key}{name}"), spot),
        }
    }
}

fn no_tools(script: &mut Script, key: &str, spot: &Spot) {
    let why = "the tools are no list; they stand in no context";
    script.draft.fault(&spot.at, key, "no-tools", why);
}

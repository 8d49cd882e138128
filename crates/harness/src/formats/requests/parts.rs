//! Content as text.
use std::hash::BuildHasher;

use pleach_tree::{Origin, Role, Segment, Source};
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde_json::{Map, Value};

use crate::core::script;
use crate::core::wording::leave_out_data;

/// The texts of a content: one for a string, one for each block.
pub(super) fn texts(content: Option<&Value>) -> Vec<String> {
    match content {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(blocks)) => blocks.iter().map(block).collect(),
        Some(other) => vec![block(other)],
    }
}

/// One text for all of a content.
pub(super) fn joined(content: Option<&Value>) -> String {
    texts(content).join("\n")
}

/// The text of a block; of one that has none, its JSON without the data.
pub(super) fn block(block: &Value) -> String {
    if let Some(text) = block
        .as_str()
        .or_else(|| ["text", "refusal"].iter().find_map(|key| block.get(*key)?.as_str()))
    {
        return text.to_owned();
    }
    let mut block = block.clone();
    if let Value::Object(fields) = &mut block {
        fields.shift_remove("cache_control");
    }
    leave_out_data("", &mut block);
    block.to_string()
}

/// Segments of one message, which is not joined with the next one whatever their roles.
pub(super) fn of_message(index: usize, segments: Vec<Segment>) -> Vec<Segment> {
    let key = format!("messages[{index}]");
    let placed = |segment| Segment {
        source: Some(Source { file: 0, line: 0, key: key.clone() }),
        ..segment
    };
    segments.into_iter().map(placed).collect()
}

/// Leaves the last text of a prompt open where the answer goes on inside of it.
pub(super) fn continued(given: &mut [Segment]) {
    if let Some(last) = given.last_mut().filter(|last| last.role == Role::Assistant) {
        last.open = true;
    }
}

/// Names parts of messages that are no text, each once: images, sound, documents.
pub(crate) fn media(value: &Value, seen: &mut FxHashMap<u64, String>) {
    const KINDS: [&str; 5] = ["image", "audio", "video", "file", "document"];
    match value {
        Value::Array(items) => items.iter().for_each(|item| media(item, seen)),
        Value::Object(fields) => {
            let kind = field(value, "type").trim_start_matches("input_");
            if KINDS.iter().any(|known| kind.starts_with(known)) {
                seen.insert(FxBuildHasher.hash_one(value.to_string()), kind.to_owned());
            } else {
                fields.get("content").into_iter().for_each(|content| media(content, seen));
            }
        }
        _ => {}
    }
}

/// What is said of parts of messages that are no text.
pub(crate) fn media_note(media: &FxHashMap<u64, String>) -> String {
    let mut kinds: Vec<&str> = media.values().map(String::as_str).collect();
    kinds.sort_unstable();
    kinds.dedup();
    format!(
        "parts of messages ({}) are no text ({}): a note of each stands in its place, so contexts are not what the model saw there",
        media.len(),
        kinds.join(", ")
    )
}

/// Whether a part is what a model says, the policy or another one.
pub(crate) fn by_model(part: &Segment) -> bool {
    matches!(part.origin, Origin::Policy | Origin::ExternalModel)
}

/// A text field of an object, empty where there is none.
pub(crate) fn field<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The tools of a request as one instruction at its head.
pub(crate) fn tools(request: &Map<String, Value>) -> Option<Segment> {
    let tools = ["tools", "functions"]
        .iter()
        .find_map(|key| request.get(*key)?.as_array().filter(|tools| !tools.is_empty()))?;
    let mut segment = system(Value::Array(tools.clone()).to_string());
    segment.extra.insert("tools".into(), true.into());
    Some(segment)
}

/// An instruction.
pub(super) fn system(text: impl Into<String>) -> Segment {
    script::text(Role::System, Origin::Harness, text)
}

/// What a person, or a harness in a person's place, says.
pub(super) fn user(text: impl Into<String>) -> Segment {
    script::text(Role::User, Origin::Human, text)
}

/// A tool call; arguments that are no JSON are text.
pub(super) fn call(id: &str, name: &str, arguments: &str) -> Segment {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    match serde_json::from_str::<serde::de::IgnoredAny>(arguments) {
        Ok(_) => script::call(id, name, arguments),
        Err(_) => script::call(id, name, &Value::from(arguments).to_string()),
    }
}

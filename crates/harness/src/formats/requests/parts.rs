//! Content as text.
use pleach_tree::{Origin, Role, Segment};
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

/// A text field of an object, empty where there is none.
pub(super) fn field<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The tools of a request as one instruction at its head.
pub(super) fn tools(request: &Map<String, Value>) -> Option<Segment> {
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

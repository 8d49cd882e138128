//! Anthropic messages.
use pleach_tree::{Origin, Part, Role, Segment};
use serde_json::Value;

use super::Turns;
use super::body::Exchange;
use super::parts::{block, call, continued, field, joined, of_message, system, texts, tools, user};
use crate::core::script;

pub(super) fn turns(exchange: &Exchange) -> Turns {
    let messages =
        exchange.request.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let instructions = texts(exchange.request.get("system")).into_iter().map(system);
    let parts = messages.iter().enumerate().flat_map(|(at, parts)| of_message(at, message(parts)));
    let mut given: Vec<Segment> =
        tools(&exchange.request).into_iter().chain(instructions).chain(parts).collect();
    // A last message of the assistant is one that the answer goes on in.
    continued(&mut given);
    let said = assistant(exchange.response.get("content"));
    Turns { given, said: vec![said], behind: None, hides_reasoning: false }
}

fn message(message: &Value) -> Vec<Segment> {
    let content = message.get("content");
    if field(message, "role") == "assistant" {
        return assistant(content);
    }
    match content {
        Some(Value::Array(blocks)) => blocks.iter().map(given).collect(),
        content => texts(content).into_iter().map(user).collect(),
    }
}

fn given(part: &Value) -> Segment {
    if field(part, "type") == "tool_result" {
        let failed = part.get("is_error").and_then(Value::as_bool) == Some(true);
        return script::result(field(part, "tool_use_id"), joined(part.get("content")), failed);
    }
    user(block(part))
}

fn assistant(content: Option<&Value>) -> Vec<Segment> {
    let Some(Value::Array(blocks)) = content else {
        return texts(content).into_iter().map(|text| script::said(Part::Content, text)).collect();
    };
    blocks.iter().map(said).collect()
}

fn said(part: &Value) -> Segment {
    match field(part, "type") {
        "thinking" | "redacted_thinking" => script::said(Part::Reasoning, field(part, "thinking")),
        "tool_use" => {
            let input = part.get("input").map_or_else(|| "{}".into(), Value::to_string);
            call(field(part, "id"), field(part, "name"), &input)
        }
        kind if kind.ends_with("_tool_result") => Segment {
            part: Some(Part::Content),
            ..script::text(Role::Assistant, Origin::Environment, block(part))
        },
        _ => script::said(Part::Content, block(part)),
    }
}

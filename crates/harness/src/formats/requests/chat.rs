//! Chat completions.
use pleach_tree::{Origin, Part, Segment};
use serde_json::Value;

use super::Turns;
use super::body::Exchange;
use super::parts::{call, continued, field, joined, of_message, system, tools, user};
use crate::core::script;

pub(super) fn turns(exchange: &Exchange) -> Turns {
    let messages =
        exchange.request.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let parts = messages.iter().enumerate().flat_map(|(at, parts)| of_message(at, message(parts)));
    let mut given: Vec<Segment> = tools(&exchange.request).into_iter().chain(parts).collect();
    if exchange.request.get("continue_final_message").and_then(Value::as_bool) == Some(true) {
        continued(&mut given);
    }
    let choices =
        exchange.response.get("choices").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let said: Vec<Vec<Segment>> =
        choices.iter().filter_map(|choice| choice.get("message")).map(assistant).collect();
    let reasoned = exchange
        .response
        .get("usage")
        .and_then(|usage| usage.pointer("/completion_tokens_details/reasoning_tokens"));
    let shown = said.iter().flatten().any(|part| part.part == Some(Part::Reasoning));
    let hides_reasoning = reasoned.and_then(Value::as_u64).unwrap_or_default() > 0 && !shown;
    Turns { given, said, behind: None, hides_reasoning }
}

pub(crate) fn message(message: &Value) -> Vec<Segment> {
    match field(message, "role") {
        "system" | "developer" => vec![system(joined(message.get("content")))],
        "assistant" => assistant(message),
        "tool" => vec![script::result(
            field(message, "tool_call_id"),
            joined(message.get("content")),
            false,
        )],
        "function" => {
            vec![script::result(field(message, "name"), joined(message.get("content")), false)]
        }
        _ => vec![user(joined(message.get("content")))],
    }
}

/// Reasoning, text and tool calls, as an assistant says them.
fn assistant(message: &Value) -> Vec<Segment> {
    let mut parts = Vec::new();
    for (key, origin) in
        [("reasoning_content", Origin::Policy), ("reasoning", Origin::ExternalModel)]
    {
        let text = field(message, key);
        if !text.is_empty() && parts.is_empty() {
            parts.push(Segment { origin, ..script::said(Part::Reasoning, text) });
        }
    }
    let text = joined(message.get("content"));
    if !text.is_empty() {
        parts.push(script::said(Part::Content, text));
    }
    for tool in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        if let Some(function) = tool.get("function").or_else(|| tool.get("custom")) {
            let arguments = function.get("arguments").or_else(|| function.get("input"));
            let arguments = arguments
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            parts.push(call(
                field(tool, "id"),
                field(function, "name"),
                &arguments.unwrap_or_default(),
            ));
        }
    }
    if let Some(function) = message.get("function_call").filter(|call| call.is_object()) {
        parts.push(call(
            field(function, "name"),
            field(function, "name"),
            field(function, "arguments"),
        ));
    }
    parts
}

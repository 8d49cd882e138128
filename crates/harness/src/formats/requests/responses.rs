//! OpenAI responses.
use pleach_tree::{Origin, Part, Role, Segment};
use serde_json::Value;

use super::Turns;
use super::body::Exchange;
use super::parts::{block, call, field, joined, of_message, system, tools, user};
use crate::core::script;

pub(super) fn turns(exchange: &Exchange) -> Turns {
    let behind =
        exchange.request.get("previous_response_id").and_then(Value::as_str).map(str::to_owned);
    let instructions = exchange.request.get("instructions").and_then(Value::as_str).map(system);
    let input: Vec<Segment> = match exchange.request.get("input") {
        Some(Value::Array(items)) => messages(items.iter().map(item)),
        input => vec![user(joined(input))],
    };
    // What an earlier answer stands for has its own instructions at its head.
    let head =
        tools(&exchange.request).into_iter().chain(instructions).filter(|_| behind.is_none());
    let said: Vec<Segment> = exchange
        .response
        .get("output")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(item)
        .collect();
    let reasoned = exchange
        .response
        .get("usage")
        .and_then(|usage| usage.pointer("/output_tokens_details/reasoning_tokens"));
    let shown =
        said.iter().any(|part| part.part == Some(Part::Reasoning) && part.origin == Origin::Policy);
    let hides_reasoning = reasoned.and_then(Value::as_u64).unwrap_or_default() > 0 && !shown;
    Turns { given: head.chain(input).collect(), said: vec![said], behind, hides_reasoning }
}

/// Items with the message that each is of: what the assistant said in a row is one.
fn messages(items: impl Iterator<Item = Segment>) -> Vec<Segment> {
    let (mut index, mut before) = (0, None);
    items
        .flat_map(|item| {
            let role = item.role;
            let goes_on = role == Role::Assistant && before == Some(role);
            index += usize::from(before.is_some() && !goes_on);
            before = Some(role);
            of_message(index, vec![item])
        })
        .collect()
}

/// An item of a request or an answer.
pub(crate) fn item(item: &Value) -> Segment {
    let id =
        || ["call_id", "id"].iter().find_map(|key| item.get(*key)?.as_str()).unwrap_or_default();
    match field(item, "type") {
        "function_call" => call(id(), field(item, "name"), field(item, "arguments")),
        "custom_tool_call" => call(id(), field(item, "name"), field(item, "input")),
        "reasoning" => reasoning(item),
        kind if kind.ends_with("_call_output") => {
            script::result(id(), joined(item.get("output")), false)
        }
        kind if kind.ends_with("_call") => {
            let input = item.get("action").map_or_else(|| "{}".into(), Value::to_string);
            call(id(), kind.strip_suffix("_call").unwrap_or(kind), &input)
        }
        "message" | "" => message(item),
        _ => Segment {
            part: Some(Part::Content),
            ..script::text(Role::Assistant, Origin::ExternalModel, block(item))
        },
    }
}

fn message(message: &Value) -> Segment {
    let text = joined(message.get("content"));
    match field(message, "role") {
        "assistant" => script::said(Part::Content, text),
        "system" | "developer" => system(text),
        _ => user(text),
    }
}

/// Reasoning: its own text where the answer has it, else the provider's summary, which may be
/// empty.
fn reasoning(item: &Value) -> Segment {
    let own = joined(item.get("content"));
    if own.is_empty() {
        return script::said(Part::Reasoning, joined(item.get("summary")));
    }
    Segment { origin: Origin::Policy, ..script::said(Part::Reasoning, own) }
}

//! Answers that were streamed, put together from their chunks.
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::parts::field;

/// The answer in the text of an event stream.
pub(super) fn of_text(text: &str) -> Option<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    of_chunks(data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect())
}

/// The answer in the chunks of a stream.
pub(super) fn of_chunks(chunks: Vec<Value>) -> Option<Value> {
    if chunks.iter().any(|chunk| field(chunk, "type") == "message_start") {
        return anthropic(&chunks);
    }
    let done = |chunk: &&Value| {
        matches!(field(chunk, "type"), "response.completed" | "response.incomplete")
    };
    if let Some(done) = chunks.iter().rev().find(done) {
        return done.get("response").cloned();
    }
    chunks.iter().any(|chunk| chunk.get("choices").is_some()).then(|| chat(&chunks))
}

fn chat(chunks: &[Value]) -> Value {
    let mut answer = Map::new();
    let mut choices: BTreeMap<u64, Map<String, Value>> = BTreeMap::new();
    for chunk in chunks {
        for key in ["id", "model", "usage"] {
            if let Some(value) = chunk.get(key).filter(|value| !value.is_null()) {
                answer.insert(key.into(), value.clone());
            }
        }
        for choice in chunk.get("choices").and_then(Value::as_array).into_iter().flatten() {
            let index = choice.get("index").and_then(Value::as_u64).unwrap_or_default();
            let message = choices.entry(index).or_default();
            let Some(delta) = choice.get("delta").and_then(Value::as_object) else { continue };
            for (key, value) in delta {
                match (key.as_str(), value) {
                    ("tool_calls", Value::Array(calls)) => {
                        calls.iter().for_each(|call| tool_call(message, call))
                    }
                    ("role", _) | (_, Value::Null) => {}
                    (_, Value::String(text)) => append(message, key, text),
                    _ => {}
                }
            }
        }
    }
    let choices: Vec<Value> =
        choices.into_values().map(|message| json!({"message": message})).collect();
    answer.insert("choices".into(), choices.into());
    Value::Object(answer)
}

/// Adds a piece of a tool call to the one of its index.
fn tool_call(message: &mut Map<String, Value>, piece: &Value) {
    let Value::Array(calls) =
        message.entry("tool_calls").or_insert_with(|| Value::Array(Vec::new()))
    else {
        return;
    };
    let index = piece.get("index").and_then(Value::as_u64);
    let at = match calls.iter().position(|call| call.get("index").and_then(Value::as_u64) == index)
    {
        Some(at) => at,
        None => {
            calls.push(json!({"index": index, "function": {}}));
            calls.len() - 1
        }
    };
    let Value::Object(call) = &mut calls[at] else { return };
    if let Some(id) = piece.get("id").and_then(Value::as_str) {
        call.insert("id".into(), id.into());
    }
    let Some(Value::Object(function)) = call.get_mut("function") else { return };
    for (key, value) in piece.get("function").and_then(Value::as_object).into_iter().flatten() {
        if let Some(text) = value.as_str() {
            append(function, key, text);
        }
    }
}

fn append(fields: &mut Map<String, Value>, key: &str, text: &str) {
    match fields.get_mut(key) {
        Some(Value::String(there)) => there.push_str(text),
        _ => {
            fields.insert(key.into(), text.into());
        }
    }
}

fn anthropic(chunks: &[Value]) -> Option<Value> {
    let mut message = chunks.iter().find_map(|chunk| chunk.get("message"))?.as_object()?.clone();
    let mut blocks: BTreeMap<u64, (Map<String, Value>, String)> = BTreeMap::new();
    for chunk in chunks {
        let index = chunk.get("index").and_then(Value::as_u64).unwrap_or_default();
        match field(chunk, "type") {
            "content_block_start" => {
                let block = chunk
                    .get("content_block")
                    .and_then(Value::as_object)
                    .cloned()
                    .unwrap_or_default();
                blocks.insert(index, (block, String::new()));
            }
            "content_block_delta" => {
                let (Some((block, input)), Some(delta)) =
                    (blocks.get_mut(&index), chunk.get("delta"))
                else {
                    continue;
                };
                match field(delta, "type") {
                    "text_delta" => append(block, "text", field(delta, "text")),
                    "thinking_delta" => append(block, "thinking", field(delta, "thinking")),
                    "input_json_delta" => input.push_str(field(delta, "partial_json")),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    let whole = |(mut block, input): (Map<String, Value>, String)| {
        if let Ok(input) = serde_json::from_str::<Value>(&input) {
            block.insert("input".into(), input);
        }
        Value::Object(block)
    };
    message.insert("content".into(), blocks.into_values().map(whole).collect::<Vec<_>>().into());
    Some(Value::Object(message))
}

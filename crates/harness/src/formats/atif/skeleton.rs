//! Records whose text and ids stand in the steps of a trajectory.
use pleach_tree::{Record, Segment};
use serde_json::{Map, Value, json};

/// Where the text, the ids or the log-probabilities of a segment stand.
#[derive(Debug, Clone)]
pub(super) struct At {
    /// A JSON pointer into the trajectory.
    pub(super) pointer: String,
    /// Bytes of a text, or items of a list.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A record without what stands elsewhere; a place counts only if it holds exactly what the record
/// does.
pub(super) fn of(
    record: &Record,
    places: &[(&'static str, At)],
    trajectory: &Value,
) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(record)?;
    let Value::Object(fields) = &mut value else { return Ok(value) };
    for (key, at) in places {
        if fields.get(*key).is_some_and(|held| resolve(trajectory, at).as_ref() == Some(held)) {
            fields.shift_remove(*key);
            fields.insert(format!("{key}_at"), json!([at.pointer, at.start, at.end]));
        }
    }
    Ok(value)
}

/// The records of a trajectory that was written here.
pub(super) fn records(trajectory: &Value, kept: &Value) -> Result<Vec<Record>, String> {
    let version = kept.get("version").and_then(Value::as_u64);
    if version != Some(1) {
        return Err(format!(
            "the records that the trajectory was written from are of version {version:?}, not 1"
        ));
    }
    let list = kept
        .get("records")
        .and_then(Value::as_array)
        .ok_or("the trajectory keeps no list of records")?;
    let mut records = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let mut value = value.clone();
        if let Value::Object(fields) = &mut value {
            fill(trajectory, fields).map_err(|why| format!("record {index}: {why}"))?;
        }
        records.push(
            serde_json::from_value(value).map_err(|error| format!("record {index}: {error}"))?,
        );
    }
    match records.first() {
        Some(Record::Header(_)) => Ok(records),
        _ => {
            Err("the records that the trajectory was written from do not begin with a header"
                .into())
        }
    }
}

fn fill(trajectory: &Value, fields: &mut Map<String, Value>) -> Result<(), String> {
    for key in ["text", "tokens", "logprobs"] {
        let Some(at) = fields.shift_remove(&format!("{key}_at")) else { continue };
        let (pointer, start, end): (String, usize, usize) =
            serde_json::from_value(at).map_err(|error| error.to_string())?;
        let held = resolve(trajectory, &At { pointer: pointer.clone(), start, end });
        let held = held.ok_or_else(|| format!("nothing stands at {pointer}, {start} to {end}"))?;
        fields.insert(key.to_owned(), held);
    }
    Ok(())
}

/// What stands at a place: a part of a text or of a list, or a tool call as text.
fn resolve(trajectory: &Value, at: &At) -> Option<Value> {
    match trajectory.pointer(&at.pointer)? {
        Value::String(text) => text.get(at.start..at.end).map(Value::from),
        Value::Array(items) => {
            items.get(at.start..at.end).map(|items| Value::Array(items.to_vec()))
        }
        Value::Object(call) => {
            let field = |key: &str| call.get(key).and_then(Value::as_str);
            let arguments = call.get("arguments")?.to_string();
            Some(
                crate::core::wording::call(
                    field("tool_call_id")?,
                    field("function_name")?,
                    &arguments,
                )
                .into(),
            )
        }
        _ => None,
    }
}

/// The id, name and arguments of a tool call's text, where it is such.
pub(super) fn tool_call(segment: &Segment) -> Option<Value> {
    let call: Value = serde_json::from_str(segment.text.as_deref()?).ok()?;
    let (id, name, input) =
        (call.get("id")?.as_str()?, call.get("name")?.as_str()?, call.get("input")?);
    Some(json!({"tool_call_id": id, "function_name": name, "arguments": input}))
}

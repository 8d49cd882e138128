//! The messages of a context, put together without the crate's own code.
use std::collections::HashMap;

use pleach_tree::{BranchTree, ContextId, Part, Record, Role, Segment, SegmentId};
use serde_json::{Value, json};

/// The messages that a chat template gets for a context.
pub(crate) fn messages(tree: &BranchTree, context: ContextId) -> Vec<Value> {
    messages_with(tree, context, &[])
}

/// The messages of a context and of what is said behind it.
pub(crate) fn messages_with(
    tree: &BranchTree,
    context: ContextId,
    said: &[SegmentId],
) -> Vec<Value> {
    let names: HashMap<String, String> = tree
        .records()
        .iter()
        .filter_map(|record| match record {
            Record::Segment(segment) if segment.part == Some(Part::ToolCall) => {
                let call: Value = serde_json::from_str(segment.text.as_ref()?).ok()?;
                Some((call["id"].as_str()?.to_owned(), call["name"].as_str()?.to_owned()))
            }
            _ => None,
        })
        .collect();
    let mut groups: Vec<Vec<&Segment>> = Vec::new();
    let held = tree.spans(context).expect("the context is there");
    for id in held.into_iter().map(|span| span.segment).chain(said.iter().copied()) {
        let segment = tree.segment(id).expect("the segment is there");
        match groups.last_mut() {
            Some(group) if goes_on(group, segment) => group.push(segment),
            _ => groups.push(vec![segment]),
        }
    }
    groups.iter().map(|group| message(group, &names)).collect()
}

/// Whether a segment belongs to the message of those before it.
fn goes_on(group: &[&Segment], segment: &Segment) -> bool {
    let last = group[group.len() - 1];
    let takes = group[0].role == Role::Assistant || segment.part != Some(Part::ToolCall);
    let runs_on = last.open && last.role != Role::Assistant && segment.result_of == last.result_of;
    takes && (runs_on || same(group[0], segment) || same(last, segment))
}

fn same(one: &Segment, other: &Segment) -> bool {
    let key = |segment: &Segment| {
        segment.source.as_ref().map(|source| source.key.clone()).expect("it has a source")
    };
    one.role == other.role && one.role != Role::Tool && key(one) == key(other)
}

fn message(group: &[&Segment], names: &HashMap<String, String>) -> Value {
    let mut message = json!({"role": serde_json::to_value(group[0].role).unwrap(), "content": ""});
    if let Some(call) = &group[0].result_of {
        message["tool_call_id"] = call.as_str().into();
        message["name"] = names[call].as_str().into();
    }
    let assistant = group[0].role == Role::Assistant;
    for (field, part) in [("content", Part::Content), ("reasoning_content", Part::Reasoning)] {
        let of = |segment: &&&Segment| !assistant || segment.part.unwrap_or(Part::Content) == part;
        let texts: Vec<&Segment> = group
            .iter()
            .filter(of)
            .copied()
            .filter(|segment| segment.text.as_deref() != Some(""))
            .collect();
        let mut joined = String::new();
        for (index, segment) in texts.iter().enumerate() {
            if index > 0 && !texts[index - 1].open && same(texts[index - 1], segment) {
                joined += "\n\n";
            }
            joined += segment.text.as_deref().unwrap_or_default();
        }
        if field == "content" || assistant && !joined.is_empty() {
            message[field] = joined.into();
        }
    }
    let calls = group.iter().filter(|segment| assistant && segment.part == Some(Part::ToolCall));
    let calls: Vec<Value> = calls
        .map(|segment| {
            let call: Value = serde_json::from_str(segment.text.as_ref().unwrap()).unwrap();
            let function = json!({"name": call["name"], "arguments": call["input"]});
            json!({"id": call["id"], "type": "function", "function": function})
        })
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

//! Messages as segments.
use pleach_tree::{Origin, Part as Spoken, Role, Segment};
use serde_json::Value;
use serde_json::value::RawValue;

use super::record::{Part, State};
use crate::core::script::{self, Spot};
use crate::core::wording;

/// What a request shows for a result that was pruned.
pub(super) const CLEARED: &str = "[Old tool result content cleared]";

/// A step of a call: what it said, and what its tools gave.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) said: Vec<Segment>,
    pub(super) results: Vec<Segment>,
    /// Calls whose results were pruned, and when.
    pub(super) pruned: Vec<(f64, String)>,
}

/// The steps of an assistant message.
pub(super) fn steps(parts: Vec<Part>, id: &str, spot: &Spot) -> Vec<Turn> {
    let mut steps = vec![Turn::default()];
    for part in parts {
        let last = steps.len() - 1;
        let step = &mut steps[last];
        match part.kind.as_str() {
            "step-start" if !step.said.is_empty() => steps.push(Turn::default()),
            "text" => step.said.push(
                spot.segment(id, script::said(Spoken::Content, part.text.unwrap_or_default())),
            ),
            "reasoning" => step.said.push(
                spot.segment(id, script::said(Spoken::Reasoning, part.text.unwrap_or_default())),
            ),
            "tool" => tool(part, step, id, spot),
            _ => {}
        }
    }
    steps.retain(|step| !step.said.is_empty());
    steps
}

fn tool(part: Part, step: &mut Turn, id: &str, spot: &Spot) {
    let State { status, input, output, error, metadata, time, attachments } =
        part.state.unwrap_or_default();
    let call = part.call.or(part.id).unwrap_or_default();
    let name = part.tool.unwrap_or_default();
    step.said.push(
        spot.segment(id, script::call(&call, &name, input.as_deref().map_or("{}", RawValue::get))),
    );
    let interrupted = metadata
        .as_ref()
        .filter(|metadata| metadata.get("interrupted") == Some(&Value::Bool(true)));
    let kept = interrupted.and_then(|metadata| metadata.get("output")?.as_str()).map(str::to_owned);
    let result = match (status.as_str(), kept) {
        ("completed", _) => {
            let mut text = output.unwrap_or_default();
            for mut attached in attachments.unwrap_or_default() {
                wording::leave_out_data("", &mut attached);
                text.push('\n');
                text.push_str(&attached.to_string());
            }
            script::result(&call, text, false)
        }
        ("error", Some(output)) => script::result(&call, output, false),
        ("error", None) => script::result(&call, error.unwrap_or_default(), true),
        _ => {
            let text = "[Tool execution was interrupted]";
            Segment { origin: Origin::Harness, ..script::result(&call, text, true) }
        }
    };
    step.results.push(spot.segment(call.as_str(), result));
    step.pruned.extend(time.compacted.map(|at| (at, call)));
}

/// What a user message brings.
pub(super) fn given(parts: Vec<Part>, id: &str, spot: &Spot) -> Vec<Segment> {
    let mut segments = Vec::new();
    for part in parts {
        let (origin, text) = match part.kind.as_str() {
            "text" if part.ignored == Some(true) => continue,
            "text" => {
                let origin =
                    if part.synthetic == Some(true) { Origin::Harness } else { Origin::Human };
                (origin, part.text.unwrap_or_default())
            }
            // These are put in as text parts of their own.
            "file"
                if matches!(
                    part.mime.as_deref(),
                    Some("text/plain" | "application/x-directory")
                ) =>
            {
                continue;
            }
            "file" => (Origin::Human, file(&part)),
            "compaction" => (Origin::Harness, "What did we do so far?".into()),
            "subtask" => (Origin::Harness, "The following tool was executed by the user".into()),
            _ => continue,
        };
        segments.push(spot.segment(id, script::text(Role::User, origin, text)));
    }
    segments
}

fn file(part: &Part) -> String {
    let mut value = serde_json::json!({"type": "file", "mime": part.mime, "filename": part.filename, "url": part.url});
    wording::leave_out_data("", &mut value);
    value.to_string()
}

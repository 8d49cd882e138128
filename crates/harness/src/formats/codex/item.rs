//! An item of a rollout as segments.
use pleach_tree::{Origin, Part, Role, Segment};
use serde_json::Value;
use serde_json::value::RawValue;

use super::line::{Item, Output};
use crate::core::block::{self, Content};
use crate::core::script::{self, Spot};

/// What an item is to the conversation.
#[derive(Debug)]
pub(super) enum Piece {
    /// A part of what the model said.
    Said(Vec<Segment>),
    /// What stands in a person's place, and whether it begins a turn.
    Given { segments: Vec<Segment>, turn: bool },
    /// What a tool gave.
    Output(Box<Segment>),
    /// Nothing that a request shows.
    Silent,
    /// A type that is not known.
    Unknown(String),
}

impl Piece {
    /// A number for what it says, where a request shows it.
    pub(super) fn number(&self) -> Option<u64> {
        let segments = match self {
            Self::Said(segments) | Self::Given { segments, .. } => segments.as_slice(),
            Self::Output(segment) => std::slice::from_ref(&**segment),
            Self::Silent | Self::Unknown(_) => return None,
        };
        Some(script::content_number(segments))
    }
}

/// How what the harness puts in a person's place begins.
const MARKS: [&str; 10] = [
    "<environment_context>",
    "<user_instructions>",
    "# agents.md instructions",
    "<skill>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<hook",
];

/// The segments of an item, with `key` for what has no key of its own.
pub(super) fn piece(item: Item, key: &str, spot: &Spot) -> Piece {
    let at = |segment: Segment| spot.segment(item.id.as_deref().unwrap_or(key), segment);
    match item.kind.as_str() {
        "message" => match item.role.as_deref() {
            Some("assistant") => Piece::Said(
                item.content
                    .texts()
                    .into_iter()
                    .map(|text| at(script::said(Part::Content, text)))
                    .collect(),
            ),
            role => {
                let texts = item.content.texts();
                let turn =
                    role == Some("user") && !texts.first().is_some_and(|text| is_marked(text));
                let origin = if turn { Origin::Human } else { Origin::Harness };
                let role = if matches!(role, Some("developer" | "system")) {
                    Role::System
                } else {
                    Role::User
                };
                let segments =
                    texts.into_iter().map(|text| at(script::text(role, origin, text))).collect();
                Piece::Given { segments, turn }
            }
        },
        "reasoning" => Piece::Said(vec![at(reasoning(item.content, item.summary))]),
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
            let call = item.call_id.as_deref().or(item.id.as_deref()).unwrap_or_default();
            Piece::Said(vec![at(called(&item, call))])
        }
        "web_search_call" | "image_generation_call" => {
            let input = item.action.as_deref().map_or("{}", RawValue::get);
            let name = item.kind.trim_end_matches("_call");
            let call = script::call(item.id.as_deref().unwrap_or_default(), name, input);
            // The provider runs it and shows no result.
            Piece::Said(vec![at(Segment { calls: Vec::new(), ..call })])
        }
        "function_call_output"
        | "custom_tool_call_output"
        | "mcp_tool_call_output"
        | "tool_search_output" => {
            let call = item.call_id.as_deref().unwrap_or_default();
            Piece::Output(Box::new(spot.segment(call, output(call, item.output))))
        }
        _ if item.is_sealed() => {
            let size = item.sealed_bytes();
            let text = format!(
                r#"{{"type":"{}","encrypted_content":"[{size} bytes of base64 left out]"}}"#,
                item.kind
            );
            let segments = vec![at(script::text(Role::User, Origin::ExternalModel, text))];
            Piece::Given { segments, turn: false }
        }
        "agent_message" => {
            let segments = item
                .content
                .texts()
                .into_iter()
                .map(|text| at(script::text(Role::User, Origin::Harness, text)));
            Piece::Given { segments: segments.collect(), turn: true }
        }
        "ghost_snapshot" | "compaction_trigger" | "additional_tools" | "other" => Piece::Silent,
        _ => Piece::Unknown(item.kind),
    }
}

fn is_marked(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(32).collect::<String>().to_ascii_lowercase();
    MARKS.iter().any(|mark| start.starts_with(mark))
}

/// The raw text where it is recorded, else the provider's summary.
fn reasoning(raw: Content, summary: Content) -> Segment {
    match raw.texts() {
        raw if raw.is_empty() => script::said(Part::Reasoning, summary.texts().join("\n\n")),
        raw => Segment { origin: Origin::Policy, ..script::said(Part::Reasoning, raw.join("\n")) },
    }
}

fn called(item: &Item, call: &str) -> Segment {
    let quoted = |text: &str| Value::from(text).to_string();
    // Arguments are JSON in a string; what is no JSON stays a string, as does the input of a custom
    // tool.
    let arguments =
        item.arguments.as_deref().map(|raw| match serde_json::from_str::<String>(raw.get()) {
            Ok(text) => match serde_json::from_str::<&RawValue>(&text) {
                Ok(json) => json.get().to_owned(),
                Err(_) => quoted(&text),
            },
            Err(_) => raw.get().to_owned(),
        });
    let action = || item.action.as_deref().map(|action| action.get().to_owned());
    let input = arguments
        .or_else(|| item.input.as_deref().map(quoted))
        .or_else(action)
        .unwrap_or_else(|| "{}".into());
    let name = item.name.as_deref().unwrap_or_else(|| item.kind.trim_end_matches("_call"));
    script::call(call, name, &input)
}

fn output(call: &str, output: Option<Output>) -> Segment {
    match output {
        Some(Output::Plain(content)) => script::result(call, block::joined(content), false),
        Some(Output::Judged { content, success }) => {
            script::result(call, block::joined(content), success == Some(false))
        }
        None => script::result(call, "", false),
    }
}

/// What the harness answers to a call that has no output.
pub(super) fn aborted(call: &str) -> Segment {
    Segment { origin: Origin::Harness, ..script::result(call, "aborted", false) }
}

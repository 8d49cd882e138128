//! One line of a session file, or a whole document.
use pleach_tree::{Origin, Part, Segment};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::core::genai::{Content, Parts, raw};
use crate::core::script::{self, Spot};

/// What the adapter reads of a line.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Line {
    #[serde(rename = "$rewindTo")]
    pub(super) rewind_to: Option<String>,
    #[serde(rename = "$set")]
    pub(super) set: Option<Set>,
    pub(super) session_id: Option<String>,
    /// The messages of a document.
    pub(super) messages: Option<Vec<Message>>,
    id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    content: Parts,
    tool_calls: Option<Vec<ToolCall>>,
    thoughts: Option<Vec<Thought>>,
    model: Option<String>,
}

impl Line {
    /// The message that the line is.
    pub(super) fn message(self) -> Option<Message> {
        let Self { id, kind, content, tool_calls, thoughts, model, .. } = self;
        kind.is_some().then_some(Message { id, kind, content, tool_calls, thoughts, model })
    }
}

/// What changes of the session as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Set {
    pub(super) messages: Option<Vec<Message>>,
}

/// A message, with the results of the tools that it calls.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) content: Parts,
    pub(super) tool_calls: Option<Vec<ToolCall>>,
    pub(super) thoughts: Option<Vec<Thought>>,
    pub(super) model: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Box<RawValue>>,
    result: Parts,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Thought {
    subject: Option<String>,
    description: Option<String>,
}

/// A message as segments: what it says, and what its tools gave.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    pub(super) said: Vec<Segment>,
    pub(super) results: Vec<Segment>,
}

impl Message {
    /// The message as segments; what a user's message says that is no result is by `origin`.
    pub(super) fn spoken(self, origin: Origin, spot: &Spot) -> Spoken {
        let key = self.id.unwrap_or_else(|| format!("line-{}", spot.at.line));
        let is_model = self.kind.as_deref() == Some("gemini");
        let content = Content { role: is_model.then(|| "model".into()), parts: self.content };
        let mut spoken = Spoken { said: Vec::new(), results: Vec::new() };
        let thoughts = self.thoughts.unwrap_or_default();
        let thought = |thought: Thought| {
            let lines: Vec<String> =
                [thought.subject, thought.description].into_iter().flatten().collect();
            spot.segment(key.as_str(), script::said(Part::Reasoning, lines.join("\n")))
        };
        spoken.said.extend(thoughts.into_iter().map(thought));
        spoken.said.extend(content.segments(origin, &key, spot));
        for tool in self.tool_calls.unwrap_or_default() {
            let name = tool.name.as_deref().unwrap_or_default();
            let id = tool.id.as_deref().unwrap_or(name);
            // A list that was taken from requests has the call among the parts already.
            if !spoken.said.iter().any(|said| said.calls.iter().any(|call| call == id)) {
                spoken.said.push(
                    spot.segment(key.as_str(), script::call(id, name, raw(tool.args.as_deref()))),
                );
            }
            let given = Content { role: None, parts: tool.result }.segments(
                Origin::Environment,
                &key,
                spot,
            );
            let result = |segment: Segment| match segment.result_of {
                Some(_) => segment,
                None => {
                    spot.segment(id, script::result(id, segment.text.unwrap_or_default(), false))
                }
            };
            spoken.results.extend(given.into_iter().map(result));
        }
        spoken
    }
}

//! One event of a log.
use pleach_tree::{Origin, Part, Role, Segment};
use serde::Deserialize;
use serde_json::Value;

use crate::core::block::{self, Content};
use crate::core::script::{self, Spot};
use crate::core::wording;

/// What the adapter reads of an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub(super) kind: String,
    pub(super) id: Option<String>,
    pub(super) source: Option<String>,
    pub(super) llm_message: Option<Message>,
    pub(super) llm_response_id: Option<String>,
    pub(super) extended_content: Content,
    pub(super) system_prompt: Option<Text>,
    pub(super) dynamic_context: Option<Text>,
    pub(super) thought: Content,
    pub(super) reasoning_content: Option<String>,
    pub(super) thinking_blocks: Content,
    pub(super) tool_name: Option<String>,
    pub(super) tool_call_id: Option<String>,
    pub(super) tool_call: Option<ToolCall>,
    pub(super) observation: Option<Value>,
    pub(super) rejection_reason: Option<String>,
    pub(super) error: Option<String>,
    pub(super) forgotten_event_ids: Vec<String>,
    pub(super) summary: Option<String>,
    pub(super) summary_offset: Option<usize>,
    pub(super) reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Text {
    pub(super) text: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) role: String,
    pub(super) content: Content,
    pub(super) reasoning_content: Option<String>,
    pub(super) thinking_blocks: Content,
}

/// A tool call, as this SDK has it or as the API that it came from.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}

impl Event {
    /// What a response said, where the event is a part of one.
    pub(super) fn said(&mut self, id: &str, spot: &Spot) -> Vec<Segment> {
        let message = self.llm_message.take().unwrap_or_default();
        let reasoning = self
            .reasoning_content
            .take()
            .or(message.reasoning_content)
            .filter(|text| !text.is_empty());
        let mut thinking = std::mem::take(&mut self.thinking_blocks).texts();
        thinking.extend(message.thinking_blocks.texts());
        // Both hold the same text where both are recorded.
        let reasoning =
            if thinking.is_empty() { reasoning.into_iter().collect() } else { thinking };
        let mut said: Vec<Segment> =
            reasoning.into_iter().map(|text| script::said(Part::Reasoning, text)).collect();
        let content =
            std::mem::take(&mut self.thought).texts().into_iter().chain(message.content.texts());
        said.extend(content.map(|text| script::said(Part::Content, text)));
        said.extend(self.tool_call.take().map(|call| self.called(call)));
        said.into_iter().map(|said| spot.segment(id, said)).collect()
    }

    fn called(&self, call: ToolCall) -> Segment {
        let function = call.function.unwrap_or_default();
        let id = self.tool_call_id.as_deref().or(call.id.as_deref()).unwrap_or_default();
        let name = call
            .name
            .as_deref()
            .or(function.name.as_deref())
            .or(self.tool_name.as_deref())
            .unwrap_or_default();
        let arguments = call.arguments.or(function.arguments).unwrap_or_else(|| "{}".into());
        let input = match serde_json::from_str::<&serde_json::value::RawValue>(&arguments) {
            Ok(json) => json.get().to_owned(),
            Err(_) => Value::from(arguments).to_string(),
        };
        script::call(id, name, &input)
    }

    /// What the event brings that no response said.
    pub(super) fn given(&mut self, id: &str, spot: &Spot) -> Vec<Segment> {
        let mut given = Vec::new();
        match self.kind.as_str() {
            "SystemPromptEvent" => {
                let prompts =
                    [self.system_prompt.take(), self.dynamic_context.take()].into_iter().flatten();
                given.extend(
                    prompts.map(|prompt| script::text(Role::System, Origin::Harness, prompt.text)),
                );
            }
            "MessageEvent" => {
                let message = self.llm_message.take().unwrap_or_default();
                let human = self.source.as_deref() == Some("user");
                let origin = if human { Origin::Human } else { Origin::Harness };
                let role = if message.role == "system" { Role::System } else { Role::User };
                given.extend(
                    message
                        .content
                        .texts()
                        .into_iter()
                        .map(|text| script::text(role, origin, text)),
                );
                let added = std::mem::take(&mut self.extended_content).texts().into_iter();
                given.extend(added.map(|text| script::text(role, Origin::Harness, text)));
            }
            "CondensationSummaryEvent" => {
                given.extend(
                    self.summary
                        .take()
                        .map(|text| script::text(Role::User, Origin::ExternalModel, text)),
                );
            }
            _ => given.push(self.answer()),
        }
        given.into_iter().map(|segment| spot.segment(id, segment)).collect()
    }

    fn answer(&mut self) -> Segment {
        let call = self.tool_call_id.clone().unwrap_or_default();
        let mut segment =
            match (self.observation.take(), self.rejection_reason.take(), self.error.take()) {
                (Some(observation), ..) => {
                    let is_error =
                        observation.get("is_error").and_then(Value::as_bool).unwrap_or_default();
                    script::result(&call, observed(observation), is_error)
                }
                (None, Some(reason), _) => {
                    script::result(&call, format!("Action rejected: {reason}"), true)
                }
                (None, None, error) => script::result(&call, error.unwrap_or_default(), true),
            };
        for text in std::mem::take(&mut self.extended_content).texts() {
            let so_far = segment.text.get_or_insert_default();
            so_far.push('\n');
            so_far.push_str(&text);
        }
        segment
    }
}

/// The content of an observation; of one that has none, its output, else its fields.
fn observed(mut observation: Value) -> String {
    if let Some(content) =
        observation.get("content").filter(|content| content.is_string() || content.is_array())
    {
        return serde_json::from_value::<Content>(content.clone())
            .map(block::joined)
            .unwrap_or_default();
    }
    if let Some(output) = observation.get("output").and_then(Value::as_str) {
        return output.into();
    }
    wording::leave_out_data("", &mut observation);
    observation.to_string()
}

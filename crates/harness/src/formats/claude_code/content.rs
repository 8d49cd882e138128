//! What the blocks of a message are as text.
use pleach_tree::Part;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

use crate::core::block::{Content, ContentBlock, joined, text_of};
use crate::core::wording;

/// A part of an assistant message.
#[derive(Debug, PartialEq)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) part: Part,
    /// Whether the provider put it there, such as the result of a tool that it runs itself.
    pub(super) provided: bool,
    /// Id of the tool call that the part makes.
    pub(super) call: Option<String>,
}

/// The result of a tool call.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) call: String,
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// What a user line holds.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) answers: Vec<Answer>,
    pub(super) texts: Vec<String>,
}

/// The parts of an assistant line, one for each block.
pub(super) fn said(content: Content) -> Vec<Said> {
    let blocks = match content {
        Content::Text(text) => {
            return vec![Said { text, part: Part::Content, provided: false, call: None }];
        }
        Content::Blocks(blocks) => blocks,
        Content::Absent | Content::Odd => return Vec::new(),
    };
    blocks.into_iter().map(said_block).collect()
}

fn said_block(block: ContentBlock) -> Said {
    let provided = block.kind.ends_with("_tool_result");
    let (text, part, call) = match block.kind.as_str() {
        "thinking" | "redacted_thinking" => {
            (block.thinking.unwrap_or_default(), Part::Reasoning, None)
        }
        "tool_use" => (called(&block), Part::ToolCall, block.id),
        _ => (text_of(block), Part::Content, None),
    };
    Said { text, part, provided, call }
}

fn called(block: &ContentBlock) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    wording::call(
        &text(&block.id),
        &text(&block.name),
        block.input.as_deref().map_or("{}", RawValue::get),
    )
}

/// Puts inputs as the model wrote them into its tool calls, by their ids: the message has them as
/// the harness ran them. False where they are no object.
pub(super) fn write_inputs(content: &mut Content, inputs: &RawValue) -> bool {
    let Ok(mut inputs) = serde_json::from_str::<FxHashMap<String, Box<RawValue>>>(inputs.get())
    else {
        return false;
    };
    if let Content::Blocks(blocks) = content {
        for block in blocks.iter_mut().filter(|block| block.kind == "tool_use") {
            if let Some(input) = block.id.as_ref().and_then(|id| inputs.remove(id)) {
                block.input = Some(input);
            }
        }
    }
    true
}

/// The results and the text blocks of a user line.
pub(super) fn given(content: Content) -> Given {
    let mut given = Given::default();
    let blocks = match content {
        Content::Text(text) => return Given { texts: vec![text], ..given },
        Content::Blocks(blocks) => blocks,
        Content::Absent | Content::Odd => return given,
    };
    for mut block in blocks {
        if block.kind == "tool_result"
            && let Some(call) = block.tool_use_id.take()
        {
            given.answers.push(Answer {
                call,
                is_error: block.is_error,
                text: joined(block.content),
            });
        } else {
            given.texts.push(text_of(block));
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_keeps_its_media_type_and_says_how_much_data_is_left_out() {
        let data = "A".repeat(100);
        let json = format!(
            r#"[{{"type":"text","text":"see"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]"#
        );
        let content: Content = serde_json::from_str(&json).unwrap();
        let image = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"[100 bytes of base64 left out]"}}"#;
        assert_eq!(given(content).texts, ["see", image]);
    }
}

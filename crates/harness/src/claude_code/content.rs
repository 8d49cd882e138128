//! What the blocks of a message are as text.
use pleach_tree::Part;
use serde_json::Value;
use serde_json::value::RawValue;

use super::line::{Block, Content};

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
        Content::Text(text) => return vec![Said { text, part: Part::Content, provided: false, call: None }],
        Content::Blocks(blocks) => blocks,
        Content::Absent | Content::Odd => return Vec::new(),
    };
    blocks.into_iter().map(said_block).collect()
}

fn said_block(block: Block) -> Said {
    let provided = block.kind.ends_with("_tool_result");
    let (text, part, call) = match block.kind.as_str() {
        "thinking" | "redacted_thinking" => (block.thinking.unwrap_or_default(), Part::Reasoning, None),
        "tool_use" => (call_text(&block), Part::ToolCall, block.id),
        _ => (text_of(block), Part::Content, None),
    };
    Said { text, part, provided, call }
}

/// A call as the object `{"id", "name", "input"}`, its input as it was written but for the space between tokens.
fn call_text(block: &Block) -> String {
    let quoted = |text: &Option<String>| Value::from(text.clone().unwrap_or_default()).to_string();
    let input = block.input.as_deref().map_or_else(|| "{}".into(), compact);
    format!(r#"{{"id":{},"name":{},"input":{input}}}"#, quoted(&block.id), quoted(&block.name))
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
            given.answers.push(Answer { call, is_error: block.is_error, text: joined(block.content) });
        } else {
            given.texts.push(text_of(block));
        }
    }
    given
}

/// One text for a list of blocks, a line break between them.
pub(super) fn joined(content: Content) -> String {
    match content {
        Content::Text(text) => text,
        Content::Absent | Content::Odd => String::new(),
        Content::Blocks(mut blocks) if blocks.len() == 1 => blocks.pop().map(text_of).unwrap_or_default(),
        Content::Blocks(blocks) => blocks.into_iter().map(text_of).collect::<Vec<_>>().join("\n"),
    }
}

/// The text of a block; of one that has none, such as an image, its JSON without the data.
fn text_of(block: Block) -> String {
    if block.kind == "text"
        && let Some(text) = block.text
    {
        return text;
    }
    let mut fields = serde_json::Map::new();
    fields.insert("type".into(), block.kind.into());
    let named = [("id", block.id), ("name", block.name), ("text", block.text), ("tool_use_id", block.tool_use_id)];
    for (key, value) in named {
        if let Some(value) = value {
            fields.insert(key.into(), value.into());
        }
    }
    match block.content {
        Content::Absent => {}
        content => {
            fields.insert("content".into(), joined(content).into());
        }
    }
    let raw = block.input.into_iter().map(|input| ("input".to_owned(), input)).chain(block.rest);
    for (key, value) in raw {
        let mut value = serde_json::from_str(value.get()).unwrap_or_else(|_| Value::from(value.get()));
        leave_out_data(&key, &mut value);
        fields.insert(key, value);
    }
    Value::Object(fields).to_string()
}

/// Puts its size for the base64 text of an image or a document.
fn leave_out_data(key: &str, value: &mut Value) {
    match value {
        Value::String(data) if key == "data" && data.len() > 64 => {
            *data = format!("[{} bytes of base64 left out]", data.len());
        }
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| leave_out_data(key, value)),
        Value::Array(items) => items.iter_mut().for_each(|item| leave_out_data(key, item)),
        _ => {}
    }
}

/// The text of an attachment line: its prompt or content where that is text, else the JSON of the attachment.
pub(super) fn attachment(raw: &RawValue) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(raw.get()) else { return raw.get().into() };
    let text = |part: &Value| part.as_str().or_else(|| part.get("text")?.as_str()).map(str::to_owned);
    for key in ["prompt", "content"] {
        let found = match value.get(key) {
            Some(Value::Array(parts)) => parts.iter().map(text).collect::<Option<Vec<_>>>().map(|texts| texts.join("\n")),
            part => part.and_then(Value::as_str).map(str::to_owned),
        };
        if let Some(found) = found {
            return found;
        }
    }
    leave_out_data("", &mut value);
    value.to_string()
}

/// JSON without the space between its tokens, every token as it was.
fn compact(raw: &RawValue) -> String {
    let raw = raw.get();
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(raw.len()), false, false);
    let mut start = 0;
    for (at, byte) in raw.bytes().enumerate() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte == b'"' {
            quoted = true;
        } else if byte.is_ascii_whitespace() {
            out.push_str(&raw[start..at]);
            start = at + 1;
        }
    }
    out.push_str(&raw[start..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_between_tokens_is_dropped_and_space_in_strings_is_kept() {
        let raw = RawValue::from_string("{ \"a \\\" b\\\\\" : [1 , 2.50],\n\"c\": \"d  e\" }".into()).unwrap();
        assert_eq!(compact(&raw), r#"{"a \" b\\":[1,2.50],"c":"d  e"}"#);
    }

    #[test]
    fn an_attachment_is_its_text_where_it_has_one() {
        let of = |json: &str| attachment(&RawValue::from_string(json.into()).unwrap());
        assert_eq!(of(r#"{"type":"queued_command","prompt":"go on"}"#), "go on");
        assert_eq!(of(r#"{"type":"hook","content":["a",{"type":"text","text":"b"}]}"#), "a\nb");
        assert_eq!(of(r#"{"type":"todo","items":[1]}"#), r#"{"type":"todo","items":[1]}"#);
    }

    #[test]
    fn an_image_keeps_its_media_type_and_says_how_much_data_is_left_out() {
        let data = "A".repeat(100);
        let json = format!(
            r#"[{{"type":"text","text":"see"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]"#
        );
        let content: Content = serde_json::from_str(&json).unwrap();
        let image =
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"[100 bytes of base64 left out]"}}"#;
        assert_eq!(given(content).texts, ["see", image]);
    }
}

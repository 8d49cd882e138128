//! One line of a session file as Claude Code writes it.
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What the adapter reads of a line; everything else, such as a tool's own copy of its result, is skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub(super) struct Line {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) subtype: Option<String>,
    pub(super) uuid: Option<String>,
    pub(super) parent_uuid: Option<String>,
    pub(super) logical_parent_uuid: Option<String>,
    pub(super) is_sidechain: Option<bool>,
    pub(super) is_meta: Option<bool>,
    pub(super) is_visible_in_transcript_only: Option<bool>,
    pub(super) is_compact_summary: Option<bool>,
    pub(super) is_api_error_message: Option<bool>,
    pub(super) agent_id: Option<String>,
    pub(super) version: Option<String>,
    pub(super) message: Option<Message>,
    pub(super) content: Option<Content>,
    pub(super) attachment: Option<Box<RawValue>>,
    pub(super) compact_metadata: Option<CompactMetadata>,
    pub(super) microcompact_metadata: Option<MicrocompactMetadata>,
}

/// The message of the API that a line holds, or a part of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, remote = "Self")]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) content: Content,
    pub(super) usage: Option<Usage>,
}

/// What the API says a call took in.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

impl Usage {
    /// Tokens of the whole prompt, cached or not.
    pub(super) fn input(self) -> u64 {
        [self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens]
            .into_iter()
            .flatten()
            .fold(0, u64::saturating_add)
    }
}

/// The content of a message: a string, or blocks.
#[derive(Debug, Default)]
pub(super) enum Content {
    #[default]
    Absent,
    Text(String),
    Blocks(Vec<Block>),
    /// A shape that is not known.
    Odd,
}

/// One block of a message.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) kind: String,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) input: Option<Box<RawValue>>,
    pub(super) tool_use_id: Option<String>,
    pub(super) content: Content,
    pub(super) is_error: bool,
    /// Fields of blocks that have no text of their own, such as an image's source.
    pub(super) rest: Vec<(String, Box<RawValue>)>,
}

/// What a full compaction says about itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CompactMetadata {
    pub(super) trigger: Option<String>,
    pub(super) preserved_segment: Option<PreservedSegment>,
    pub(super) preserved_messages: Option<PreservedMessages>,
}

/// The ends of a preserved run.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PreservedSegment {
    pub(super) head_uuid: Option<String>,
    pub(super) anchor_uuid: Option<String>,
    pub(super) tail_uuid: Option<String>,
}

/// The lines of a preserved run, one by one.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PreservedMessages {
    pub(super) anchor_uuid: Option<String>,
    pub(super) uuids: Option<Vec<String>>,
}

/// What a microcompaction says about itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MicrocompactMetadata {
    pub(super) trigger: Option<String>,
    pub(super) compacted_tool_ids: Vec<String>,
    #[serde(rename = "clearedAttachmentUUIDs")]
    pub(super) cleared_attachments: Vec<String>,
}

/// Takes an object only, where a derived one takes a list of its fields as well.
impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LineVisitor)
    }
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = Line;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a line of a session, which is a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Line, A::Error> {
        Line::deserialize(MapAccessDeserializer::new(map))
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MessageVisitor)
    }
}

struct MessageVisitor;

/// Answers every scalar with one value, so that an odd shape is reported where it matters and is no error where it does not.
macro_rules! scalars {
    ($value:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($value)
        }
    };
}

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    scalars!(Message { content: Content::Odd, ..Message::default() });

    fn visit_str<E>(self, text: &str) -> Result<Message, E> {
        Ok(Message { content: Content::Text(text.into()), ..Message::default() })
    }

    fn visit_unit<E>(self) -> Result<Message, E> {
        Ok(Message::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Message, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Message { content: Content::Odd, ..Message::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Message, A::Error> {
        Message::deserialize(MapAccessDeserializer::new(map))
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or blocks")
    }

    scalars!(Content::Odd);

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.into()))
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = items.next_element()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content, A::Error> {
        Ok(Content::Blocks(vec![BlockVisitor.visit_map(map)?]))
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BlockVisitor)
    }
}

struct BlockVisitor;

impl<'de> Visitor<'de> for BlockVisitor {
    type Value = Block;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content block")
    }

    fn visit_str<E>(self, text: &str) -> Result<Block, E> {
        Ok(Block { kind: "text".into(), text: Some(text.into()), ..Block::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Block, A::Error> {
        let mut block = Block::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "type" => block.kind = map.next_value::<Option<String>>()?.unwrap_or_default(),
                "text" => block.text = map.next_value()?,
                "thinking" => block.thinking = map.next_value()?,
                "id" => block.id = map.next_value()?,
                "name" => block.name = map.next_value()?,
                "input" => block.input = map.next_value()?,
                "tool_use_id" => block.tool_use_id = map.next_value()?,
                "content" => block.content = map.next_value()?,
                "is_error" => block.is_error = map.next_value::<Option<bool>>()?.unwrap_or_default(),
                "signature" | "cache_control" | "caller" => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ => block.rest.push((key, map.next_value()?)),
            }
        }
        Ok(block)
    }
}

//! One line of a session file as Claude Code writes it.
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::copies::ForkedFrom;
use crate::core::block::{Content, scalars};

/// What the adapter reads of a line; everything else, such as a tool's own copy of its result, is
/// skipped.
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
    pub(super) forked_from: Option<ForkedFrom>,
    pub(super) parent_last_uuid: Option<String>,
    pub(super) version: Option<String>,
    pub(super) message: Option<Message>,
    pub(super) content: Option<Content>,
    /// What happened to the queue of prompts, and why.
    pub(super) operation: Value,
    pub(super) reason: Value,
    pub(super) attachment: Option<Box<RawValue>>,
    /// What was sent of the attachment, since version 2.1.260.
    pub(super) rendered: Option<Box<RawValue>>,
    pub(super) rendered_role: Value,
    /// The inputs of tool calls as the model wrote them, by the calls' ids.
    pub(super) wire_tool_inputs: Option<Box<RawValue>>,
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
    /// What the API changed in the request, since version 2.1.260.
    pub(super) input_transformations: Option<Box<RawValue>>,
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

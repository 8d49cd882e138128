//! One line of a rollout.
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::core::block::Content;

/// A line: what it is, and what the adapter reads of it.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) kind: String,
    pub(super) ordinal: Option<u64>,
    pub(super) payload: Payload,
}

/// What a line holds.
#[derive(Debug, Default)]
pub(super) enum Payload {
    Meta(Box<Meta>),
    Turn(Turn),
    Item(Box<Item>),
    Event(Event),
    Compacted(Box<Compacted>),
    #[default]
    Other,
}

/// The session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    pub(super) id: Option<String>,
    pub(super) cli_version: Option<String>,
    pub(super) forked_from_id: Option<String>,
    pub(super) base_instructions: Option<Instructions>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Instructions {
    Text(String),
    Object { text: Option<String> },
}

/// What a turn runs with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Turn {
    pub(super) model: Option<String>,
}

/// An item of the conversation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) role: Option<String>,
    pub(super) id: Option<String>,
    pub(super) content: Content,
    pub(super) summary: Content,
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) input: Option<String>,
    pub(super) action: Option<Box<RawValue>>,
    pub(super) call_id: Option<String>,
    pub(super) output: Option<Output>,
    pub(super) encrypted_content: Option<String>,
}

impl Item {
    /// Whether it is what a provider puts in place of a history, which only the provider can read.
    pub(super) fn is_sealed(&self) -> bool {
        matches!(self.kind.as_str(), "compaction" | "compaction_summary" | "context_compaction")
    }

    /// How long that is.
    pub(super) fn sealed_bytes(&self) -> usize {
        self.encrypted_content.as_deref().map_or(0, str::len)
    }
}

/// What a tool gave.
#[derive(Debug)]
pub(super) enum Output {
    Plain(Content),
    /// With a word on whether it went well.
    Judged {
        content: Content,
        success: Option<bool>,
    },
}

/// A thing that happened.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: String,
    num_turns: Option<Box<RawValue>>,
    info: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenInfo {
    total_token_usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Usage {
    total_tokens: Option<i64>,
}

/// Other events may have other things under the same keys, so each is read where its event is
/// known.
impl Event {
    /// How many turns are taken back, where that is a number.
    pub(super) fn turns(&self) -> Option<usize> {
        serde_json::from_str(self.num_turns.as_ref()?.get()).ok()
    }

    /// Tokens used so far, where that is a number.
    pub(super) fn total_tokens(&self) -> Option<i64> {
        serde_json::from_str::<TokenInfo>(self.info.as_ref()?.get())
            .ok()?
            .total_token_usage?
            .total_tokens
    }
}

/// A compaction.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Compacted {
    pub(super) message: Option<String>,
    pub(super) replacement_history: Option<Vec<Item>>,
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LineVisitor)
    }
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = Line;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a line of a rollout, which is a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
        let mut line = Line::default();
        let mut early: Option<Box<RawValue>> = None;
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Type => line.kind = map.next_value::<Option<String>>()?.unwrap_or_default(),
                Key::Ordinal => line.ordinal = map.next_value()?,
                // The type tells what the payload is; it stands first in every file that was seen.
                Key::Payload if line.kind.is_empty() => early = Some(map.next_value()?),
                Key::Payload => line.payload = Payload::read(&line.kind, &mut map)?,
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if let Some(raw) = early {
            let text = format!("{{\"payload\":{}}}", raw.get());
            let mut json = serde_json::Deserializer::from_str(&text);
            line.payload = json.deserialize_map(Late(&line.kind)).map_err(A::Error::custom)?;
        }
        Ok(line)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Type,
    Ordinal,
    Payload,
    #[serde(other)]
    Other,
}

/// A payload that stood before its type.
struct Late<'t>(&'t str);

impl<'de> Visitor<'de> for Late<'_> {
    type Value = Payload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a payload")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Payload, A::Error> {
        map.next_key::<IgnoredAny>()?;
        Payload::read(self.0, &mut map)
    }
}

impl Payload {
    fn read<'de, A: MapAccess<'de>>(kind: &str, map: &mut A) -> Result<Self, A::Error> {
        Ok(match kind {
            "session_meta" => Self::Meta(map.next_value()?),
            "turn_context" => Self::Turn(map.next_value()?),
            "response_item" => Self::Item(map.next_value()?),
            "event_msg" => Self::Event(map.next_value()?),
            "compacted" => Self::Compacted(map.next_value()?),
            _ => {
                map.next_value::<IgnoredAny>()?;
                Self::Other
            }
        })
    }
}

impl<'de> Deserialize<'de> for Output {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OutputVisitor)
    }
}

struct OutputVisitor;

impl<'de> Visitor<'de> for OutputVisitor {
    type Value = Output;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the output of a tool")
    }

    crate::core::block::scalars!(Output::Plain(Content::Odd));

    fn visit_str<E>(self, text: &str) -> Result<Output, E> {
        Ok(Output::Plain(Content::Text(text.into())))
    }

    fn visit_string<E>(self, text: String) -> Result<Output, E> {
        Ok(Output::Plain(Content::Text(text)))
    }

    fn visit_unit<E>(self) -> Result<Output, E> {
        Ok(Output::Plain(Content::Absent))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, items: A) -> Result<Output, A::Error> {
        Content::deserialize(serde::de::value::SeqAccessDeserializer::new(items)).map(Output::Plain)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Output, A::Error> {
        let (mut content, mut success) = (Content::Absent, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "content" => content = map.next_value()?,
                "success" => success = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Output::Judged { content, success })
    }
}

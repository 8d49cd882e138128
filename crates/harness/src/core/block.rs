//! Content of a message as the APIs of models have it: text, or blocks of text and other things.
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::core::wording;

/// The content of a message: a string, or blocks.
#[derive(Debug, Default)]
pub(crate) enum Content {
    #[default]
    Absent,
    Text(String),
    Blocks(Vec<ContentBlock>),
    /// A shape that is not known.
    Odd,
}

/// One block of a message.
#[derive(Debug, Default)]
pub(crate) struct ContentBlock {
    pub(crate) kind: String,
    pub(crate) text: Option<String>,
    pub(crate) thinking: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) input: Option<Box<RawValue>>,
    pub(crate) tool_use_id: Option<String>,
    pub(crate) content: Content,
    pub(crate) is_error: bool,
    /// Fields of blocks that have no text of their own, such as an image's source.
    pub(crate) rest: Vec<(String, Box<RawValue>)>,
}

impl Content {
    /// The text of every block, thinking too.
    pub(crate) fn texts(self) -> Vec<String> {
        match self {
            Self::Text(text) => vec![text],
            Self::Blocks(blocks) => blocks
                .into_iter()
                .map(|mut block| block.thinking.take().unwrap_or_else(|| text_of(block)))
                .collect(),
            Self::Absent | Self::Odd => Vec::new(),
        }
    }

    /// The text, where it is one text and nothing else.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Blocks(blocks) => match blocks.as_slice() {
                [block] if block.kind.ends_with("text") => block.text.as_deref(),
                _ => None,
            },
            Self::Absent | Self::Odd => None,
        }
    }
}

/// One text for a list of blocks, a line break between them.
pub(crate) fn joined(content: Content) -> String {
    match content {
        Content::Text(text) => text,
        Content::Absent | Content::Odd => String::new(),
        Content::Blocks(mut blocks) if blocks.len() == 1 => {
            blocks.pop().map(text_of).unwrap_or_default()
        }
        Content::Blocks(blocks) => blocks.into_iter().map(text_of).collect::<Vec<_>>().join("\n"),
    }
}

/// The text of a block; of one that has none, such as an image, its JSON without the data.
pub(crate) fn text_of(block: ContentBlock) -> String {
    if block.kind.ends_with("text")
        && let Some(text) = block.text
    {
        return text;
    }
    let mut fields = serde_json::Map::new();
    fields.insert("type".into(), block.kind.into());
    let named = [
        ("id", block.id),
        ("name", block.name),
        ("text", block.text),
        ("tool_use_id", block.tool_use_id),
    ];
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
        let mut value =
            serde_json::from_str(value.get()).unwrap_or_else(|_| Value::from(value.get()));
        wording::leave_out_data(&key, &mut value);
        fields.insert(key, value);
    }
    Value::Object(fields).to_string()
}

/// Answers every scalar with one value, so that an odd shape is reported where it matters and is no
/// error where it does not.
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

pub(crate) use scalars;

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

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BlockVisitor)
    }
}

struct BlockVisitor;

impl<'de> Visitor<'de> for BlockVisitor {
    type Value = ContentBlock;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content block")
    }

    fn visit_str<E>(self, text: &str) -> Result<ContentBlock, E> {
        Ok(ContentBlock { kind: "text".into(), text: Some(text.into()), ..ContentBlock::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ContentBlock, A::Error> {
        let mut block = ContentBlock::default();
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
                "is_error" => {
                    block.is_error = map.next_value::<Option<bool>>()?.unwrap_or_default()
                }
                "signature" | "cache_control" | "caller" => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ => block.rest.push((key, map.next_value()?)),
            }
        }
        Ok(block)
    }
}

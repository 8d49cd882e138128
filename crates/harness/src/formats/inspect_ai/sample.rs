//! What a sample's file says.
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::message::Message;

/// A sample, as far as the adapter reads it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sample {
    pub(super) id: Value,
    pub(super) epoch: Option<u64>,
    pub(super) events: Vec<Event>,
    pub(super) events_data: Option<Data>,
    pub(super) attachments: FxHashMap<String, String>,
    pub(super) scores: Option<serde_json::Map<String, Value>>,
    pub(super) error: Option<Value>,
    pub(super) limit: Option<Value>,
}

/// What events refer to by number.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Data {
    pub(super) messages: Vec<Message>,
}

/// Half-open ranges over the pool of messages.
pub(super) type Ranges = Vec<(usize, usize)>;

/// Something that happened. Other events than calls keep other things under the same keys, so what
/// is not of the kind that a call has there is a fault of a call alone.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "event", deserialize_with = "text")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) span_id: Option<String>,
    /// The span that begins, for the event of its beginning.
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    /// The span that it begins in.
    #[serde(deserialize_with = "text")]
    pub(super) parent_id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) uuid: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) model: Option<String>,
    /// What the model is called for, where that is not the main thing.
    #[serde(deserialize_with = "text")]
    pub(super) role: Option<String>,
    pub(super) input: Field<Vec<Message>>,
    pub(super) input_refs: Field<Ranges>,
    pub(super) output: Field<Output>,
    pub(super) error: Option<Value>,
    pub(super) pending: Option<Value>,
    #[serde(rename = "type", deserialize_with = "text")]
    pub(super) sort: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) source: Option<String>,
    pub(super) metadata: Option<Value>,
}

fn text<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(value)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

/// What stands under a key, or why it is not what a call has there.
#[derive(Debug)]
pub(super) enum Field<T> {
    Is(Option<T>),
    Odd(String),
}

impl<T> Default for Field<T> {
    fn default() -> Self {
        Self::Is(None)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = serde_json::from_value::<Option<T>>(value);
        Ok(read.map_or_else(|error| Self::Odd(error.to_string()), Self::Is))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Output {
    pub(super) choices: Vec<Choice>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    pub(super) message: Message,
}

impl Sample {
    /// The name of its rollout.
    pub(super) fn name(&self) -> String {
        format!("{}_epoch_{}", self.group(), self.epoch.unwrap_or(1))
    }

    pub(super) fn group(&self) -> String {
        self.id.as_str().map_or_else(|| self.id.to_string(), str::to_owned)
    }

    /// The value of its first score as a number, where it is one.
    pub(super) fn reward(&self) -> Option<f64> {
        let value = self.scores.as_ref()?.values().next()?.get("value")?;
        match value {
            Value::Number(number) => number.as_f64().filter(|reward| reward.is_finite()),
            Value::Bool(right) => Some(f64::from(u8::from(*right))),
            Value::String(mark) => match mark.as_str() {
                "C" => Some(1.0),
                "P" => Some(0.5),
                "I" | "N" => Some(0.0),
                text => text.parse().ok().filter(|reward: &f64| reward.is_finite()),
            },
            _ => None,
        }
    }
}

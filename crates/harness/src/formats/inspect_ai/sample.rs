//! What a sample's file says.
use rustc_hash::FxHashMap;
use serde::Deserialize;
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

/// Something that happened.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "event")]
    pub(super) kind: String,
    pub(super) span_id: Option<String>,
    /// The span that begins, for the event of its beginning.
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) uuid: Option<String>,
    pub(super) model: Option<String>,
    pub(super) input: Inputs,
    pub(super) input_refs: Option<Vec<(usize, usize)>>,
    pub(super) output: Option<Output>,
    pub(super) error: Option<Value>,
    pub(super) pending: Option<bool>,
    #[serde(rename = "type")]
    pub(super) sort: Option<String>,
    pub(super) source: Option<String>,
    pub(super) metadata: Option<Value>,
}

/// The messages of a prompt; other events keep something else under the same key.
#[derive(Debug, Default)]
pub(super) struct Inputs(pub(super) Vec<Message>);

impl<'de> Deserialize<'de> for Inputs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Self(if value.is_array() {
            serde_json::from_value(value).unwrap_or_default()
        } else {
            Vec::new()
        }))
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

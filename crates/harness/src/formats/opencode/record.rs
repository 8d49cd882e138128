//! Records of a session.
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A session with its messages, as it is exported.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Export {
    pub(super) info: SessionRecord,
    pub(super) messages: Vec<WithParts>,
}

/// The session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionRecord {
    pub(super) id: String,
    #[serde(rename = "parentID")]
    pub(super) parent: Option<String>,
    pub(super) version: Option<String>,
    pub(super) time: Time,
}

/// A message and its parts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WithParts {
    pub(super) info: Info,
    pub(super) parts: Vec<Part>,
}

/// A message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Info {
    pub(super) id: String,
    pub(super) role: String,
    #[serde(rename = "parentID")]
    pub(super) parent: Option<String>,
    #[serde(rename = "modelID")]
    pub(super) model: Option<String>,
    pub(super) time: Time,
    /// True of a summary; a user message has other things under the same key.
    pub(super) summary: Option<Value>,
    pub(super) finish: Option<String>,
    pub(super) error: Option<Value>,
    pub(super) system: Option<Value>,
}

/// Milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Time {
    pub(super) created: Option<f64>,
    pub(super) compacted: Option<f64>,
}

/// A part of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    pub(super) id: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    pub(super) synthetic: Option<bool>,
    pub(super) ignored: Option<bool>,
    pub(super) mime: Option<String>,
    pub(super) filename: Option<String>,
    pub(super) url: Option<String>,
    pub(super) tool: Option<String>,
    #[serde(rename = "callID")]
    pub(super) call: Option<String>,
    pub(super) state: Option<State>,
    pub(super) auto: Option<bool>,
    pub(super) tail_start_id: Option<String>,
}

/// How far a tool has come.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub(super) status: String,
    pub(super) input: Option<Box<RawValue>>,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
    pub(super) metadata: Option<Value>,
    pub(super) time: Time,
    pub(super) attachments: Option<Vec<Value>>,
}

impl Info {
    pub(super) fn is_summary(&self) -> bool {
        self.role == "assistant" && self.summary == Some(Value::Bool(true))
    }

    pub(super) fn failed(&self) -> bool {
        self.error.as_ref().is_some_and(|error| !error.is_null())
    }

    /// Whether it was broken off from outside.
    pub(super) fn aborted(&self) -> bool {
        self.error.as_ref().and_then(|error| error.get("name")?.as_str())
            == Some("MessageAbortedError")
    }
}

impl Part {
    /// The session that a tool had its work done in.
    pub(super) fn child(&self) -> Option<&str> {
        self.state.as_ref()?.metadata.as_ref()?.get("sessionId")?.as_str()
    }
}

impl WithParts {
    pub(super) fn compaction(&self) -> Option<&Part> {
        self.parts
            .iter()
            .find(|part| part.kind == "compaction")
            .filter(|_| self.info.role == "user")
    }
}

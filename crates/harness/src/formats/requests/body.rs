//! The request and the response of a line.
use serde_json::{Map, Value};

use super::stream;

/// Which API a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Chat,
    Anthropic,
    Responses,
}

/// A request with its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) request: Map<String, Value>,
    pub(super) response: Map<String, Value>,
    rollout: Option<String>,
}

/// Why a line is no exchange.
#[derive(Debug)]
pub(super) enum Flaw {
    NoRequest,
    Failed(String),
}

/// The keys under which a proxy names what belongs together.
const ROLLOUTS: [&str; 4] = ["rollout_id", "session_id", "conversation_id", "trajectory_id"];

impl Exchange {
    pub(super) fn of(mut fields: Map<String, Value>) -> Result<Self, Flaw> {
        let rollout = ROLLOUTS.iter().find_map(|key| text(fields.get(*key)?));
        let response = fields.shift_remove("response");
        let error = fields.get("error").filter(|error| !error.is_null()).map(ToString::to_string);
        let request = match fields.shift_remove("request") {
            Some(request) => unpacked(request),
            None => Some(Value::Object(fields)),
        };
        let Some(Value::Object(request)) = request else { return Err(Flaw::NoRequest) };
        if !request.get("messages").is_some_and(Value::is_array) && !request.contains_key("input") {
            return Err(Flaw::NoRequest);
        }
        if let Some(error) = error {
            return Err(Flaw::Failed(error));
        }
        let status = response.as_ref().and_then(|response| {
            ["status", "status_code"].iter().find_map(|key| response.get(*key)?.as_u64())
        });
        if let Some(status) = status.filter(|status| *status >= 400) {
            return Err(Flaw::Failed(format!("status {status}")));
        }
        match response.and_then(unpacked) {
            Some(Value::Object(response)) => {
                match response.get("error").filter(|error| !error.is_null()) {
                    Some(error) => Err(Flaw::Failed(error.to_string())),
                    None => Ok(Self { request, response, rollout }),
                }
            }
            _ => Err(Flaw::Failed("no response".into())),
        }
    }

    pub(super) fn api(&self) -> Api {
        let anthropic = self.response.get("type").and_then(Value::as_str) == Some("message");
        match (self.request.contains_key("messages"), anthropic) {
            (false, _) => Api::Responses,
            (true, true) => Api::Anthropic,
            (true, false) => Api::Chat,
        }
    }

    pub(super) fn id(&self) -> Option<String> {
        self.response.get("id")?.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
    }

    pub(super) fn model(&self) -> Option<&str> {
        let named = |body: &Map<String, Value>| body.get("model")?.as_str().map(str::len);
        let body = if named(&self.response).is_some() { &self.response } else { &self.request };
        body.get("model")?.as_str()
    }

    pub(super) fn rollout(&self) -> Option<String> {
        self.rollout.clone()
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|number| number.to_string()))
}

/// A body out of what a proxy wraps it in.
fn unpacked(value: Value) -> Option<Value> {
    match value {
        Value::Object(mut fields) if fields.contains_key("body") => {
            unpacked(fields.shift_remove("body")?)
        }
        Value::String(text) => serde_json::from_str(&text).ok().or_else(|| stream::of_text(&text)),
        Value::Array(chunks) => stream::of_chunks(chunks),
        Value::Object(fields) => Some(Value::Object(fields)),
        _ => None,
    }
}

//! Messages as the API of Gemini has them, which Gemini CLI and Qwen Code keep.
use std::fmt;

use pleach_tree::{Origin, Part as Spoken, Role, Segment};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::core::script::{self, Spot};
use crate::core::wording;

/// A message: whose it is, and its parts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Content {
    pub(crate) role: Option<String>,
    pub(crate) parts: Parts,
}

/// The parts of a message: a list, or one alone.
#[derive(Debug, Default)]
pub(crate) struct Parts(pub(crate) Vec<Part>);

/// One part.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Part {
    pub(crate) text: Option<String>,
    thought: Option<Value>,
    function_call: Option<FunctionCall>,
    pub(crate) function_response: Option<FunctionResponse>,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
}

/// The result of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FunctionResponse {
    id: Option<String>,
    name: Option<String>,
    response: Option<Value>,
}

impl FunctionResponse {
    /// The call that it answers; where calls have no ids, they are known by their names.
    pub(crate) fn call(&self) -> &str {
        self.id.as_deref().or(self.name.as_deref()).unwrap_or_default()
    }

    fn text(&self) -> (String, bool) {
        let Some(response) = &self.response else { return (String::new(), false) };
        let only =
            |key: &str| response.as_object().filter(|fields| fields.len() == 1)?.get(key)?.as_str();
        match (only("output"), only("error")) {
            (Some(output), _) => (output.into(), false),
            (None, Some(error)) => (error.into(), true),
            (None, None) => (response.to_string(), response.get("error").is_some()),
        }
    }
}

impl Content {
    /// The message as segments under `key`; what a user's message says that is no result is by
    /// `origin`.
    pub(crate) fn segments(self, origin: Origin, key: &str, spot: &Spot) -> Vec<Segment> {
        let is_model = self.role.as_deref() == Some("model");
        let role = if self.role.as_deref() == Some("system") { Role::System } else { Role::User };
        let part = |part: Part| {
            if is_model { part.said(key, spot) } else { part.given(role, origin, key, spot) }
        };
        self.parts.0.into_iter().map(part).collect()
    }
}

impl Part {
    fn is_thought(&self) -> bool {
        !matches!(self.thought, None | Some(Value::Bool(false) | Value::Null))
    }

    fn said(self, key: &str, spot: &Spot) -> Segment {
        if let Some(call) = &self.function_call {
            let input = call.args.as_ref().map_or_else(|| "{}".into(), Value::to_string);
            let name = call.name.as_deref().unwrap_or_default();
            return spot
                .segment(key, script::call(call.id.as_deref().unwrap_or(name), name, &input));
        }
        let spoken = if self.is_thought() { Spoken::Reasoning } else { Spoken::Content };
        spot.segment(key, script::said(spoken, self.wording()))
    }

    fn given(self, role: Role, origin: Origin, key: &str, spot: &Spot) -> Segment {
        if let Some(response) = &self.function_response {
            let (text, is_error) = response.text();
            return spot.segment(response.call(), script::result(response.call(), text, is_error));
        }
        spot.segment(key, script::text(role, origin, self.wording()))
    }

    /// The text of a part; of one that has none, such as an image, its JSON without the data.
    fn wording(self) -> String {
        match self.text {
            Some(text) => text,
            None => {
                let mut value = Value::Object(self.rest);
                wording::leave_out_data("", &mut value);
                value.to_string()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PartsVisitor)
    }
}

struct PartsVisitor;

impl<'de> Visitor<'de> for PartsVisitor {
    type Value = Parts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a part, or a list of them")
    }

    fn visit_str<E>(self, text: &str) -> Result<Parts, E> {
        let part = Part { text: Some(text.into()), ..Part::default() };
        Ok(Parts(if text.is_empty() { Vec::new() } else { vec![part] }))
    }

    fn visit_unit<E>(self) -> Result<Parts, E> {
        Ok(Parts::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Parts, A::Error> {
        let mut parts = Vec::new();
        while let Some(inner) = items.next_element::<Parts>()? {
            parts.extend(inner.0);
        }
        Ok(Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Parts, A::Error> {
        Ok(Parts(vec![Part::deserialize(MapAccessDeserializer::new(map))?]))
    }
}

/// Arguments of a call, or anything else of a log that is kept as it was written.
pub(crate) fn raw(raw: Option<&RawValue>) -> &str {
    raw.map_or("{}", RawValue::get)
}

//! JSON of a tool call whose numbers stay as they were written.
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::Value;
use minijinja::value::{Object, ObjectRepr};
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::python;

/// Lists and objects inside of each other from which on JSON is refused, as everywhere else.
const DEPTH: usize = 128;

/// A JSON value, of whose keys the last of each name counts, as in Python.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Argument {
    #[default]
    Null,
    Bool(bool),
    /// The number's text.
    Number(String),
    String(String),
    List(Vec<Self>),
    Object(IndexMap<String, Self>),
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get(), DEPTH).map_err(D::Error::custom)
    }
}

impl Argument {
    fn parse(text: &str, depth: usize) -> Result<Self, serde_json::Error> {
        let Some(depth) = depth.checked_sub(1) else {
            let message = format!("lists and objects are more than {DEPTH} deep");
            return Err(serde_json::Error::custom(message));
        };
        Ok(match text.as_bytes().first() {
            Some(b'{') => {
                let entries: IndexMap<String, Box<RawValue>> = serde_json::from_str(text)?;
                let entry =
                    |(key, raw): (String, Box<RawValue>)| Ok((key, Self::parse(raw.get(), depth)?));
                Self::Object(entries.into_iter().map(entry).collect::<Result<_, _>>()?)
            }
            Some(b'[') => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(text)?;
                Self::List(
                    items
                        .iter()
                        .map(|raw| Self::parse(raw.get(), depth))
                        .collect::<Result<_, _>>()?,
                )
            }
            Some(b'"') => Self::String(serde_json::from_str(text)?),
            Some(b'n') => Self::Null,
            Some(b't' | b'f') => Self::Bool(serde_json::from_str(text)?),
            _ => Self::Number(text.to_owned()),
        })
    }
}

impl From<&Json> for Argument {
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(bool) => Self::Bool(*bool),
            // How it was written is gone: as Python writes it.
            Json::Number(number) if number.is_f64() => {
                Self::Number(python::float(number.as_f64().unwrap_or(f64::NAN)))
            }
            Json::Number(number) => Self::Number(number.to_string()),
            Json::String(text) => Self::String(text.clone()),
            Json::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Json::Object(entries) => {
                let entry = |(key, value): (&String, &Json)| (key.clone(), Self::from(value));
                Self::Object(entries.iter().map(entry).collect())
            }
        }
    }
}

/// A number as a template value: one to reckon with where Python would write it the same again,
/// else its text.
pub(super) fn number(text: &str) -> Value {
    if let Some(number) = text.parse::<i128>().ok().filter(|number| number.to_string() == text) {
        return i64::try_from(number).map_or_else(|_| Value::from(number), Value::from);
    }
    match text.parse::<f64>() {
        Ok(number) if python::float(number) == text => Value::from(number),
        _ => Value::from_object(Written(text.to_owned())),
    }
}

/// A number that Python would write otherwise, or that is too great to reckon with.
#[derive(Debug)]
pub(super) struct Written(String);

impl Written {
    /// The text of such a number, if a value is one.
    pub(super) fn of(value: &Value) -> Option<&str> {
        value.downcast_object_ref::<Self>().map(|written| written.0.as_str())
    }
}

impl Object for Written {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

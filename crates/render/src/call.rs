//! JSON as template values, with the marks of the tool call that it belongs to.
use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::Value;
use minijinja::value::{Enumerator, Object};
use serde_json::Value as Json;

use super::argument::{self, Argument};
use super::mark::{self, Marking};

/// An object inside a tool call, which knows the call's marks.
///
/// Its strings carry the marks in themselves; what `tojson` writes of the whole is marked there,
/// since it is text that the policy sampled just as the strings are.
#[derive(Debug)]
pub(super) struct Marked {
    entries: Vec<(Value, Value)>,
    segment: Option<u32>,
}

impl Marked {
    /// A tool call of segment number `segment` as chat templates expect it.
    pub(super) fn call(
        id: &str,
        name: &str,
        input: &Argument,
        segment: u32,
        marking: Marking,
    ) -> Value {
        let text = |text: &str| Value::from(mark::wrap(text, segment, marking).as_ref());
        let (key, number) = (Value::from, (marking != Marking::Plain).then_some(segment));
        let function = vec![
            (key("name"), text(name)),
            (key("arguments"), value(input, Some((segment, marking)))),
        ];
        let function = Value::from_object(Self { entries: function, segment: number });
        let entries = vec![
            (key("id"), Value::from(id)),
            (key("type"), key("function")),
            (key("function"), function),
        ];
        Value::from_object(Self { entries, segment: number })
    }

    /// The marks around it, where it has any.
    pub(super) fn marks(&self) -> Option<(String, String)> {
        self.segment.map(|segment| (mark::write(segment, true), mark::write(segment, false)))
    }
}

impl Object for Marked {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.entries.iter().map(|(name, _)| name.clone()).collect())
    }
}

/// JSON as a template value without marks.
pub(super) fn plain(json: &Json) -> Value {
    value(&Argument::from(json), None)
}

fn value(argument: &Argument, marks: Option<(u32, Marking)>) -> Value {
    match argument {
        Argument::Null => Value::from(()),
        Argument::Bool(bool) => Value::from(*bool),
        Argument::Number(text) => argument::number(text),
        Argument::String(text) => match marks {
            Some((segment, marking)) => Value::from(mark::wrap(text, segment, marking).as_ref()),
            None => Value::from(text.as_str()),
        },
        Argument::List(items) => {
            items.iter().map(|item| value(item, marks)).collect::<Vec<_>>().into()
        }
        Argument::Object(entries) => object(entries, marks),
    }
}

fn object(entries: &IndexMap<String, Argument>, marks: Option<(u32, Marking)>) -> Value {
    let entries =
        entries.iter().map(|(key, item)| (Value::from(key.as_str()), value(item, marks))).collect();
    let segment =
        marks.filter(|(_, marking)| *marking != Marking::Plain).map(|(segment, _)| segment);
    Value::from_object(Marked { entries, segment })
}

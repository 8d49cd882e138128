//! What chat templates expect of Python: its JSON, its string methods, its dates.
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Output, State, Value, escape_formatter};

use super::argument::Written;
use super::call::Marked;

/// `json.dumps` as Hugging Face gives it to chat templates: not escaped for HTML, non-ASCII
/// characters as they are.
///
/// What it writes of a tool call's own object stands between that call's marks.
pub(super) fn tojson(value: Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<Value> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let indent = indent.filter(|indent| !indent.is_none()).map(|indent| match indent.as_usize() {
        Some(width) => " ".repeat(width),
        None => indent.as_str().unwrap_or_default().to_owned(),
    });
    let (item, key) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        _ => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
    };
    let json = Json {
        indent,
        item,
        key,
        ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sorted: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    let mut out = String::new();
    json.write(&value, 0, &mut out)?;
    if let Some((open, close)) = value.downcast_object_ref::<Marked>().and_then(Marked::marks) {
        out = format!("{open}{out}{close}");
    }
    Ok(Value::from_safe_string(out))
}

struct Json {
    indent: Option<String>,
    item: String,
    key: String,
    ascii: bool,
    sorted: bool,
}

impl Json {
    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        match value.kind() {
            ValueKind::Plain if Written::of(value).is_some() => {
                out.push_str(Written::of(value).unwrap_or_default());
            }
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
            ValueKind::Number => out.push_str(&float(f64::try_from(value.clone())?)),
            ValueKind::String => self.string(value.as_str().unwrap_or_default(), out),
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sorted {
                    keys.sort();
                }
                self.list('{', '}', depth, keys.into_iter(), out, |key, out| {
                    self.string(&key.to_string(), out);
                    out.push_str(&self.key);
                    self.write(&value.get_item(&key)?, depth + 1, out)
                })?;
            }
            ValueKind::Seq | ValueKind::Iterable => {
                self.list('[', ']', depth, value.try_iter()?, out, |item, out| {
                    self.write(&item, depth + 1, out)
                })?;
            }
            kind => {
                let message = format!("Object of type {kind} is not JSON serializable");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        }
        Ok(())
    }

    fn list(
        &self,
        open: char,
        close: char,
        depth: usize,
        items: impl Iterator<Item = Value>,
        out: &mut String,
        mut write: impl FnMut(Value, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        out.push(open);
        let mut empty = true;
        for item in items {
            if !std::mem::replace(&mut empty, false) {
                out.push_str(&self.item);
            }
            self.line(depth + 1, out);
            write(item, out)?;
        }
        if !empty {
            self.line(depth, out);
        }
        out.push(close);
        Ok(())
    }

    fn line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    }

    fn string(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                c if self.ascii && !c.is_ascii() => {
                    c.encode_utf16(&mut [0; 2])
                        .iter()
                        .for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

/// A float as Python's `repr` writes it: shortest digits, scientific below 1e-4 and from 1e16.
pub(super) fn float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..16).contains(&exponent) {
        return format!("{value:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// `str` of a value: floats as Python writes them, everything else as it is written anyway.
pub(super) fn string(value: &Value) -> Value {
    match value.kind() {
        ValueKind::String => value.clone(),
        ValueKind::Number if !value.is_integer() => {
            Value::from(f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float))
        }
        _ => Value::from(value.to_string()),
    }
}

/// How a value is printed.
pub(super) fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Number => escape_formatter(out, state, &string(value)),
        _ => escape_formatter(out, state, value),
    }
}

/// Whether Python could go through a value, as Jinja2's test `iterable` asks: through a text or
/// nothing defined too, and not through `none`.
pub(super) fn is_iterable(value: &Value) -> bool {
    match value.kind() {
        ValueKind::None | ValueKind::Bool | ValueKind::Number => false,
        ValueKind::Undefined | ValueKind::String | ValueKind::Bytes => true,
        _ => value.try_iter().is_ok(),
    }
}

/// Whether a value has a length and items, as Jinja2's test `sequence` asks: texts and dicts have.
pub(super) fn is_sequence(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Undefined
            | ValueKind::String
            | ValueKind::Bytes
            | ValueKind::Seq
            | ValueKind::Map
    )
}

/// Whether a value is a dict.
pub(super) fn is_mapping(value: &Value) -> bool {
    value.kind() == ValueKind::Map
}

/// Whether a value can be called, which no value that a template is given can; what is not defined
/// can, to say that it is not.
pub(super) fn is_callable(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Undefined | ValueKind::Plain)
}

/// Where an item stands in a list, or a text in a text, by Unicode characters.
fn index(value: &Value, args: &[Value]) -> Result<Value, Error> {
    let missing = || Error::new(ErrorKind::InvalidOperation, "what is looked for is not there");
    let Some(wanted) = args.first() else {
        return Err(Error::new(ErrorKind::MissingArgument, "index() takes what to look for"));
    };
    let place = match (value.as_str(), wanted.as_str()) {
        (Some(text), Some(part)) => text.find(part).map(|byte| text[..byte].chars().count()),
        (Some(_), None) => None,
        _ => value.try_iter()?.position(|item| item == *wanted),
    };
    place.map(Value::from).ok_or_else(missing)
}

/// Methods of Python's strings, lists and dicts that templates call.
pub(super) fn method(
    state: &mut State,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let argument = args.first().and_then(|argument| argument.as_str());
    if name == "index" && matches!(value.kind(), ValueKind::String | ValueKind::Seq) {
        return index(value, args);
    }
    match (name, value.as_str(), argument) {
        ("removeprefix", Some(text), Some(prefix)) => {
            Ok(Value::from(text.strip_prefix(prefix).unwrap_or(text)))
        }
        ("removesuffix", Some(text), Some(suffix)) => {
            Ok(Value::from(text.strip_suffix(suffix).unwrap_or(text)))
        }
        ("partition", Some(text), Some(at)) => Ok(match text.split_once(at) {
            Some((before, after)) => list(&[before, at, after]),
            None => list(&[text, "", ""]),
        }),
        ("rpartition", Some(text), Some(at)) => Ok(match text.rsplit_once(at) {
            Some((before, after)) => list(&[before, at, after]),
            None => list(&["", "", text]),
        }),
        ("rsplit", Some(text), Some(at)) => {
            let most = args
                .get(1)
                .and_then(Value::as_usize)
                .map_or(usize::MAX, |most| most.saturating_add(1));
            let mut pieces: Vec<&str> = text.rsplitn(most, at).collect();
            pieces.reverse();
            Ok(list(&pieces))
        }
        _ => minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args),
    }
}

fn list(items: &[&str]) -> Value {
    items.iter().map(|item| Value::from(*item)).collect()
}

/// How a template refuses messages.
pub(super) fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// `datetime.now().strftime(format)` on a given day.
pub(super) fn strftime(date: jiff::civil::Date, format: &str) -> Result<String, Error> {
    jiff::fmt::strtime::format(format, date.at(0, 0, 0, 0))
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {error}")))
}

//! What a value looks like from outside, which is all that detection needs.
use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::HarnessError;
use crate::core::input::Member;

/// How much of a file is looked at; what tells a format may stand behind a long text, as the kind of
/// an event does behind a system prompt.
pub(crate) const LOOK_AT: u64 = 4 << 20;

/// How deep a value is looked into, and how many of its keys are kept.
const DEPTH: usize = 4;
const ENTRIES: usize = 512;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Scalar,
    Text,
    List,
    Object,
    /// The file is cut off here, so only the key is known.
    Cut,
}

/// The keys of one JSON value and of the values inside it, as dotted paths; `[]` is the first item
/// of a list.
///
/// It is filled as far as the value goes, so a file that is longer than what is looked at is still
/// known by its start.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    entries: Vec<(String, Kind, String)>,
}

impl Shape {
    /// The shape of the first value in `text`, and whether all of it was there.
    pub(crate) fn of(text: &[u8]) -> (Self, Result<(), serde_json::Error>) {
        let read = Self::of_json(text);
        match &read.1 {
            Err(error) if !error.is_eof() => match pleach_tree::without_constants(text) {
                Cow::Owned(mended) => Self::of_json(&mended),
                Cow::Borrowed(_) => read,
            },
            _ => read,
        }
    }

    fn of_json(text: &[u8]) -> (Self, Result<(), serde_json::Error>) {
        let mut shape = Self::default();
        let mut json = serde_json::Deserializer::from_slice(text);
        let whole =
            Walk { shape: &mut shape, path: String::new(), depth: 0 }.deserialize(&mut json);
        (shape, whole)
    }

    fn get(&self, path: &str) -> Option<&(String, Kind, String)> {
        self.entries.iter().find(|(at, ..)| at == path)
    }

    /// What stands at a path.
    pub(crate) fn kind(&self, path: &str) -> Option<Kind> {
        self.get(path).map(|entry| entry.1)
    }

    /// Whether a question is answered in a list of steps, as in every replayed run of raw outputs.
    pub(crate) fn answers_in_steps(&self) -> bool {
        self.has("question") && self.kind("steps") == Some(Kind::List)
    }

    /// Whether something other than null stands at a path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.kind(path).is_some_and(|kind| kind != Kind::Null)
    }

    /// Whether something other than null stands at every one of the paths.
    pub(crate) fn has_all(&self, paths: &[&str]) -> bool {
        paths.iter().all(|path| self.has(path))
    }

    /// The text at a path, cut to its first bytes.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.get(path).filter(|entry| entry.1 == Kind::Text).map(|entry| entry.2.as_str())
    }

    /// Whether the text at a path is one of these.
    pub(crate) fn is(&self, path: &str, texts: &[&str]) -> bool {
        self.text(path).is_some_and(|text| texts.contains(&text))
    }
}

struct Walk<'a> {
    shape: &'a mut Shape,
    path: String,
    depth: usize,
}

impl Walk<'_> {
    fn note(&mut self, kind: Kind, text: &str) {
        match self.shape.entries.last_mut() {
            Some(last) if last.0 == self.path => {
                last.1 = kind;
                last.2 = text.chars().take(64).collect();
            }
            _ => {}
        }
    }

    fn scalar<E>(mut self) -> Result<(), E> {
        self.note(Kind::Scalar, "");
        Ok(())
    }

    fn child(&mut self, key: &str) -> Walk<'_> {
        let dot = if self.path.is_empty() || key == "[]" { "" } else { "." };
        let path = format!("{}{dot}{key}", self.path);
        if self.shape.entries.len() < ENTRIES {
            self.shape.entries.push((path.clone(), Kind::Cut, String::new()));
        }
        Walk { shape: self.shape, path, depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.scalar()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.scalar()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.scalar()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.scalar()
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        self.note(Kind::Null, "");
        Ok(())
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<(), E> {
        self.note(Kind::Text, text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.note(Kind::List, "");
        if self.depth < DEPTH && items.next_element_seed(self.child("[]"))?.is_none() {
            return Ok(());
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.note(Kind::Object, "");
        while let Some(key) = map.next_key::<String>()? {
            if self.depth < DEPTH {
                map.next_value_seed(self.child(&key))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Whether a file is of a format, by its content, for formats whose sessions are folders.
pub(crate) fn is_of(member: &Member, mark: fn(&Shape) -> bool) -> Result<bool, HarnessError> {
    Ok(shapes(&member.start(LOOK_AT)?).any(|shape| mark(&shape)))
}

/// The shape of the first value in a file that has one.
pub(crate) fn first_shape(member: &Member) -> Result<Option<Shape>, HarnessError> {
    Ok(shapes(&member.start(LOOK_AT)?).next())
}

/// The shape of every line; one that goes on over the next lines, as in an indented document,
/// counts with them.
pub(crate) fn shapes(start: &[u8]) -> impl Iterator<Item = Shape> {
    /// How often a line may be taken for the start of something longer.
    const LONGER: usize = 3;
    let (mut at, mut longer) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            let rest = start.get(at..).filter(|rest| !rest.is_empty())?;
            let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
            at += line.len() + 1;
            if !line.trim_ascii_start().starts_with(b"{")
                && !line.trim_ascii_start().starts_with(b"[")
            {
                continue;
            }
            let (shape, whole) = Shape::of(line);
            if whole.is_err_and(|error| error.is_eof())
                && line.len() < rest.len()
                && longer < LONGER
            {
                longer += 1;
                let (shape, whole) = Shape::of(rest);
                // What stands inside a value is no value of the file.
                at += match whole {
                    Ok(()) => value_end(rest).map_or(rest.len(), |end| end - line.len()),
                    Err(error) if error.is_eof() && is_inside(&rest[line.len()..]) => rest.len(),
                    Err(_) => 0,
                };
                return Some(shape);
            }
            return Some(shape);
        }
    })
}

/// Where the first value of a text ends.
fn value_end(text: &[u8]) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

/// Whether the next line that holds anything is indented, as those inside a document are.
fn is_inside(rest: &[u8]) -> bool {
    let mut lines = rest.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.next().is_some_and(|line| line[0].is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_inside_an_indented_value_is_no_value_of_the_file() {
        let keys = |text: &str| -> Vec<String> {
            shapes(text.as_bytes())
                .filter_map(|shape| Some(shape.entries.first()?.0.clone()))
                .collect()
        };
        let document = "{\n \"a\": [\n  {\n   \"b\": 1\n  },\n  {\"c\": 2}\n ]\n}\n";
        assert_eq!(keys(&format!("{document}{{\"d\":1}}\n")), ["a", "d"]);
        assert_eq!(keys(&document[..40]), ["a"]);
        // A line that breaks off hides nothing.
        assert_eq!(keys("{\"a\":\"b\n\n{\"c\":1}\n"), ["a", "c"]);
    }

    #[test]
    fn a_value_that_is_cut_off_is_known_as_far_as_it_goes() {
        let (shape, whole) =
            Shape::of(br#"{"a":{"b":"text","n":null},"list":[{"c":1},{"d":2}],"cut":"he"#);
        assert!(whole.is_err());
        assert_eq!(shape.text("a.b"), Some("text"));
        assert!(!shape.has("a.n") && shape.kind("a.n") == Some(Kind::Null));
        assert!(shape.has_all(&["list[].c", "cut"]) && !shape.has("list[].d"));
        assert_eq!((shape.kind("list"), shape.kind("cut")), (Some(Kind::List), Some(Kind::Cut)));
    }
}

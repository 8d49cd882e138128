//! `NaN`, `Infinity` and `-Infinity`, which Python writes where JSON has no number.
use std::borrow::Cow;
use std::ops::Range;

/// Words that stand for numbers which JSON cannot say.
const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// The text with `null` in place of every number that Python writes and JSON does not have.
///
/// Strings are left as they are. What is looked at before it is read, such as the start of a file,
/// goes through this; who reads a file through [`JsonLines`](crate::JsonLines) gets the same, and a
/// fault for each list that holds such numbers.
pub fn without_constants(text: &[u8]) -> Cow<'_, [u8]> {
    // Each of them has this letter, and most text that is read as JSON does not get here.
    if !text.contains(&b'N') && !text.contains(&b'I') {
        return Cow::Borrowed(text);
    }
    match Constant::all(text).as_slice() {
        [] => Cow::Borrowed(text),
        found => Cow::Owned(put_null(text, found)),
    }
}

/// The text with `null` in the place of each.
pub(crate) fn put_null(text: &[u8], constants: &[Constant]) -> Vec<u8> {
    let (mut out, mut copied) = (Vec::with_capacity(text.len() + constants.len()), 0);
    for constant in constants {
        out.extend_from_slice(&text[copied..constant.at.start]);
        out.extend_from_slice(b"null");
        copied = constant.at.end;
    }
    out.extend_from_slice(&text[copied..]);
    out
}

/// One such number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    pub(crate) at: Range<usize>,
    pub(crate) word: &'static str,
    /// The list or object that it stands in, as a path of keys.
    pub(crate) inside: String,
    /// Where in that it stands.
    pub(crate) key: String,
}

/// A list or an object that is open while a text is gone through.
enum Open {
    List(usize),
    /// The key whose value comes next.
    Object(Range<usize>),
}

impl Open {
    fn key(&self, text: &[u8]) -> String {
        match self {
            Self::List(index) => format!("[{index}]"),
            Self::Object(key) => String::from_utf8_lossy(&text[key.clone()]).into_owned(),
        }
    }
}

impl Constant {
    /// All of a text, in order; what else is wrong with the text is not looked at.
    pub(crate) fn all(text: &[u8]) -> Vec<Self> {
        let (mut found, mut open, mut at): (Vec<Self>, Vec<Open>, usize) =
            (Vec::new(), Vec::new(), 0);
        let mut last = 0..0;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'"' => {
                    last = at + 1..string_end(text, at + 1);
                    at = last.end;
                }
                b':' => {
                    if let Some(Open::Object(key)) = open.last_mut() {
                        *key = last.clone();
                    }
                }
                b',' => {
                    if let Some(Open::List(index)) = open.last_mut() {
                        *index += 1;
                    }
                }
                b'{' => open.push(Open::Object(0..0)),
                b'[' => open.push(Open::List(0)),
                b'}' | b']' => {
                    open.pop();
                }
                b'N' | b'I' | b'-' => {
                    let word =
                        WORDS.into_iter().find(|word| text[at..].starts_with(word.as_bytes()));
                    if let Some(word) = word.filter(|word| stands_alone(text, at, word.len())) {
                        let keys: Vec<String> = open.iter().map(|open| open.key(text)).collect();
                        let (key, inside) =
                            keys.split_last().map_or_else(Default::default, |(key, inside)| {
                                (key.clone(), path(inside))
                            });
                        found.push(Self { at: at..at + word.len(), word, inside, key });
                        at += word.len() - 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// Its path from the root.
    pub(crate) fn path(&self) -> String {
        path(&[self.inside.clone(), self.key.clone()])
    }
}

/// Where a string ends: at its closing quote, or with the text.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        match text[at + found] {
            b'"' => return at + found,
            _ => at += found + 2,
        }
    }
    text.len()
}

/// Whether a word is a value by itself and no part of another one.
fn stands_alone(text: &[u8], at: usize, len: usize) -> bool {
    let opens = |byte: &u8| byte.is_ascii_whitespace() || b"[:,".contains(byte);
    let closes = |byte: &u8| byte.is_ascii_whitespace() || b"]},".contains(byte);
    text[..at].last().is_none_or(opens) && text.get(at + len).is_none_or(closes)
}

fn path(keys: &[String]) -> String {
    let mut path = String::new();
    for key in keys.iter().filter(|key| !key.is_empty()) {
        if !path.is_empty() && !key.starts_with('[') {
            path.push('.');
        }
        path.push_str(key);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_python_is_found_with_its_path_and_words_in_strings_are_not() {
        let text = br#"{"a":[1,NaN,{"b":-Infinity}],"NaN":"NaN","c\"":[[Infinity],NaNs],"d":NaN}"#;
        let found: Vec<(&str, String)> =
            Constant::all(text).iter().map(|found| (found.word, found.path())).collect();
        let path = |path: &str| path.to_owned();
        assert_eq!(
            found,
            [
                ("NaN", path("a[1]")),
                ("-Infinity", path("a[2].b")),
                ("Infinity", path(r#"c\"[0][0]"#)),
                ("NaN", path("d"))
            ]
        );
        let mended = without_constants(br#"{"a":[NaN, "NaN"]}"#);
        assert_eq!(mended, br#"{"a":[null, "NaN"]}"#.as_slice());
    }

    #[test]
    fn text_that_is_cut_inside_a_string_is_gone_through_to_its_end() {
        for text in [&br#"{"a":[NaN],"b":"NaN\"#[..], br#"["\"#, br#"NaN"#, b"", b"[-", b"]]NaN"] {
            assert!(Constant::all(text).len() <= 1);
        }
    }
}

//! Whether what was recorded still stands in what a template wrote of it.
use memchr::{memmem, memrchr};
use serde_json::Value as Json;

use super::argument::Argument;

/// What stands for a stretch that was found already; no squeezed text holds it.
const FOUND: u8 = b' ';

/// What a template wrote of an answer, without white space, which templates trim and lay out anew.
///
/// Every stretch of it is one text's: a thought is not shown by a text that repeats it, nor a call
/// by a text that speaks of it.
#[derive(Debug)]
pub(super) struct Written {
    bytes: Vec<u8>,
    /// Bytes of it that the prompt ends with, with which nothing that was said ends.
    asked: usize,
}

/// A text that must stand in what a template wrote, in one of its spellings.
#[derive(Debug)]
pub(super) struct Piece(Vec<String>);

impl Piece {
    /// A text as it is.
    pub(super) fn text(words: &str) -> Self {
        Self(vec![squeezed(words)])
    }

    /// A text as it is, or as JSON writes it, in ASCII or not.
    fn quoted(words: &str) -> Self {
        let quoted = Json::from(words).to_string();
        let quoted = &quoted[1..quoted.len() - 1];
        let mut spellings = vec![squeezed(words), squeezed(quoted), squeezed(&ascii(quoted))];
        spellings.dedup();
        Self(spellings)
    }

    /// The texts of a call: its name, and every key and text of its arguments.
    pub(super) fn call(name: &str, input: &Argument) -> Vec<Self> {
        let mut pieces = vec![Self::text(name)];
        Self::argument(input, &mut pieces);
        pieces
    }

    fn argument(value: &Argument, pieces: &mut Vec<Self>) {
        match value {
            Argument::Object(entries) => entries.iter().for_each(|(key, value)| {
                pieces.push(Self::quoted(key));
                Self::argument(value, pieces);
            }),
            Argument::List(items) => items.iter().for_each(|item| Self::argument(item, pieces)),
            Argument::String(text) => pieces.push(Self::quoted(text)),
            Argument::Null | Argument::Bool(_) | Argument::Number(_) => {}
        }
    }

    /// Bytes of the text, by which longer texts are looked for before those that they may hold.
    pub(super) fn len(&self) -> usize {
        self.0.first().map_or(0, String::len)
    }
}

impl Written {
    /// What stands behind the last message: the end of the prompt and the answer.
    pub(super) fn new(asked: &str, answer: &str) -> Self {
        let asked = squeezed(asked);
        Self { asked: asked.len(), bytes: (asked + &squeezed(answer)).into_bytes() }
    }

    /// Finds a text, in one piece, and takes it, so that no other text is found there; false where
    /// it is not there.
    pub(super) fn take(&mut self, piece: &Piece) -> bool {
        piece.0.iter().any(|words| {
            let from = (self.asked + 1).saturating_sub(words.len()).min(self.bytes.len());
            let at = memmem::find(&self.bytes[from..], words.as_bytes()).map(|at| from + at);
            if let Some(at) = at {
                self.bytes[at..at + words.len()].fill(FOUND);
            }
            at.is_some() || words.is_empty()
        })
    }

    /// Where in `answer`, of which this was made, the last text that was taken ends.
    pub(super) fn end(&self, answer: &str) -> usize {
        let taken = memrchr(FOUND, &self.bytes).map_or(0, |last| last + 1);
        let mut left = taken.saturating_sub(self.asked);
        let end = answer.char_indices().filter(|(_, c)| !c.is_whitespace()).find(|(_, c)| {
            left = left.saturating_sub(c.len_utf8());
            left == 0
        });
        match (taken > self.asked, end) {
            (true, Some((at, c))) => at + c.len_utf8(),
            _ => 0,
        }
    }

    /// Whether the answer holds what a call says besides texts, in whatever notation.
    pub(super) fn holds_values(&self, value: &Argument) -> bool {
        let any = |words: [&str; 2]| words.iter().any(|words| self.holds(words));
        match value {
            Argument::Object(entries) => entries.values().all(|value| self.holds_values(value)),
            Argument::List(items) => items.iter().all(|item| self.holds_values(item)),
            Argument::String(_) => true,
            Argument::Bool(true) => any(["true", "True"]),
            Argument::Bool(false) => any(["false", "False"]),
            Argument::Null => any(["null", "None"]),
            Argument::Number(number) => self.holds(number) || self.holds_number(number),
        }
    }

    fn holds(&self, words: &str) -> bool {
        memmem::find(&self.bytes, words.as_bytes()).is_some()
    }

    /// Numbers are written in several ways (`1e5`, `100000.0`), so that what stands there is
    /// compared by its value where it does not stand as it was.
    fn holds_number(&self, number: &str) -> bool {
        let Ok(value) = number.parse::<f64>() else { return false };
        let digits = |byte: &u8| !byte.is_ascii_digit() && !b"+-.eE".contains(byte);
        let is_value = |text: &[u8]| {
            let text = std::str::from_utf8(text).unwrap_or_default();
            let text = text.trim_matches(|c: char| "+.eE".contains(c)).trim_end_matches('-');
            text.parse::<f64>() == Ok(value)
        };
        self.bytes.split(digits).any(is_value)
    }
}

/// A text without its white space.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(written: &str, texts: &[&str]) -> bool {
        let mut written = Written::new("<assistant>", written);
        texts.iter().all(|text| written.take(&Piece::text(text)))
    }

    fn holds_call(written: &str, name: &str, input: &Argument) -> bool {
        let mut written = Written::new("", written);
        let mut pieces = Piece::call(name, input);
        pieces.sort_by_key(|piece| std::cmp::Reverse(piece.len()));
        pieces.iter().all(|piece| written.take(piece)) && written.holds_values(input)
    }

    #[test]
    fn a_text_survives_other_white_space_and_no_other_change() {
        let said = "<think>\nHow loud?\n</think>\n\nRung.<|im_end|>";
        assert!(holds(said, &["<think>How loud?</think>\nRung."]));
        assert!(holds(said, &[" Rung.\n", ""]));
        assert!(!holds(said, &["Rung. How loud?"]));
    }

    #[test]
    fn one_stretch_shows_one_text_and_the_prompt_shows_none() {
        assert!(holds("<think>Rung</think>Rung", &["Rung", "Rung"]));
        assert!(!holds("<think></think>Rung", &["Rung", "Rung"]));
        assert!(!holds("<end>", &["assistant"]) && !holds("", &["assistant"]));
        assert!(holds("Rung.", &["<assistant>Rung."]));
    }

    #[test]
    fn a_call_survives_in_any_notation_that_says_all_of_it() {
        let input = Argument::from(
            &json!({"path": "a\"é.rs", "line": 30, "all": true, "x": 1e5, "of": ["b", null]}),
        );
        let json = r#"{"name": "read", "arguments": {"path": "a\"é.rs", "line": 30, "all": true, "x": 100000.0, "of": ["b", null]}}"#;
        let ascii = json.replace('é', "\\u00e9");
        let xml = "<read><path>a\"é.rs</path><line>30</line><all>True</all><x>1e5</x><of>['b', None]</of></read>";
        let bare = "read path a\"é.rs line 30 all True x 100000.0 end of b None";
        for text in [json, &ascii, xml, bare] {
            assert!(holds_call(text, "read", &input), "{text}");
        }
        for missing in ["30", "path", "True", "None", "1e5", "read"] {
            let text = xml.replace(missing, "");
            assert!(!holds_call(&text, "read", &input), "{missing}");
        }
    }
}

//! Whether what was recorded still stands in what a template wrote of it.
use serde_json::Value as Json;

use super::argument::Argument;

/// A text without its white space, which templates trim and lay out anew.
pub(super) fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Whether a squeezed text holds all of `words`, in one piece.
pub(super) fn holds(said: &str, words: &str) -> bool {
    said.contains(&squeezed(words))
}

/// Whether a squeezed text holds the name of a call and everything that its arguments say, in
/// whatever notation.
pub(super) fn holds_call(said: &str, name: &str, input: &Argument) -> bool {
    holds(said, name) && holds_value(said, input)
}

fn holds_value(said: &str, value: &Argument) -> bool {
    match value {
        Argument::Object(entries) => {
            entries.iter().all(|(key, value)| holds_text(said, key) && holds_value(said, value))
        }
        Argument::List(items) => items.iter().all(|item| holds_value(said, item)),
        Argument::String(text) => holds_text(said, text),
        Argument::Bool(true) => said.contains("true") || said.contains("True"),
        Argument::Bool(false) => said.contains("false") || said.contains("False"),
        Argument::Null => said.contains("null") || said.contains("None"),
        Argument::Number(number) => holds_number(said, number),
    }
}

/// Numbers are written in several ways (`1e5`, `100000.0`), so that what stands there is compared
/// by its value where it does not stand as it was.
fn holds_number(said: &str, number: &str) -> bool {
    let digits = |c: char| !c.is_ascii_digit() && !"+-.eE".contains(c);
    let value = number.parse::<f64>().ok();
    said.contains(number)
        || said.split(digits).any(|text| text.parse::<f64>().ok() == value && value.is_some())
}

/// A text as it is, or as JSON writes it, in ASCII or not.
fn holds_text(said: &str, text: &str) -> bool {
    holds(said, text) || {
        let quoted = Json::from(text).to_string();
        let quoted = &quoted[1..quoted.len() - 1];
        holds(said, quoted) || holds(said, &ascii(quoted))
    }
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

    #[test]
    fn a_text_survives_other_white_space_and_no_other_change() {
        let said = squeezed("<think>\nHow loud?\n</think>\n\nRung.<|im_end|>");
        assert!(holds(&said, "<think>How loud?</think>\nRung."));
        assert!(holds(&said, " Rung.\n") && holds(&said, ""));
        assert!(!holds(&said, "Rung. How loud?"));
    }

    #[test]
    fn a_call_survives_in_any_notation_that_says_all_of_it() {
        let input = Argument::from(
            &json!({"path": "a\"é.rs", "line": 30, "all": true, "x": 1e5, "of": ["b", null]}),
        );
        let json = r#"{"name": "read", "arguments": {"path": "a\"é.rs", "line": 30, "all": true, "x": 100000.0, "of": ["b", null]}}"#;
        let ascii = json.replace('é', "\\u00e9");
        let xml = "<read><path>a\"é.rs</path><line>30</line><all>True</all><x>1e5</x><of>['b', None]</of></read>";
        for text in [json, &ascii, xml] {
            assert!(holds_call(&squeezed(text), "read", &input), "{text}");
        }
        for missing in ["30", "path", "True", "None", "1e5", "read"] {
            let text = squeezed(&xml.replace(missing, ""));
            assert!(!holds_call(&text, "read", &input), "{missing}");
        }
    }
}

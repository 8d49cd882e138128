//! What is no plain text, written as text.
use serde_json::Value;

/// Bytes below which a text is found in another one by chance.
pub(crate) const SHORTEST_QUOTE: usize = 24;

/// A tool call as the object `{"id", "name", "input"}`, its input as it was written but for the
/// space between tokens.
pub(crate) fn call(id: &str, name: &str, input: &str) -> String {
    format!(
        r#"{{"id":{},"name":{},"input":{}}}"#,
        Value::from(id),
        Value::from(name),
        compact(input)
    )
}

/// JSON without the space between its tokens, every token as it was.
pub(crate) fn compact(raw: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(raw.len()), false, false);
    let mut start = 0;
    for (at, byte) in raw.bytes().enumerate() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte == b'"' {
            quoted = true;
        } else if byte.is_ascii_whitespace() {
            out.push_str(&raw[start..at]);
            start = at + 1;
        }
    }
    out.push_str(&raw[start..]);
    out
}

/// Puts its size for the base64 text of an image or a document, and for what is encrypted.
pub(crate) fn leave_out_data(key: &str, value: &mut Value) {
    match value {
        Value::String(data) if data.len() > 64 && (is_data(key) || data.starts_with("data:")) => {
            *data = format!("[{} bytes of base64 left out]", data.len());
        }
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, value)| leave_out_data(key, value))
        }
        Value::Array(items) => items.iter_mut().for_each(|item| leave_out_data(key, item)),
        _ => {}
    }
}

fn is_data(key: &str) -> bool {
    matches!(key, "data" | "encrypted_content" | "thoughtSignature")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_between_tokens_is_dropped_and_space_in_strings_is_kept() {
        let raw = "{ \"a \\\" b\\\\\" : [1 , 2.50],\n\"c\": \"d  e\" }";
        assert_eq!(compact(raw), r#"{"a \" b\\":[1,2.50],"c":"d  e"}"#);
    }
}

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::sync::Arc;

use memchr::memmem;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::constants::{Constant, put_null};
use crate::{Fault, Location, Report};

/// How a damaged file is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Repair what can be repaired, and list it, instead of rejecting the file.
    pub lenient: bool,
    /// Longest line in bytes that is held in memory.
    pub max_line_bytes: usize,
}

impl ReadOptions {
    /// Rejects a damaged file with a list of all its faults.
    pub const STRICT: Self = Self { lenient: false, max_line_bytes: 256 << 20 };
    /// Repairs what can be repaired and lists what was done.
    pub const LENIENT: Self = Self { lenient: true, ..Self::STRICT };
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self::STRICT
    }
}

/// JSON Lines read one line at a time, with every kind of damage named and, in lenient mode,
/// repaired.
///
/// Lines end at LF and nowhere else, so a raw U+2028 inside a string is text. Both eviction records
/// and the session files of harnesses are read through it, which is why it knows nothing of
/// records.
#[derive(Debug)]
pub struct JsonLines<R> {
    reader: R,
    file: Arc<str>,
    options: ReadOptions,
    number: u64,
    buffer: Vec<u8>,
    done: bool,
}

enum Filled {
    End,
    Line { finished: bool },
    TooLong,
}

impl<R: BufRead> JsonLines<R> {
    /// Reads `reader`, which errors call `file`.
    pub fn new(reader: R, file: impl Into<Arc<str>>, options: ReadOptions) -> Self {
        Self { reader, file: file.into(), options, number: 0, buffer: Vec::new(), done: false }
    }

    /// The name that errors use.
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// How damage is treated.
    pub fn options(&self) -> ReadOptions {
        self.options
    }

    /// Reads the values of the next line that has any into `out`, and the faults into `report`.
    ///
    /// There is more than one value where records were glued together. A line that was mended gives
    /// its values under either mode, so that what refers to them is not at fault as well; whoever
    /// reads strictly rejects the file in the end. Returns the line's location, or `None` at the
    /// end.
    ///
    /// # Errors
    /// Only those of the underlying reader.
    pub fn next_line<T: DeserializeOwned>(
        &mut self,
        out: &mut Vec<T>,
        report: &mut Report,
    ) -> io::Result<Option<Location>> {
        out.clear();
        while !self.done {
            self.number += 1;
            let location = Location::line(&self.file, self.number);
            match self.fill()? {
                Filled::End => self.done = true,
                Filled::TooLong => {
                    let limit = self.options.max_line_bytes;
                    report.fault(location.clone(), Fault::LineTooLong { limit });
                }
                Filled::Line { finished } => {
                    self.parse(&location, finished, out, report);
                    if !out.is_empty() {
                        return Ok(Some(location));
                    }
                }
            }
        }
        Ok(None)
    }

    fn fill(&mut self) -> io::Result<Filled> {
        self.buffer.clear();
        let mut too_long = false;
        let mut any = false;
        loop {
            let available = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if available.is_empty() {
                return Ok(if too_long {
                    Filled::TooLong
                } else if any {
                    Filled::Line { finished: false }
                } else {
                    Filled::End
                });
            }
            any = true;
            let end = memchr::memchr(b'\n', available);
            let piece = &available[..end.unwrap_or(available.len())];
            if too_long || self.buffer.len() + piece.len() > self.options.max_line_bytes {
                too_long = true;
                self.buffer = Vec::new();
            } else {
                self.buffer.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(if too_long {
                    Filled::TooLong
                } else {
                    Filled::Line { finished: true }
                });
            }
        }
    }

    fn parse<T: DeserializeOwned>(
        &mut self,
        at: &Location,
        finished: bool,
        out: &mut Vec<T>,
        report: &mut Report,
    ) {
        if self.number == 1 && self.first_line(at, report) {
            return;
        }
        if self.buffer.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if let Ok(value) = serde_json::from_slice(&self.buffer) {
            out.push(value);
            return;
        }
        let mut faults = Vec::new();
        let text = mend(&self.buffer, &mut faults);
        for (key, fault) in faults {
            report.fault(at.key(key), fault);
        }
        let mut pieces = Vec::new();
        match split(&text, &mut pieces) {
            Ok(()) => {}
            Err(error) if error.is_eof() && !finished => {
                report.fault(at.clone(), Fault::TruncatedLine { bytes: self.buffer.len() });
                return;
            }
            Err(error) => {
                let message = format!("{} at byte {}", cause(&error), error.column());
                report.fault(at.clone(), Fault::Json { message });
                return;
            }
        }
        if pieces.len() > 1 {
            report.fault(at.clone(), Fault::GluedRecords { count: pieces.len() });
        }
        for piece in pieces {
            match serde_json::from_str(piece) {
                Ok(value) => out.push(value),
                Err(error) => {
                    let (key, message) = describe::<T>(piece, &error);
                    report.fault(at.key(key), Fault::Field { message });
                }
            }
        }
    }

    /// Handles what can only stand at the start of a file; true where nothing else of it can be
    /// read.
    fn first_line(&mut self, at: &Location, report: &mut Report) -> bool {
        if let Some(kind) = crate::compression(&self.buffer) {
            report.fault(at.clone(), Fault::Compressed { kind: kind.into() });
            self.done = true;
            return true;
        }
        if self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.buffer.drain(..3);
            report.repaired(at.clone(), Fault::ByteOrderMark);
        }
        false
    }
}

/// Takes NUL bytes, invalid UTF-8, lone surrogates and what Python writes for numbers that are none
/// out of a line that did not parse; each fault has the key at which it stands, where it has one.
fn mend<'a>(line: &'a [u8], faults: &mut Vec<(String, Fault)>) -> Cow<'a, str> {
    let text = mend_text(line, faults);
    let (mended, count) = pair_surrogates(&text);
    let text = if count == 0 {
        text
    } else {
        faults.push((String::new(), Fault::LoneSurrogate { count }));
        Cow::Owned(mended)
    };
    let constants = Constant::all(text.as_bytes());
    if constants.is_empty() {
        return text;
    }
    for group in constants.chunk_by(|one, next| one.inside == next.inside) {
        let fault = Fault::NoNumber { word: group[0].word, count: group.len() };
        faults.push((group[0].path(), fault));
    }
    let mended = put_null(text.as_bytes(), &constants);
    Cow::Owned(String::from_utf8_lossy(&mended).into_owned())
}

/// The line as text, without NUL bytes.
fn mend_text<'a>(line: &'a [u8], faults: &mut Vec<(String, Fault)>) -> Cow<'a, str> {
    let nuls = memchr::memchr_iter(0, line).count();
    let bytes: Cow<'a, [u8]> = if nuls > 0 {
        faults.push((String::new(), Fault::NulBytes { count: nuls }));
        Cow::Owned(line.iter().copied().filter(|&b| b != 0).collect())
    } else {
        Cow::Borrowed(line)
    };
    if let Err(error) = std::str::from_utf8(line) {
        faults.push((String::new(), Fault::InvalidUtf8 { at: error.valid_up_to() + 1 }));
    }
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Puts `\ufffd` for every escaped surrogate without its other half; returns the text and how many
/// there were.
fn pair_surrogates(text: &str) -> (String, usize) {
    let bytes = text.as_bytes();
    if memmem::find(bytes, b"\\u").is_none() {
        return (String::new(), 0);
    }
    let unit = |at: usize| -> Option<u16> {
        let hex = bytes.get(at..at + 6).filter(|b| b.starts_with(b"\\u"))?;
        u16::from_str_radix(std::str::from_utf8(&hex[2..]).ok()?, 16).ok()
    };
    let (mut out, mut lone, mut at, mut copied) = (String::with_capacity(text.len()), 0, 0, 0);
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                (lone, at, copied) = (lone + 1, at + 6, at + 6);
            }
            Some(_) => at += 6,
            None => at = (at + 2).min(bytes.len()),
        }
    }
    out.push_str(&text[copied..]);
    (out, lone)
}

/// Puts each JSON value of a line into `pieces`, most often one.
fn split<'t>(text: &'t str, pieces: &mut Vec<&'t str>) -> Result<(), serde_json::Error> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut start = 0;
    while let Some(value) = values.next() {
        value?;
        let end = values.byte_offset();
        pieces.push(&text[start..end]);
        start = end;
    }
    Ok(())
}

/// Key path and message of why `text`, which is JSON, is not a `T`.
fn describe<T: DeserializeOwned>(text: &str, error: &serde_json::Error) -> (String, String) {
    let tagged = tag_first(text);
    let mut deserializer = serde_json::Deserializer::from_str(tagged.as_deref().unwrap_or(text));
    let (path, message) = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => (String::new(), cause(error)),
        Err(found) => (found.path().to_string(), cause(found.inner())),
    };
    let path = if path == "." { String::new() } else { path };
    let named = ["missing field `", "duplicate field `"]
        .into_iter()
        .find_map(|start| message.strip_prefix(start));
    match named.and_then(|rest| rest.strip_suffix('`')) {
        Some(field) if path.is_empty() => (field.into(), message),
        Some(field) => (format!("{path}.{field}"), message),
        None => (path, message),
    }
}

/// The object with its tag moved to the front, where it stands elsewhere: such a record is read
/// without a detour, which keeps the path to the key at fault.
fn tag_first(text: &str) -> Option<String> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else { return None };
    if fields.keys().next().is_some_and(|first| first == "t") {
        return None;
    }
    let tag = fields.shift_remove("t")?;
    fields.shift_insert(0, "t".into(), tag);
    Some(Value::Object(fields).to_string())
}

/// What went wrong, without the place, which counts from the start of the line and not of the file.
fn cause(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&place).map(Into::into).unwrap_or(message)
}

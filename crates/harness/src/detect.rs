use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use pleach_tree::{ReadOptions, Record, RecordReader, Report};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::HarnessError;
use crate::claude_code::{self, UsageCheck};

/// Which program wrote a file.
///
/// A further harness is a variant here, what its lines look like in [`detect`], and a module beside `claude_code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Harness {
    /// Eviction records themselves.
    Records,
    /// Session files of Claude Code.
    ClaudeCode,
}

/// What a file of any harness gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The records, a header first.
    pub records: Vec<Record>,
    /// What was found on the way; it holds no errors.
    pub report: Report,
    /// Reconstructed requests against recorded usage, where the harness records it.
    pub usage: Option<UsageCheck>,
}

/// How much of a file is looked at.
const LOOK_AT: u64 = 4 << 20;

/// Keys that tell harnesses apart, whatever stands in them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Keys {
    t: Option<IgnoredAny>,
    version: Option<IgnoredAny>,
    harness: Option<IgnoredAny>,
    r#type: Option<IgnoredAny>,
    uuid: Option<IgnoredAny>,
    session_id: Option<IgnoredAny>,
    is_sidechain: Option<IgnoredAny>,
    leaf_uuid: Option<IgnoredAny>,
    message_id: Option<IgnoredAny>,
    snapshot: Option<IgnoredAny>,
}

impl Keys {
    fn harness(&self) -> Option<Harness> {
        if self.t.is_some() {
            return Some(Harness::Records);
        }
        let line = self.uuid.is_some() && (self.session_id.is_some() || self.is_sidechain.is_some());
        let beside = self.leaf_uuid.is_some() || self.message_id.is_some() && self.snapshot.is_some();
        (self.r#type.is_some() && (line || beside || self.session_id.is_some())).then_some(Harness::ClaudeCode)
    }
}

/// Tells from the first lines of a file, never from its name, which harness wrote it.
///
/// # Errors
/// [`HarnessError::Io`], [`HarnessError::Empty`], [`HarnessError::Compressed`], or [`HarnessError::UnknownHarness`] where no line is
/// one that an adapter knows.
pub fn detect(path: impl AsRef<Path>) -> Result<Harness, HarnessError> {
    let path = path.as_ref();
    let file = || path.display().to_string();
    let io = |source| HarnessError::Io { file: file(), source };
    let mut start = Vec::new();
    File::open(path).map_err(io)?.take(LOOK_AT).read_to_end(&mut start).map_err(io)?;
    if start.iter().all(u8::is_ascii_whitespace) {
        return Err(HarnessError::Empty { file: file() });
    }
    if let Some(kind) = pleach_tree::compression(&start) {
        return Err(HarnessError::Compressed { file: file(), kind });
    }
    detect_bytes(&start).ok_or_else(|| HarnessError::UnknownHarness { file: file() })
}

/// Tells from the first bytes of a file which harness wrote it.
pub fn detect_bytes(start: &[u8]) -> Option<Harness> {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let line = |line: &[u8]| {
        if !line.trim_ascii_start().starts_with(b"{") {
            return None;
        }
        let mut values = serde_json::Deserializer::from_slice(line).into_iter::<Keys>();
        values.next()?.ok()?.harness()
    };
    let lines = || start.split(|&byte| byte == b'\n');
    lines().find_map(line).or_else(|| lines().any(begins_as_record).then_some(Harness::Records))
}

/// Whether a line that may be cut off starts with the tag of a record, as writers of records put it.
fn begins_as_record(line: &[u8]) -> bool {
    let after = |line: &[u8], mark: &[u8]| line.trim_ascii_start().strip_prefix(mark).map(<[u8]>::to_vec);
    after(line, b"{").and_then(|line| after(&line, b"\"t\"")).and_then(|line| after(&line, b":")).is_some()
}

/// Converts a file of any known harness to eviction records.
///
/// # Errors
/// As [`detect`], and [`HarnessError::Rejected`] with every fault of a file that is damaged, under
/// [`ReadOptions::LENIENT`] only with those that cannot be repaired.
pub fn convert(path: impl AsRef<Path>, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let path = path.as_ref();
    match detect(path)? {
        Harness::Records => {
            let name = path.display().to_string();
            let open = File::open(path).map_err(|source| HarnessError::Io { file: name.clone(), source })?;
            read_records(BufReader::with_capacity(1 << 18, open), name, options)
        }
        Harness::ClaudeCode => claude_code::convert_file(path, options),
    }
}

fn read_records(reader: impl BufRead, name: String, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let (mut records, mut report) = (Vec::new(), Report::default());
    let mut lines = RecordReader::new(reader, name.as_str(), options);
    while let Some((_, record)) =
        lines.next_record(&mut report).map_err(|source| HarnessError::Io { file: name.clone(), source })?
    {
        records.push(record);
    }
    if report.has_errors() {
        return Err(HarnessError::Rejected(report));
    }
    Ok(Conversion { records, report, usage: None })
}

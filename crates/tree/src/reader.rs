use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use crate::branch::TreeBuilder;
use crate::{BranchTree, Fault, JsonLines, Location, ReadOptions, Record, Report, TreeError};

/// Eviction records read one line at a time.
///
/// ```
/// use pleach_tree::{ReadOptions, Record, RecordReader, Report};
/// let text = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}"#;
/// let mut reader = RecordReader::new(text.as_bytes(), "example.jsonl", ReadOptions::STRICT);
/// let mut report = Report::new(ReadOptions::STRICT);
/// let (location, record) = reader.next_record(&mut report)?.ok_or("no record")?;
/// assert_eq!(location.line, 1);
/// assert!(matches!(record, Record::Header(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RecordReader<R> {
    lines: JsonLines<R>,
    waiting: Vec<Record>,
    at: Option<Location>,
}

impl<R: BufRead> RecordReader<R> {
    /// Reads `reader`, which errors call `file`.
    pub fn new(reader: R, file: impl Into<Arc<str>>, options: ReadOptions) -> Self {
        Self { lines: JsonLines::new(reader, file, options), waiting: Vec::new(), at: None }
    }

    /// The next record and where it stands, or `None` at the end.
    ///
    /// Faults of lines go into `report`; where that has errors in the end, the file is at fault,
    /// whatever records it gave.
    ///
    /// # Errors
    /// Only those of the underlying reader.
    pub fn next_record(
        &mut self,
        report: &mut Report,
    ) -> std::io::Result<Option<(Location, Record)>> {
        if self.waiting.is_empty() {
            self.at = self.lines.next_line(&mut self.waiting, report)?;
            self.waiting.reverse();
        }
        Ok(self.at.clone().zip(self.waiting.pop()))
    }
}

impl BranchTree {
    /// Reads a file of eviction records and builds its tree.
    ///
    /// # Errors
    /// [`TreeError::Io`], or [`TreeError::Rejected`] with every fault of the file.
    pub fn open(path: impl AsRef<Path>, options: ReadOptions) -> Result<(Self, Report), TreeError> {
        let path = path.as_ref();
        let name: Arc<str> = path.display().to_string().into();
        let io = |source| TreeError::Io { file: name.to_string(), source };
        let file = File::open(path).map_err(io)?;
        Self::read(BufReader::with_capacity(1 << 16, file), Arc::clone(&name), options)
    }

    /// Reads eviction records and builds their tree; errors call the source `name`.
    ///
    /// # Errors
    /// As [`BranchTree::open`].
    pub fn read(
        reader: impl BufRead,
        name: impl Into<Arc<str>>,
        options: ReadOptions,
    ) -> Result<(Self, Report), TreeError> {
        let name = name.into();
        let mut report = Report::new(options);
        let mut builder = TreeBuilder::new();
        let mut records = RecordReader::new(reader, Arc::clone(&name), options);
        loop {
            let next = records.next_record(&mut report);
            match next.map_err(|source| TreeError::Io { file: name.to_string(), source })? {
                Some((at, record)) => builder.push(at, record, &mut report),
                None => break,
            }
        }
        if !builder.has_header() && !report.has_errors() {
            report.fault(Location::line(&name, 1), Fault::MissingHeader);
        }
        builder.finish(report)
    }

    /// Builds the tree of records that were made in memory; errors call them `name` and count them
    /// as lines.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] with every fault.
    pub fn from_records(
        records: impl IntoIterator<Item = Record>,
        name: impl Into<Arc<str>>,
        options: ReadOptions,
    ) -> Result<(Self, Report), TreeError> {
        let name = name.into();
        let mut report = Report::new(options);
        let mut builder = TreeBuilder::new();
        for (record, line) in records.into_iter().zip(1..) {
            builder.push(Location::line(&name, line), record, &mut report);
        }
        if !builder.has_header() {
            report.fault(Location::line(&name, 1), Fault::MissingHeader);
        }
        builder.finish(report)
    }
}

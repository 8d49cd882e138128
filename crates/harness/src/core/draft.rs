//! A conversion while it is made: its records, its header, and what was found.
use std::sync::Arc;

use pleach_tree::{
    Fault, Fidelity, Header, Location, ReadOptions, Record, Report, Severity, Source,
};

use crate::core::input::{Member, Relation};
use crate::core::ledger::Ledger;
use crate::{Conversion, HarnessError};

/// What every adapter keeps while it reads, so that all report and end alike.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) ledger: Ledger,
    pub(crate) report: Report,
    pub(crate) header: Header,
    pub(crate) options: ReadOptions,
    /// The names that errors use, in the order of `header.files`.
    names: Vec<Arc<str>>,
}

impl Draft {
    /// Nothing yet of what `harness` wrote.
    pub(crate) fn new(harness: &str, fidelity: Fidelity, options: ReadOptions) -> Self {
        Self {
            ledger: Ledger::default(),
            report: Report::new(options),
            header: Header::new(harness, fidelity),
            options,
            names: Vec::new(),
        }
    }

    /// Lists a file in the header; the number is what [`Source::file`] holds.
    pub(crate) fn file(&mut self, member: &Member) -> u32 {
        self.file_named(member.name.clone(), member.listed.clone())
    }

    /// Lists a file that errors call `name` and the header `listed`.
    pub(crate) fn file_named(&mut self, name: Arc<str>, listed: String) -> u32 {
        self.header.files.push(listed);
        self.names.push(name);
        u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
    }

    /// Where a segment was read.
    pub(crate) fn source(&self, file: u32, line: u64, key: impl Into<String>) -> Source {
        Source { file, line, key: key.into() }
    }

    /// Notes a fault that lenient reading repairs as `message` says; true where it stands as an
    /// error.
    pub(crate) fn fault(
        &mut self,
        at: &Location,
        key: &str,
        code: &'static str,
        message: impl Into<String>,
    ) -> bool {
        let fault = Fault::Harness { code, message: message.into() };
        self.report.fault(at.key(key), fault)
    }

    /// Notes what a reader should know although nothing had to be guessed.
    pub(crate) fn warn(
        &mut self,
        at: &Location,
        key: &str,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.report.warn(at.key(key), Fault::Harness { code, message: message.into() });
    }

    /// Notes a file beside that cannot be read to its end.
    pub(crate) fn unread(&mut self, member: &Member, relation: Relation, error: &HarnessError) {
        member.warn_unread(relation, error, &mut self.report);
    }

    /// Notes an id that stands twice: a warning where both say the same, as what was written twice
    /// is no less certain.
    pub(crate) fn repeated(&mut self, at: &Location, key: &str, what: &str, same: bool) {
        if same {
            self.warn(
                at,
                key,
                "repeated-line",
                format!("the {what} repeats one that stands above, which is kept"),
            );
        } else {
            let message =
                format!("{what} stands above already with other content; the first is kept");
            self.fault(at, key, "duplicate-id", message);
        }
    }

    /// The conversion, its faults in the order of files and lines; one that had to be repaired says
    /// less.
    ///
    /// # Errors
    /// [`HarnessError::Rejected`] where a fault stands.
    pub(crate) fn finish(mut self) -> Result<Conversion, HarnessError> {
        let mut records = std::mem::take(&mut self.ledger).into_records();
        records.insert(0, Record::Header(self.header.clone()));
        self.finish_with(records)
    }

    /// The conversion to records that were made already, a header first.
    ///
    /// # Errors
    /// As [`Draft::finish`].
    pub(crate) fn finish_with(
        mut self,
        mut records: Vec<Record>,
    ) -> Result<Conversion, HarnessError> {
        let rank = |file: &Arc<str>| self.names.iter().position(|name| name == file);
        self.report
            .diagnostics
            .sort_by_key(|found| (rank(&found.location.file), found.location.line));
        if self.report.has_errors() {
            return Err(HarnessError::Rejected(self.report));
        }
        let repaired =
            self.report.of(Severity::Repaired).any(|found| found.fault != Fault::ByteOrderMark);
        if let (true, Some(Record::Header(header))) = (repaired, records.first_mut()) {
            header.fidelity = Fidelity::Inferred;
        }
        Ok(Conversion { records, report: self.report, usage: None })
    }
}

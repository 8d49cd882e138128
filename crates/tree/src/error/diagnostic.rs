use std::fmt;
use std::sync::Arc;

use super::Fault;
use crate::ReadOptions;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location {
    /// Name of the file as it was given.
    pub file: Arc<str>,
    /// Line, counted from 1.
    pub line: u64,
    /// Path of the key inside the record, empty for the record as a whole.
    pub key: String,
}

impl Location {
    /// A line as a whole.
    pub fn line(file: &Arc<str>, line: u64) -> Self {
        Self { file: Arc::clone(file), line, key: String::new() }
    }

    /// The same line with a key.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        Self { key: key.into(), ..self.clone() }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.key.is_empty() { Ok(()) } else { write!(f, ": {}", self.key) }
    }
}

/// How bad a fault is for the reading at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The file is sound; a reader should know all the same.
    Warning,
    /// A fault that lenient reading has repaired; the text says how.
    Repaired,
    /// A fault that rejects the file.
    Error,
}

/// One fault at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// Where it is.
    pub location: Location,
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub fault: Fault,
}

/// The end of advice that is for errors only.
const LENIENT: &str = "; ReadOptions::LENIENT goes on where the file is at fault";

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Repaired => "repaired",
            Severity::Error => "error",
        };
        let (code, fault) = (self.fault.code(), &self.fault);
        write!(f, "{}: {severity}[{code}]: {fault}; ", self.location)?;
        match self.severity {
            Severity::Repaired => f.write_str(self.fault.repair().unwrap_or("went on")),
            Severity::Error => f.write_str(self.fault.advice()),
            // Lenient reading changes nothing where nothing is at fault.
            Severity::Warning => f.write_str(self.fault.advice().trim_end_matches(LENIENT)),
        }
    }
}

/// Everything that was found in one file, in the order of its lines, and whether reading repairs
/// it.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
    lenient: bool,
}

impl Report {
    /// An empty report of reading with these options.
    pub fn new(options: ReadOptions) -> Self {
        Self { diagnostics: Vec::new(), lenient: options.lenient }
    }

    /// Takes out what was found, and leaves an empty report of the same reading.
    #[must_use]
    pub fn take(&mut self) -> Self {
        Self { diagnostics: std::mem::take(&mut self.diagnostics), lenient: self.lenient }
    }

    /// Whether faults that have a repair are repaired.
    pub fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// Notes a fault; in lenient reading one that has a repair counts as repaired.
    ///
    /// Returns true where the fault stands as an error, so that a caller knows whether to repair.
    pub fn fault(&mut self, location: Location, fault: Fault) -> bool {
        let repaired = self.lenient && fault.repair().is_some();
        let severity = if repaired { Severity::Repaired } else { Severity::Error };
        self.diagnostics.push(Diagnostic { location, severity, fault });
        !repaired
    }

    /// Notes a fault that does not reject the file under either mode.
    pub fn warn(&mut self, location: Location, fault: Fault) {
        self.diagnostics.push(Diagnostic { location, severity: Severity::Warning, fault });
    }

    /// Notes a fault that a reader has mended without being asked, which loses nothing.
    pub fn repaired(&mut self, location: Location, fault: Fault) {
        self.diagnostics.push(Diagnostic { location, severity: Severity::Repaired, fault });
    }

    /// Whether any fault rejects the file.
    pub fn has_errors(&self) -> bool {
        self.of(Severity::Error).next().is_some()
    }

    /// The faults of one severity.
    pub fn of(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(move |d| d.severity == severity)
    }

    /// Sorts by line, which the checks at the end of a file need.
    pub(crate) fn sort(&mut self) {
        self.diagnostics.sort_by_key(|d| d.location.line);
    }
}

impl Report {
    /// The faults that reject a file, one a line, and how many warnings and repairs there are
    /// beside them.
    pub fn rejection(&self) -> String {
        let mut text: Vec<String> = self.of(Severity::Error).map(ToString::to_string).collect();
        let others = self.diagnostics.len() - text.len();
        if others > 0 {
            let what = if others == 1 { "warning or repair" } else { "warnings or repairs" };
            text.push(format!("(and {others} {what})"));
        }
        text.join("\n")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

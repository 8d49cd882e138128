//! What a format exports, and what converting a file of it gives.
use pleach_tree::{ReadOptions, Record, Report};

use crate::core::shape::Shape;
use crate::core::usage::UsageCheck;
use crate::{HarnessError, Input};

/// How a format is known and read.
pub(crate) struct Format {
    /// The name that `--from` takes.
    pub(crate) name: &'static str,
    /// What a user would call such a file, with an article where it needs one.
    pub(crate) title: &'static str,
    /// Whether a line or a document is of this format.
    pub(crate) mark: fn(&Shape) -> bool,
    /// Whether a folder is one session of this format.
    pub(crate) folder: fn(&Input) -> Result<bool, HarnessError>,
    /// Whether a zip file is one.
    pub(crate) archive: bool,
    /// What a line or a document that is named as this format must have at least, where the adapter
    /// itself would take any object.
    pub(crate) least: Option<fn(&Shape) -> bool>,
    pub(crate) convert: fn(&Input, ReadOptions) -> Result<Conversion, HarnessError>,
}

impl Format {
    /// A format of single files.
    pub(crate) const fn new(
        name: &'static str,
        title: &'static str,
        mark: fn(&Shape) -> bool,
        convert: fn(&Input, ReadOptions) -> Result<Conversion, HarnessError>,
    ) -> Self {
        Self { name, title, mark, folder: |_| Ok(false), archive: false, least: None, convert }
    }

    /// The same format, whose sessions can be folders.
    pub(crate) const fn with_folder(
        self,
        folder: fn(&Input) -> Result<bool, HarnessError>,
    ) -> Self {
        Self { folder, ..self }
    }

    /// The same format, whose files can be zip archives.
    pub(crate) const fn with_archive(self) -> Self {
        Self { archive: true, ..self }
    }

    /// The same format, of which only files with a value of such a shape are read.
    pub(crate) const fn with_least(self, least: fn(&Shape) -> bool) -> Self {
        Self { least: Some(least), ..self }
    }
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

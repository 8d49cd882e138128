use pleach_tree::{Report, TreeError};

/// Why a file gave no records.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// A file could not be read at all.
    #[error("{file}: cannot be read: {source}; check that the path exists and is readable")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The files were read and are at fault; nothing of them is used.
    #[error("{}", .0.rejection())]
    Rejected(Report),
    /// The file holds nothing.
    #[error("{file}: is empty; give eviction records, which begin with a header, or a session of a harness")]
    Empty {
        /// The file.
        file: String,
    },
    /// The file is compressed.
    #[error("{file}: is compressed ({kind}); decompress it first")]
    Compressed {
        /// The file.
        file: String,
        /// The compression.
        kind: &'static str,
    },
    /// No adapter knows the file.
    #[error("{file}: no known harness wrote this; give eviction records, which begin with a header, or a Claude Code session")]
    UnknownHarness {
        /// The file.
        file: String,
    },
}

impl From<TreeError> for HarnessError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Io { file, source } => Self::Io { file, source },
            TreeError::Rejected(report) => Self::Rejected(report),
            TreeError::Write(source) => Self::Io { file: "records".into(), source },
            other => Self::Io { file: "records".into(), source: std::io::Error::other(other.to_string()) },
        }
    }
}

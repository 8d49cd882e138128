//! What can be wrong with a file, where it stands and what to do about it.
mod diagnostic;
mod fault;

pub use diagnostic::{Diagnostic, Location, Report, Severity};
pub use fault::Fault;

/// Why a file gave no tree.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The file could not be read at all.
    #[error("{file}: cannot be read: {source}; check that the path exists and is a readable file")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file was read and is at fault; nothing of it is used.
    #[error("{}", .0.rejection())]
    Rejected(Report),
    /// More of something than an id counts.
    #[error("the ids of {what} are used up to 2^32 - 1: number them from 0, or begin another file")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
    },
    /// A record could not be written.
    #[error("records could not be written: {0}; check free space and permissions of the target")]
    Write(#[from] std::io::Error),
}

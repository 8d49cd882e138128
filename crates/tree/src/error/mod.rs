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
    /// Two files to be merged have a rollout of one name.
    #[error("{first} and {second} both hold rollout {rollout:?}; name rollouts by file")]
    SharedRollout {
        /// The file that has it first.
        first: String,
        /// The other one.
        second: String,
        /// The rollout.
        rollout: String,
    },
    /// Two files to be merged disagree.
    #[error("{first} and {second} differ in their {what}; merge files of one kind")]
    Unlike {
        /// The first file.
        first: String,
        /// The other one.
        second: String,
        /// What they differ in.
        what: &'static str,
    },
    /// Records to be merged that do not begin with a header.
    #[error("{file} does not begin with a header; give whole files")]
    NoHeader {
        /// The file.
        file: String,
    },
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

use pleach_tree::{Report, TreeError};

use crate::Harness;
use crate::core::input::Damage;

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
    /// A compressed file that breaks off.
    #[error("{file}: {damage}; decompress what is whole with `{kind} -dc` and read that")]
    Damaged {
        /// The file.
        file: String,
        /// The compression, which is the name of its tool too.
        kind: &'static str,
        /// How far it was read, and what is wrong there.
        damage: String,
    },
    /// An archive without its end, where its directory stands.
    #[error(
        "{file}: the archive is cut off behind {bytes} bytes: the directory at its end is not there; copy the file again, or rebuild what is whole with `zip -FF {file} --out whole.eval` and read that"
    )]
    CutArchive {
        /// The file.
        file: String,
        /// How long it is.
        bytes: u64,
    },
    /// What was to be written could not be.
    #[error("cannot be written: {0}; choose another place")]
    Write(std::io::Error),
    /// The files were read and are at fault; nothing of them is used.
    #[error("{}", .0.rejection())]
    Rejected(Report),
    /// The file holds nothing.
    #[error(
        "{file}: is empty; give eviction records, which begin with a header, or a session of a harness"
    )]
    Empty {
        /// The file.
        file: String,
    },
    /// The file is compressed in a way that is not read.
    #[error("{file}: is compressed ({kind}); decompress it first")]
    Compressed {
        /// The file.
        file: String,
        /// The compression.
        kind: &'static str,
    },
    /// The file is text in another encoding than that of JSON.
    #[error(
        "{file}: is UTF-16 text; convert it to UTF-8 first, as `iconv -f UTF-16 -t UTF-8` does"
    )]
    Utf16 {
        /// The file.
        file: String,
    },
    /// Nothing in the file is of the format that it was to be read as.
    #[error(
        "{file}: nothing in it is of the format {} ({}); {}leave the format (the `harness` of `convert_from`) away to tell it from the content",
        .harness.name(), .harness.title(), .found.map(|found| format!("it looks like {}; ", found.title())).unwrap_or_default()
    )]
    OtherFormat {
        /// The file.
        file: String,
        /// The format that was named.
        harness: Harness,
        /// The format that it looks like.
        found: Option<Harness>,
    },
    /// No adapter knows the file.
    #[error("{file}: no known harness wrote this; give {}, or name its format", titles())]
    UnknownHarness {
        /// The file.
        file: String,
    },
    /// The file is of a program that is known, and that no adapter reads.
    #[error("{file}: is {title}, which is known and not read; {instead}")]
    Unread {
        /// The file.
        file: String,
        /// What it is.
        title: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// The file has one record over several lines where each stands on one.
    #[error(
        "{file}: is indented JSON, and {} has one record a line; put each on one with `jq -c . {file}` and give that",
        .harness.title()
    )]
    Indented {
        /// The file.
        file: String,
        /// Its format.
        harness: Harness,
    },
    /// A folder that is not one session.
    #[error("{file}: is a folder and not one session; name a file in it")]
    Folder {
        /// The folder.
        file: String,
    },
    /// A format that no adapter has.
    #[error("{name}: is no known format; name one of {}", names())]
    UnknownName {
        /// What was named.
        name: String,
    },
}

impl HarnessError {
    pub(crate) fn io(file: &str, source: std::io::Error) -> Self {
        let file = file.to_owned();
        match source.get_ref().and_then(|inner| inner.downcast_ref::<Damage>()) {
            Some(damage) => Self::Damaged { file, kind: damage.kind, damage: damage.to_string() },
            None => Self::Io { file, source },
        }
    }
}

fn titles() -> String {
    Harness::ALL.iter().map(|harness| harness.title()).collect::<Vec<_>>().join(", ")
}

fn names() -> String {
    Harness::ALL.iter().map(|harness| harness.name()).collect::<Vec<_>>().join(", ")
}

impl From<TreeError> for HarnessError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Io { file, source } => Self::io(&file, source),
            TreeError::Rejected(report) => Self::Rejected(report),
            TreeError::Write(source) => Self::Write(source),
            other => Self::Io {
                file: "records".into(),
                source: std::io::Error::other(other.to_string()),
            },
        }
    }
}

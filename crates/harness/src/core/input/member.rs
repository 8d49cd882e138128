//! One file of what an adapter reads.
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;

use pleach_tree::{Fault, Location, Report};

use super::decompress;
use crate::HarnessError;

/// One file of an [`Input`](super::Input).
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// The name that the header lists, relative to the folder of the main file.
    pub(crate) listed: String,
    /// The name that errors use.
    pub(crate) name: Arc<str>,
    pub(super) at: At,
}

#[derive(Debug, Clone)]
pub(super) enum At {
    Path(PathBuf),
    Memory(Arc<[u8]>),
}

/// What a file beside is to what is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Relation {
    /// Another session, which may have calls in common with it.
    Neighbour,
    /// What a sub-agent of it wrote, or what it goes on in, as far as that can be told.
    Part,
}

/// A file that can be read anywhere, as archives need.
pub(crate) trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

impl Member {
    /// Its text, decompressed on the way where it is compressed in a way that is known.
    ///
    /// # Errors
    /// [`HarnessError::Io`] where it cannot be opened.
    pub(crate) fn open(&self) -> Result<Box<dyn BufRead + Send>, HarnessError> {
        self.open_for(1 << 18)
    }

    /// Its text, of which some bytes are read at a time: few where only its start is looked at.
    ///
    /// # Errors
    /// As [`Member::open`].
    pub(crate) fn open_for(&self, bytes: usize) -> Result<Box<dyn BufRead + Send>, HarnessError> {
        let io = |source| HarnessError::io(&self.name, source);
        match &self.at {
            At::Path(path) => {
                let file = File::open(path).map_err(io)?;
                decompress::decompressed(BufReader::with_capacity(bytes, file), bytes).map_err(io)
            }
            At::Memory(memory) => {
                decompress::decompressed(Cursor::new(Arc::clone(memory)), bytes).map_err(io)
            }
        }
    }

    /// Its bytes as they lie there, to be read in any order.
    ///
    /// # Errors
    /// [`HarnessError::Io`] where it cannot be opened.
    pub(crate) fn seek(&self) -> Result<Box<dyn ReadSeek>, HarnessError> {
        Ok(match &self.at {
            At::Path(path) => {
                Box::new(File::open(path).map_err(|source| HarnessError::io(&self.name, source))?)
            }
            At::Memory(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
        })
    }

    /// Its first bytes, decompressed.
    ///
    /// # Errors
    /// [`HarnessError::Io`].
    pub(crate) fn start(&self, bytes: u64) -> Result<Vec<u8>, HarnessError> {
        let mut start = Vec::new();
        self.open()?
            .take(bytes)
            .read_to_end(&mut start)
            .map_err(|source| HarnessError::io(&self.name, source))?;
        Ok(start)
    }

    /// Its size in bytes, as it lies there.
    ///
    /// # Errors
    /// [`HarnessError::Io`].
    pub(crate) fn size(&self) -> Result<u64, HarnessError> {
        match &self.at {
            At::Path(path) => {
                Ok(path.metadata().map_err(|source| HarnessError::io(&self.name, source))?.len())
            }
            At::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// What stands inside it, as an archive's entry does.
    pub(crate) fn inside(&self, entry: &str, bytes: Vec<u8>) -> Self {
        let name = format!("{}/{entry}", self.name);
        Self {
            listed: format!("{}/{entry}", self.listed),
            name: name.into(),
            at: At::Memory(bytes.into()),
        }
    }

    /// Warns that it lies beside what is read and cannot be read to its end.
    pub(crate) fn warn_unread(
        &self,
        relation: Relation,
        error: &HarnessError,
        report: &mut Report,
    ) {
        let (name, error) = (format!("{}: ", self.name), error.to_string());
        let error = error.strip_prefix(&name).unwrap_or(&error);
        let message = match relation {
            Relation::Neighbour => {
                format!(
                    "it lies beside and is not read to its end, so calls that both have may be calls in both: {error}"
                )
            }
            Relation::Part => format!(
                "it may be a part of the session, as a sub-agent's file is, and is not read to its end, so calls may be missing: {error}"
            ),
        };
        report
            .warn(Location::line(&self.name, 1), Fault::Harness { code: "unread-beside", message });
    }

    /// Its file name without what says how it is packed: `b/a.jsonl.zst` is `a`.
    pub(crate) fn stem(&self) -> &str {
        stem(&self.listed)
    }

    /// Its file name, without folders.
    pub(crate) fn file_name(&self) -> &str {
        self.listed.rsplit('/').next().unwrap_or_default()
    }
}

/// The name of a file without its folders and without what says how it is packed.
pub(crate) fn stem(listed: &str) -> &str {
    let name = listed.rsplit('/').next().unwrap_or_default();
    let name = [".zst", ".gz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    [".jsonl", ".json"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

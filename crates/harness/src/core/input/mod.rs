//! What an adapter reads: a file or a folder, on disk or in memory, with what lies beside it,
//! decompressed as it is read.
mod decompress;
mod document;
mod member;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use decompress::Damage;
use member::At;
pub(crate) use member::{Member, ReadSeek, Relation, stem};

use crate::HarnessError;

/// A file or a folder that a harness wrote, and what lies beside it.
#[derive(Debug, Clone)]
pub struct Input {
    place: Source,
    name: Arc<str>,
}

#[derive(Debug, Clone)]
enum Source {
    File(PathBuf),
    Folder(PathBuf),
    /// Names relative to the folder of the first one, which is the main file.
    Memory(Vec<(String, Arc<[u8]>)>),
}

impl Input {
    /// The file or folder at a path; what is neither, such as a pipe, can be read once only and is
    /// read here, as [`Input::stream`].
    ///
    /// # Errors
    /// [`HarnessError::Io`] where nothing is there.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, HarnessError> {
        let path = path.as_ref();
        let name: Arc<str> = path.display().to_string().into();
        let io = |source| HarnessError::io(&name, source);
        let about = std::fs::metadata(path).map_err(io)?;
        let place = match (about.is_dir(), about.is_file()) {
            (true, _) => Source::Folder(path.into()),
            (_, true) => Source::File(path.into()),
            _ => return Self::stream(&name, File::open(path).map_err(io)?),
        };
        Ok(Self { place, name })
    }

    /// What a reader gives, whole and in memory, because it is looked at more than once; nothing
    /// lies beside it.
    ///
    /// # Errors
    /// [`HarnessError::Io`] where it cannot be read to its end.
    pub fn stream(name: &str, mut reader: impl Read) -> Result<Self, HarnessError> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|source| HarnessError::io(name, source))?;
        let place = Source::Memory(vec![(file_name(Path::new(name)), bytes.into())]);
        Ok(Self { place, name: name.into() })
    }

    /// Files in memory: the main one, and those beside it under names relative to its folder.
    pub fn memory(
        name: &str,
        bytes: Vec<u8>,
        beside: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Self {
        let files = std::iter::once((name.to_owned(), bytes)).chain(beside);
        Self {
            place: Source::Memory(files.map(|(name, bytes)| (name, bytes.into())).collect()),
            name: name.into(),
        }
    }

    /// The name that errors use.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The text of the main file, decompressed on the way where it is compressed in a way that is
    /// known.
    ///
    /// # Errors
    /// [`HarnessError::Io`] where it cannot be opened.
    pub fn reader(&self) -> Result<Box<dyn BufRead + Send>, HarnessError> {
        self.main().open()
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        matches!(self.place, Source::Folder(_))
    }

    /// The main file's name without what says how it is packed.
    pub(crate) fn stem(&self) -> String {
        self.main().stem().to_owned()
    }

    /// The main file.
    pub(crate) fn main(&self) -> Member {
        match &self.place {
            Source::File(path) | Source::Folder(path) => Member {
                listed: file_name(path),
                name: Arc::clone(&self.name),
                at: At::Path(path.clone()),
            },
            Source::Memory(files) => {
                let (listed, bytes) = files.first().cloned().unwrap_or_default();
                Member { listed, name: Arc::clone(&self.name), at: At::Memory(bytes) }
            }
        }
    }

    /// The files right inside a folder that lies beside the main file, or inside the input where
    /// that is a folder, in the order of their names; none where there is no such folder.
    ///
    /// # Errors
    /// [`HarnessError::Io`] where a folder is there and cannot be listed.
    pub(crate) fn beside(&self, folder: &str) -> Result<Vec<Member>, HarnessError> {
        let root = match &self.place {
            Source::File(path) => path.with_file_name(""),
            Source::Folder(path) => path.clone(),
            Source::Memory(files) => {
                let inside = |name: &str| {
                    let rest = if folder.is_empty() {
                        Some(name)
                    } else {
                        name.strip_prefix(folder)?.strip_prefix('/')
                    };
                    rest.is_some_and(|rest| !rest.contains('/')).then_some(())
                };
                let kept = files.iter().skip(1).filter(|(name, _)| inside(name).is_some());
                let mut members: Vec<Member> =
                    kept.map(|(name, bytes)| memory(name, bytes)).collect();
                members.sort_by(|a, b| a.listed.cmp(&b.listed));
                return Ok(members);
            }
        };
        let (files, _) = list(&root.join(folder))?;
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let member = |path: PathBuf| {
            let listed = format!("{prefix}{}", file_name(&path));
            Member { listed, name: path.display().to_string().into(), at: At::Path(path) }
        };
        Ok(files.into_iter().map(member).collect())
    }

    /// The names of the folders right inside a folder, which is given as in [`Input::beside`], in
    /// their order.
    ///
    /// # Errors
    /// [`HarnessError::Io`] where a folder is there and cannot be listed.
    pub(crate) fn folders(&self, folder: &str) -> Result<Vec<String>, HarnessError> {
        let root = match &self.place {
            Source::File(path) => path.with_file_name(""),
            Source::Folder(path) => path.clone(),
            Source::Memory(files) => {
                let inside = |name: &str| {
                    Some(
                        name.strip_prefix(folder)?.strip_prefix('/')?.split_once('/')?.0.to_owned(),
                    )
                };
                let mut names: Vec<String> =
                    files.iter().skip(1).filter_map(|(name, _)| inside(name)).collect();
                names.sort();
                names.dedup();
                return Ok(names);
            }
        };
        let (_, folders) = list(&root.join(folder))?;
        Ok(folders.iter().map(|path| file_name(path)).collect())
    }

    /// All files of a folder and of the folders in it, in the order of their names; the files in
    /// memory; else the file.
    ///
    /// # Errors
    /// [`HarnessError::Io`] where a folder cannot be listed.
    pub(crate) fn members(&self) -> Result<Vec<Member>, HarnessError> {
        let root = match &self.place {
            Source::File(_) => return Ok(vec![self.main()]),
            Source::Memory(files) => {
                return Ok(files.iter().map(|(name, bytes)| memory(name, bytes)).collect());
            }
            Source::Folder(root) => root,
        };
        let (mut members, mut open) = (Vec::new(), vec![root.clone()]);
        while let Some(folder) = open.pop() {
            let (files, folders) = list(&folder)?;
            open.extend(folders.into_iter().rev());
            for path in files {
                let listed =
                    path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                members.push(Member {
                    listed,
                    name: path.display().to_string().into(),
                    at: At::Path(path),
                });
            }
        }
        Ok(members)
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn memory(name: &str, bytes: &Arc<[u8]>) -> Member {
    Member { listed: name.to_owned(), name: name.into(), at: At::Memory(Arc::clone(bytes)) }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The files and the folders in a folder, each in the order of their names; nothing where it is
/// none.
fn list(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), HarnessError> {
    let io = |source| HarnessError::io(&folder.display().to_string(), source);
    let listing = match folder.read_dir() {
        Ok(listing) => listing,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok((Vec::new(), Vec::new()));
        }
        Err(error) => return Err(io(error)),
    };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in listing {
        let entry = entry.map_err(io)?;
        let kind = entry.file_type().map_err(io)?;
        if kind.is_dir() {
            folders.push(entry.path());
        } else if kind.is_file() || kind.is_symlink() && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

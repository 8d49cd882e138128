use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use pleach_harness::{Harness, HarnessError, UsageCheck};
use pleach_render::Renderer;
use pleach_tree::{BranchTree, Diagnostic, ReadOptions, Record, Severity, TreeError};

use crate::{beside, output};

/// What to read and how.
#[derive(Args)]
pub(crate) struct Input {
    /// A session of a harness or an eviction-record file, - for standard input; check and inspect
    /// take a folder of them too
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Read the file as this format, instead of the one that its content says
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) from: Option<Harness>,
    /// Repair what can be repaired in a damaged file, and list it, instead of rejecting the file
    #[arg(long)]
    pub(crate) lenient: bool,
    /// What lies at the path, opened once, because a pipe cannot be read again.
    #[arg(skip)]
    opened: OnceLock<pleach_harness::Input>,
}

/// How text becomes tokens.
#[derive(Args, Clone, Default)]
pub(crate) struct Tokens {
    /// A Hugging Face tokenizer.json, or the folder that holds one [default: bytes]
    #[arg(long, value_name = "PATH")]
    pub(crate) tokenizer: Option<PathBuf>,
    /// A chat template in Jinja [default: the tokenizer's, else ChatML]
    #[arg(long, value_name = "FILE")]
    pub(crate) chat_template: Option<PathBuf>,
    /// What of a rendered answer carries loss
    #[arg(long, default_value = "turn")]
    pub(crate) loss: Loss,
    /// Keep the first and last N/2 tokens of every segment only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) clip: Option<u32>,
}

/// The tokens of a rendered answer that carry loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Loss {
    /// All that was sampled: tags around thoughts and calls, and the end of the turn
    #[default]
    Turn,
    /// Thought, text and calls alone
    Text,
}

/// A file as records, and what was found on the way.
pub(crate) struct Loaded {
    /// The file as it was named.
    pub(crate) name: String,
    /// Its tree.
    pub(crate) tree: BranchTree,
    /// Everything that was found in it.
    pub(crate) found: Vec<Diagnostic>,
    /// How the text was tokenised, if it had to be.
    pub(crate) notes: Vec<String>,
    /// Reconstructed against recorded sizes.
    pub(crate) usage: Option<UsageCheck>,
    /// The files that were read for it, where a harness wrote it.
    pub(crate) files: Vec<PathBuf>,
}

/// A part of a folder that cannot be listed.
#[derive(Debug, Clone)]
pub(crate) struct Unlisted {
    pub(crate) path: PathBuf,
    pub(crate) error: String,
}

impl Unlisted {
    fn of(error: &walkdir::Error, folder: &Path) -> Self {
        let path = error.path().unwrap_or(folder).to_path_buf();
        let why = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
        Self { error: format!("cannot be listed: {why}; check its permissions"), path }
    }

    /// What it is where it is the error of a file.
    pub(crate) fn as_error(&self) -> anyhow::Error {
        anyhow!("{}: {}", self.path.display(), self.error)
    }
}

impl Input {
    fn options(&self) -> ReadOptions {
        if self.lenient { ReadOptions::LENIENT } else { ReadOptions::STRICT }
    }

    /// Whether the path is a folder; standard input is none.
    pub(crate) fn is_folder(&self) -> bool {
        self.path.as_os_str() != "-" && self.path.is_dir()
    }

    fn open(&self, path: &Path) -> Result<pleach_harness::Input> {
        if path != self.path {
            return Ok(pleach_harness::Input::open(path)?);
        }
        if let Some(input) = self.opened.get() {
            return Ok(input.clone());
        }
        let input = if path.as_os_str() == "-" {
            pleach_harness::Input::stream("standard input", std::io::stdin().lock())?
        } else {
            pleach_harness::Input::open(path)?
        };
        Ok(self.opened.get_or_init(|| input).clone())
    }

    /// The sessions to read: the path itself, or all sessions and record files below a folder, a
    /// part of which that cannot be listed is one of them.
    pub(crate) fn found(&self) -> Result<Vec<Result<PathBuf, Unlisted>>> {
        if !self.is_folder() || self.is_session(&self.path) {
            return Ok(vec![Ok(self.path.clone())]);
        }
        let mut files = Vec::new();
        let mut entries = walkdir::WalkDir::new(&self.path).sort_by_file_name().into_iter();
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    files.push(Err(Unlisted::of(&error, &self.path)));
                    continue;
                }
            };
            let path = entry.path();
            let folder = entry.file_type().is_dir();
            if folder && path.ends_with("subagents") {
                entries.skip_current_dir();
            } else if folder && entry.depth() > 0 && self.is_session(path) {
                entries.skip_current_dir();
                files.push(Ok(path.to_path_buf()));
            } else if entry.file_type().is_file() && self.may_be_session(path) {
                files.push(Ok(path.to_path_buf()));
            }
        }
        if files.is_empty() {
            bail!(
                "{}: no session in this folder; name a session or an eviction-record file",
                self.path.display()
            );
        }
        Ok(files)
    }

    /// Whether a folder is one session and not a place where sessions lie.
    fn is_session(&self, folder: &Path) -> bool {
        pleach_harness::Input::open(folder)
            .is_ok_and(|input| pleach_harness::detect(&input).is_ok())
    }

    /// Whether a file is a session by its name; a document of JSON, of which there are many others,
    /// and a file that was put aside (`s.jsonl.reset.DATE`), by its content.
    fn may_be_session(&self, path: &Path) -> bool {
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        let document = || {
            pleach_harness::Input::open(path)
                .is_ok_and(|input| pleach_harness::detect(&input).is_ok())
        };
        let named = [".jsonl", ".eval"].iter().any(|end| name.ends_with(end));
        let may_be =
            name.contains(".jsonl.") || [".json", ".traj"].iter().any(|end| name.ends_with(end));
        named || may_be && document()
    }

    /// The one file that a verb takes.
    pub(crate) fn file(&self) -> Result<&Path> {
        if self.is_folder() && !self.is_session(&self.path) {
            bail!("{}: is a folder; name one file", self.path.display());
        }
        Ok(&self.path)
    }

    /// Reads a file and builds its tree as it was recorded, text where the harness recorded text.
    pub(crate) fn read(&self, path: &Path) -> Result<Loaded> {
        let input = self.open(path)?;
        let name = input.name().to_string();
        let harness = match self.from {
            Some(harness) => harness,
            None => pleach_harness::detect(&input)?,
        };
        let (tree, found, usage, files) = match harness {
            Harness::Records => {
                let read = BranchTree::read(input.reader()?, name.as_str(), self.options());
                let (tree, report) =
                    read.map_err(|error| match pleach_harness::misnamed(&input, harness) {
                        Some(other) => other.into(),
                        None => unread(error),
                    })?;
                (tree, report.diagnostics, None, Vec::new())
            }
            _ => {
                let session = pleach_harness::convert_from(&input, Some(harness), self.options())?;
                let (tree, mut report) = BranchTree::from_records(
                    session.records,
                    made_from(&name),
                    ReadOptions::STRICT,
                )?;
                let mut found = session.report.diagnostics;
                found.append(&mut report.diagnostics);
                let files = beside::named(path, &tree.header().files);
                (tree, found, session.usage, files)
            }
        };
        Ok(Loaded { name, tree, found, notes: Vec::new(), usage, files })
    }

    /// Reads a file down to tokens.
    pub(crate) fn load(&self, path: &Path, tokens: &Tokens) -> Result<Loaded> {
        let mut loaded = self.read(path)?;
        if loaded.tree.first_without_tokens().is_some() {
            let renderer = tokens.renderer()?;
            if let Some(rendered) =
                renderer.render(&loaded.tree).with_context(|| loaded.name.clone())?
            {
                loaded.notes.push(format!("tokens made by tokenizer {}", renderer.identity().id));
                loaded.notes.extend(rendered.notes);
                loaded.tree = rebuild(rendered.records, &loaded.name)?;
            }
        } else if tokens.chat_template.is_some() || tokens.tokenizer.is_some() {
            loaded.notes.push("the records have tokens already: no tokenizer is used".into());
        }
        if let Some(keep) = tokens.clip {
            loaded.tree = rebuild(pleach_tree::clip(loaded.tree.records(), keep), &loaded.name)?;
            loaded
                .notes
                .push(format!("clipped to {keep} tokens of every segment, half from each end"));
        }
        Ok(loaded)
    }
}

impl Tokens {
    fn renderer(&self) -> Result<Renderer> {
        let renderer = match &self.tokenizer {
            Some(path) => Renderer::open(path)?,
            None => Renderer::bytes(),
        };
        let renderer = match &self.chat_template {
            Some(path) => renderer.with_template(path)?,
            None => renderer,
        };
        Ok(renderer.with_loss(match self.loss {
            Loss::Turn => pleach_render::Loss::Turn,
            Loss::Text => pleach_render::Loss::Text,
        }))
    }
}

impl Loaded {
    /// Whether a file of a harness holds no call at all, so that nothing of it is left.
    pub(crate) fn is_without_calls(&self) -> bool {
        let says_so = |found: &Diagnostic| {
            matches!(found.fault, pleach_tree::Fault::Harness { code: "no-calls", .. })
        };
        self.found.iter().any(says_so)
    }

    /// The exit status of a program that did what it was asked to do with this file alone: that
    /// nothing was left of it is no success.
    pub(crate) fn status(&self) -> ExitCode {
        ExitCode::from(u8::from(self.is_without_calls()))
    }

    /// Writes what was found in the file to standard error: every fault and repair, and the first
    /// warnings.
    pub(crate) fn list_found(&self) {
        const WARNINGS: usize = 20;
        let (warnings, others): (Vec<_>, Vec<_>) =
            self.found.iter().partition(|found| found.severity == Severity::Warning);
        for diagnostic in others.iter().chain(warnings.iter().take(WARNINGS)) {
            eprintln!("{}", output::flags(diagnostic));
        }
        if warnings.len() > WARNINGS {
            eprintln!(
                "... and {} more warnings; inspect --json lists them all",
                output::size(warnings.len() - WARNINGS)
            );
        }
    }
}

/// The formats that a file can be read as, by name.
fn formats() -> impl TypedValueParser<Value = Harness> {
    let names = PossibleValuesParser::new(Harness::ALL.iter().map(|harness| harness.name()));
    names.try_map(|name| Harness::named(&name))
}

/// An error of records, in which a stream that cannot be read says what an adapter would say of it.
fn unread(error: TreeError) -> anyhow::Error {
    match error {
        TreeError::Io { .. } => HarnessError::from(error).into(),
        error => error.into(),
    }
}

/// The name of records that were made of a file: their numbers are not the file's lines.
fn made_from(name: &str) -> String {
    if name.ends_with(')') { name.to_string() } else { format!("{name} (as records)") }
}

/// The tree of records that were made of the file `name`.
pub(crate) fn rebuild(records: Vec<Record>, name: &str) -> Result<BranchTree> {
    Ok(BranchTree::from_records(records, made_from(name), ReadOptions::STRICT)?.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_listed_is_named_with_the_reason() {
        let gone = Path::new("no-such-folder");
        let error = walkdir::WalkDir::new(gone).into_iter().next().unwrap().unwrap_err();
        let unlisted = Unlisted::of(&error, Path::new("."));
        assert_eq!(unlisted.path, gone);
        assert!(unlisted.error.starts_with("cannot be listed: No such file"), "{}", unlisted.error);
    }
}

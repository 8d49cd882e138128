use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use pleach_harness::{HarnessError, atif};
use pleach_tree::BranchTree;

use crate::input::{Input, Tokens};

/// What a session is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Eviction records, JSON Lines
    Records,
    /// An ATIF trajectory, JSON, that reads back as the same records
    Atif,
}

/// Write a session as eviction records or ATIF, message by message, or as tokens where a tokenizer
/// is named
#[derive(Args)]
pub(crate) struct Convert {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    tokens: Tokens,
    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Target::Records)]
    to: Target,
    /// Where to write; - for standard output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl Convert {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let file = self.input.file()?;
        let mut loaded = self.input.read(file)?;
        let text = loaded.tree.first_without_tokens().is_some();
        let named = self.tokens.tokenizer.is_some() || self.tokens.chat_template.is_some();
        if self.tokens.clip.is_some() && text && !named {
            bail!(
                "{}: --clip counts tokens, and the file holds text; name a --tokenizer too",
                loaded.name
            );
        }
        if named || self.tokens.clip.is_some() {
            loaded = self.input.load(file, &self.tokens)?;
        }
        loaded.list_found();
        if self.out.as_os_str() == "-" {
            self.to.write(&loaded.tree, io::stdout().lock()).context("standard output")?;
            return Ok(loaded.status());
        }
        let out = File::create(&self.out).with_context(|| {
            format!("{}: cannot be written; choose another path for --out", self.out.display())
        })?;
        self.to.write(&loaded.tree, out).with_context(|| self.out.display().to_string())?;
        Ok(loaded.status())
    }
}

impl Target {
    /// Writes a tree; a reader that has gone away ends it quietly.
    fn write(self, tree: &BranchTree, out: impl Write) -> Result<()> {
        let out = BufWriter::new(out);
        let written = match self {
            Self::Records => tree.write(out).map_err(HarnessError::from),
            Self::Atif => atif::write(tree, out),
        };
        match written {
            Err(HarnessError::Write(source)) if source.kind() == io::ErrorKind::BrokenPipe => {
                Ok(())
            }
            other => Ok(other?),
        }
    }
}

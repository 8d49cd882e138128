use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::input::{Input, Tokens};

/// Write a session as eviction records, message by message, or as tokens where a tokenizer is named
#[derive(Args)]
pub(crate) struct Convert {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    tokens: Tokens,
    /// Where to write; - for standard output
    #[arg(long, value_name = "RECORDS.jsonl")]
    out: PathBuf,
}

impl Convert {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let file = self.input.file()?;
        let wants_tokens = self.tokens.tokenizer.is_some() || self.tokens.clip.is_some();
        let loaded = if wants_tokens { self.input.load(file, &self.tokens)? } else { self.input.read(file)? };
        loaded.list_found();
        if self.out.as_os_str() == "-" {
            loaded.tree.write(BufWriter::new(io::stdout().lock()))?;
        } else {
            let out = File::create(&self.out)
                .with_context(|| format!("{}: cannot be written; choose another path for --out", self.out.display()))?;
            loaded.tree.write(BufWriter::new(out))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

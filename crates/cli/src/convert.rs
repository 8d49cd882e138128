use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use pleach_tree::TreeError;

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
        let mut loaded = self.input.read(file)?;
        let text = loaded.tree.first_without_tokens().is_some();
        let named = self.tokens.tokenizer.is_some() || self.tokens.chat_template.is_some();
        if self.tokens.clip.is_some() && text && !named {
            bail!("{}: --clip counts tokens, and the file holds text; name a --tokenizer too", loaded.name);
        }
        if named || self.tokens.clip.is_some() {
            loaded = self.input.load(file, &self.tokens)?;
        }
        loaded.list_found();
        if self.out.as_os_str() == "-" {
            match loaded.tree.write(BufWriter::new(io::stdout().lock())) {
                Err(TreeError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
                other => other?,
            }
        } else {
            let out = File::create(&self.out)
                .with_context(|| format!("{}: cannot be written; choose another path for --out", self.out.display()))?;
            loaded.tree.write(BufWriter::new(out))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

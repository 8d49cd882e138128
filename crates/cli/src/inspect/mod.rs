//! What a file, or a folder of files, records.
mod folder;
#[cfg(feature = "parquet")]
mod parquet;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use pleach_layout::{Account, Certificate, Layouts};
use pleach_tree::Outcome;
use serde::Serialize;

use crate::check::table::layouts_table;
use crate::input::{Input, Loaded, Tokens};
use crate::output;

/// Print what a file records: its calls, evictions, and what each layout of it would hold; of a
/// folder, one line a session
#[derive(Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    tokens: Tokens,
    /// Print everything as JSON; of a folder, one object a session
    #[arg(long, conflicts_with = "dot")]
    json: bool,
    /// Write the table of a folder as Parquet too, with the feature `parquet`
    #[arg(long, value_name = "FILE.parquet", conflicts_with = "dot")]
    out: Option<PathBuf>,
    /// Print the branch tree in the DOT language
    #[arg(long)]
    dot: bool,
}

/// What is known of a file without a model.
#[derive(Serialize)]
struct Inspection<'a> {
    file: &'a str,
    #[serde(flatten)]
    account: &'a Account,
    harness: &'a str,
    harness_version: Option<&'a str>,
    fidelity: pleach_tree::Fidelity,
    cache: pleach_tree::CacheSemantics,
    certificate: Certificate,
    surcharge: i64,
    outcomes: Vec<&'a Outcome>,
    notes: &'a [String],
    report: Vec<String>,
    usage: Option<&'a pleach_harness::UsageCheck>,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let files = self.input.found()?;
        if let ([Ok(file)], None) = (files.as_slice(), &self.out)
            && (!self.input.is_folder() || file == &self.input.path)
        {
            return self.file(file);
        }
        if self.dot {
            bail!("{}: --dot takes one session; name one of them", self.input.path.display());
        }
        self.writable()?;
        let rows = folder::rows(&self, &files);
        if self.json {
            rows.iter().try_for_each(output::json)?;
        } else {
            folder::print(&rows, &self.input.path)?;
        }
        if let Some(out) = &self.out {
            write(&rows, out)?;
        }
        Ok(if rows.iter().any(|row| row.error.is_some()) {
            ExitCode::from(2)
        } else {
            ExitCode::SUCCESS
        })
    }

    /// Tells that a table cannot be written before the sessions are read for it.
    fn writable(&self) -> Result<()> {
        match &self.out {
            Some(out) if out.extension().is_none_or(|end| end != "parquet") => {
                bail!(
                    "{}: the table is written as Parquet; give --out a name that ends in .parquet",
                    out.display()
                )
            }
            Some(out) if !cfg!(feature = "parquet") => {
                bail!(
                    "{}: this program was built without Parquet; build pleach-cli with --features parquet",
                    out.display()
                )
            }
            _ => Ok(()),
        }
    }

    fn file(&self, file: &Path) -> Result<ExitCode> {
        let loaded = self.input.load(file, &self.tokens)?;
        if self.dot {
            output::line(loaded.tree.dot())?;
            return Ok(loaded.status());
        }
        let layouts = Layouts::new(&loaded.tree)?;
        let account = layouts.account()?;
        let certificate = layouts.certificate();
        if self.json {
            let report = loaded.found.iter().map(output::flags).collect();
            output::json(&inspection(&loaded, &account, certificate, report))?;
            return Ok(loaded.status());
        }
        loaded.list_found();
        print(&loaded, &account, &certificate)?;
        Ok(loaded.status())
    }
}

#[cfg(feature = "parquet")]
fn write(rows: &[folder::Row], out: &Path) -> Result<()> {
    parquet::write(rows, out)
}

#[cfg(not(feature = "parquet"))]
fn write(_: &[folder::Row], out: &Path) -> Result<()> {
    bail!(
        "{}: this program was built without Parquet; build pleach-cli with --features parquet",
        out.display()
    )
}

fn inspection<'a>(
    loaded: &'a Loaded,
    account: &'a Account,
    certificate: Certificate,
    report: Vec<String>,
) -> Inspection<'a> {
    let header = loaded.tree.header();
    Inspection {
        file: &loaded.name,
        account,
        harness: &header.harness,
        harness_version: header.harness_version.as_deref(),
        fidelity: header.fidelity,
        cache: header.cache,
        surcharge: account.surcharge(&certificate),
        certificate,
        outcomes: loaded.tree.outcomes().collect(),
        notes: &loaded.notes,
        report,
        usage: loaded.usage.as_ref(),
    }
}

fn print(loaded: &Loaded, account: &Account, certificate: &Certificate) -> Result<()> {
    crate::check::table::heading(loaded)?;
    output::line(layouts_table(account, &[]).trim_fmt())?;
    crate::check::table::evictions(account)?;
    crate::check::table::certificate(account, certificate, loaded.tree.header().cache)
}

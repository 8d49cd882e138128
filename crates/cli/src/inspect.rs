use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use pleach_layout::{Account, Certificate, Layouts};
use pleach_tree::Outcome;
use serde::Serialize;

use crate::check::table::layouts_table;
use crate::input::{Input, Loaded, Tokens};
use crate::output;

/// Print what a file records: its calls, evictions, and what each layout of it would hold
#[derive(Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    tokens: Tokens,
    /// Print everything as JSON
    #[arg(long, conflicts_with = "dot")]
    json: bool,
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
    usage: Option<&'a pleach_harness::claude_code::UsageCheck>,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let files = self.input.files()?;
        let mut code = ExitCode::SUCCESS;
        for file in &files {
            match self.file(file) {
                Err(error) if files.len() > 1 => {
                    output::error(&error);
                    code = ExitCode::from(2);
                }
                other => other?,
            }
        }
        Ok(code)
    }

    fn file(&self, file: &Path) -> Result<()> {
        let loaded = self.input.load(file, &self.tokens)?;
        if self.dot {
            return output::line(loaded.tree.dot());
        }
        let layouts = Layouts::new(&loaded.tree)?;
        let account = layouts.account()?;
        let certificate = layouts.certificate();
        if self.json {
            let report = loaded.found.iter().map(ToString::to_string).collect();
            return output::json(&inspection(&loaded, &account, certificate, report));
        }
        loaded.list_found();
        print(&loaded, &account, &certificate)
    }
}

fn inspection<'a>(loaded: &'a Loaded, account: &'a Account, certificate: Certificate, report: Vec<String>) -> Inspection<'a> {
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

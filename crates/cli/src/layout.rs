use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use pleach_layout::{LayoutKind, Layouts, Sequence};
use serde::Serialize;

use crate::input::{Input, Tokens};
use crate::output;

/// Lay a rollout out and print the arrays
#[derive(Args)]
pub(crate) struct Layout {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    tokens: Tokens,
    /// Which layout
    #[arg(long, default_value = "packed")]
    layout: Kind,
    /// Print the arrays as JSON instead of their sizes
    #[arg(long)]
    json: bool,
}

/// A layout by its name on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    /// The token trie in depth-first order: exact, one sequence
    Packed,
    /// One sequence per maximal view: exact, K + 1 sequences
    Segments,
    /// The last view of each thread: time travel, and evicted samples are not trained
    Compressed,
    /// Everything a thread ever saw: stale context
    Full,
}

impl From<Kind> for LayoutKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Packed => Self::Packed,
            Kind::Segments => Self::Segments,
            Kind::Compressed => Self::Compressed,
            Kind::Full => Self::Full,
        }
    }
}

#[derive(Serialize)]
struct Packed<'a> {
    #[serde(flatten)]
    sequence: &'a Sequence,
    #[serde(skip_serializing_if = "Option::is_none")]
    parents: Option<&'a [i32]>,
}

impl Layout {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let loaded = self.input.load(self.input.file()?, &self.tokens)?;
        loaded.list_found();
        let layout = Layouts::new(&loaded.tree)?.layout(self.layout.into())?;
        match (&layout.sequences[..], layout.kind) {
            ([sequence], LayoutKind::Packed) if self.json => {
                output::json(&Packed { sequence, parents: layout.parents.as_deref() })?;
            }
            (sequences, _) if self.json => output::json(&sequences)?,
            (sequences, kind) => {
                let mut table = output::table([kind.name(), "tokens", "pairs", "terms"]);
                for (index, sequence) in sequences.iter().enumerate() {
                    let (tokens, terms) =
                        (output::size(sequence.len()), output::size(sequence.terms.len()));
                    table.add_row([
                        format!("sequence {index}"),
                        tokens,
                        output::count(sequence.pairs()),
                        terms,
                    ]);
                }
                output::line(table.trim_fmt())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pleach_layout::{LayoutKind, Layouts, Sequence};
use serde::Serialize;

use crate::arrays::{self, MaskForm};
use crate::input::{Input, Tokens};
use crate::output;

/// Lay a rollout out and print the arrays, or write them for other frameworks
///
/// --mask writes a safetensors file of the mask, tokens [T], positions [T] and loss terms [N] of
/// each sequence: the hidden state at term_sources[n] predicts term_targets[n] with weight
/// term_weights[n]; term_generations and term_offsets say which sampled token that is. Whole numbers
/// are int64, weights float64. Where a layout has several sequences, names end in .0, .1 and so on.
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
    /// Write the mask and the arrays to --out, the mask in this form
    #[arg(long, value_name = "FORM", requires = "out")]
    mask: Option<MaskForm>,
    /// Hide keys that are this many positions or more before the query, as a layer with a sliding
    /// window does (--mask dense)
    #[arg(long, value_name = "POSITIONS", requires = "mask")]
    window: Option<NonZeroU32>,
    /// Where --mask writes, such as mask.safetensors
    #[arg(long, value_name = "FILE", requires = "mask")]
    out: Option<PathBuf>,
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
        if self.window.is_some() && self.mask != Some(MaskForm::Dense) {
            bail!(
                "--window goes with --mask dense; the form intervals holds positions, so that whoever reads it can hide what is too far"
            );
        }
        let loaded = self.input.load(self.input.file()?, &self.tokens)?;
        loaded.list_found();
        let layout = Layouts::new(&loaded.tree)?.layout(self.layout.into())?;
        if let Some((form, out)) = self.mask.zip(self.out.as_deref()) {
            arrays::write(&layout, form, self.window.map(NonZeroU32::get), out)?;
        }
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
        Ok(loaded.status())
    }
}

use anyhow::Result;
use pleach_layout::{Era, LayoutKind, Layouts, Sequence};
use pleach_train::{
    decoder::Decoder,
    diagnostics::{Gap, GapSummary, Union, union_log_probabilities},
    equivalence::Equivalence,
    evaluation::{Evaluation, TermLogp, evaluate, log_probabilities, replay},
    objective::{SdccCertificate, certify},
};
use pleach_tree::{BranchTree, CacheSemantics, View};

use super::model::{Runner, progress};
use super::{Check, Objective};

/// What a model says about a file's layouts.
pub(crate) struct Measured {
    pub(crate) model: String,
    pub(crate) device: &'static str,
    pub(crate) exact: Vec<TermLogp>,
    pub(crate) compressed: Vec<TermLogp>,
    pub(crate) full: Vec<TermLogp>,
    pub(crate) union: Option<Vec<TermLogp>>,
    /// `packed` against `segments`, or against a replay through a key/value cache under `kv_evict`.
    pub(crate) equivalence: Equivalence,
    pub(crate) against: &'static str,
    pub(crate) eras: Vec<Era>,
    /// What the records say of the sampled tokens when they were sampled.
    pub(crate) recorded: Vec<TermLogp>,
    /// How far `compressed` is from the live views at each junction, where that was asked for.
    pub(crate) sdcc: Option<SdccCertificate>,
}

/// Why a file was checked without a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Skipped {
    NotAsked,
    TooLarge { needed: u64, available: u64, clip: Option<u32> },
}

impl Measured {
    /// Whether the exact layouts agree to rounding.
    pub(crate) fn holds(&self) -> bool {
        self.equivalence.holds()
    }

    /// The live views against the log-probabilities that the rollout recorded, if it did.
    pub(crate) fn recorded_gap(&self) -> Option<GapSummary> {
        let gap = Gap::new(&self.recorded, &self.exact, &self.eras).all;
        (gap.terms > 0).then_some(gap)
    }

    /// The gap of a flattened layout.
    pub(crate) fn gap(&self, layout: &[TermLogp]) -> Gap {
        Gap::new(&self.exact, layout, &self.eras)
    }
}

/// Runs `decoder` over every layout.
pub(crate) fn measure(
    runner: &Runner,
    decoder: &Decoder,
    check: &Check,
    layouts: &Layouts<'_>,
) -> Result<Measured> {
    let packed = sequences(layouts, LayoutKind::Packed)?;
    let found = run("packed", decoder, &packed)?;
    let (expected, against) = match layouts.tree().header().cache {
        CacheSemantics::Reprefill => {
            (run("segments", decoder, &sequences(layouts, LayoutKind::Segments)?)?, "segments")
        }
        CacheSemantics::KvEvict => (replay(decoder, &packed)?, "replay through a key/value cache"),
    };
    let equivalence = Equivalence::between(&found, &expected, runner.dtype)?;
    drop(expected);
    if let Some(path) = &check.gradients {
        let kind = LayoutKind::from(check.layout);
        let gradients = match kind {
            LayoutKind::Packed => found.gradients,
            kind => {
                drop(found.gradients);
                run(kind.name(), decoder, &sequences(layouts, kind)?)?.gradients
            }
        };
        gradients.save(path, runner.dtype)?;
    } else {
        drop(found.gradients);
    }
    Ok(Measured {
        model: runner.describe(),
        device: runner.device_name.name(),
        compressed: logp("compressed", decoder, &sequences(layouts, LayoutKind::Compressed)?)?,
        full: logp("full", decoder, &sequences(layouts, LayoutKind::Full)?)?,
        union: if check.with_union { Some(under_union(decoder, layouts)?) } else { None },
        exact: found.logp,
        equivalence,
        against,
        eras: layouts.eras(),
        recorded: recorded(layouts.tree()),
        sdcc: match check.objective {
            Some(Objective::Sdcc) => Some(certify(decoder, decoder, layouts)?),
            None => None,
        },
    })
}

fn recorded(tree: &BranchTree) -> Vec<TermLogp> {
    let of = |view: View<'_>| {
        let generation = view.generation().id.0;
        let logp = move |token: pleach_tree::OutputToken| {
            let logp = *tree.segment(token.segment)?.logprobs.as_ref()?.get(token.at as usize)?;
            Some(TermLogp { generation, offset: token.offset, logp })
        };
        view.output().filter_map(logp).collect::<Vec<_>>()
    };
    tree.views().flat_map(of).collect()
}

fn sequences(layouts: &Layouts<'_>, kind: LayoutKind) -> Result<Vec<Sequence>> {
    Ok(layouts.layout(kind)?.sequences)
}

fn run(message: &'static str, decoder: &Decoder, sequences: &[Sequence]) -> Result<Evaluation> {
    let bar = progress(message, sequences.len());
    let evaluation = evaluate(decoder, sequences, &mut |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    Ok(evaluation)
}

fn logp(message: &'static str, decoder: &Decoder, sequences: &[Sequence]) -> Result<Vec<TermLogp>> {
    let bar = progress(message, sequences.len());
    let logp = log_probabilities(decoder, sequences, &mut |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    Ok(logp)
}

fn under_union(decoder: &Decoder, layouts: &Layouts<'_>) -> Result<Vec<TermLogp>> {
    let threads = Union::of(layouts)?;
    let bar = progress("union", threads.len());
    let mut logp = Vec::new();
    for thread in threads {
        if thread.tokens.is_empty() {
            continue;
        }
        logp.extend(union_log_probabilities(decoder, &thread)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(logp)
}

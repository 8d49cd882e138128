use pleach_layout::{Certificate, ConditioningSummary, Eviction, LayoutKind, Stats};
use pleach_train::{
    diagnostics::{Gap, GapSummary},
    evaluation::TermLogp,
    objective::SdccCertificate,
};
use pleach_tree::{CacheSemantics, Fidelity};
use serde::Serialize;

use super::facts::Facts;
use super::measure::{Measured, Skipped};
use super::{Checked, gaps};

/// Everything about one file, for a program.
#[derive(Serialize)]
pub(crate) struct FileReport<'a> {
    file: &'a str,
    harness: &'a str,
    fidelity: Fidelity,
    cache: CacheSemantics,
    notes: &'a [String],
    report: Vec<String>,
    #[serde(flatten)]
    facts: FactsReport<'a>,
    evictions: &'a [Eviction],
    rollouts: Vec<RolloutReport<'a>>,
    #[serde(flatten)]
    model: ModelReport<'a>,
}

/// What is known without a model.
#[derive(Serialize)]
struct FactsReport<'a> {
    stats: &'a Stats,
    k: Option<usize>,
    coverage: Coverage,
    conditioning: Flattened<ConditioningSummary>,
    certificate: &'a Certificate,
    surcharge: i64,
    ideal_speed_up: Option<(f64, f64)>,
}

#[derive(Serialize)]
struct Coverage {
    packed: Option<f64>,
    segments: Option<f64>,
    compressed: Option<f64>,
    full: Option<f64>,
}

/// One value for each of the flattened layouts.
#[derive(Serialize)]
struct Flattened<T> {
    compressed: T,
    full: T,
}

#[derive(Serialize)]
struct RolloutReport<'a> {
    rollout: &'a str,
    #[serde(flatten)]
    facts: FactsReport<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<Flattened<Gap>>,
}

/// What the model says, or why it was not asked.
#[derive(Serialize)]
#[serde(untagged)]
enum ModelReport<'a> {
    Skipped { model: Option<()>, skipped: SkippedReport },
    Measured(Box<MeasuredReport<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
enum SkippedReport {
    NotAsked,
    TooLarge { needed_bytes: u64, available_bytes: u64, fitting_clip: Option<u32> },
}

#[derive(Serialize)]
struct MeasuredReport<'a> {
    model: &'a str,
    device: &'a str,
    logp: Logp,
    gap: Flattened<Gap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    union_gap: Option<Gap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_gap: Option<GapSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sdcc: Option<&'a SdccCertificate>,
    equivalence: EquivalenceReport<'a>,
}

#[derive(Serialize)]
struct Logp {
    exact: Vec<(u32, u32, f64)>,
    compressed: Vec<(u32, u32, f64)>,
    full: Vec<(u32, u32, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    union: Option<Vec<(u32, u32, f64)>>,
}

#[derive(Serialize)]
struct EquivalenceReport<'a> {
    max_logp_difference: f64,
    relative_gradient_error: f64,
    dtype: &'a str,
    against: &'a str,
    holds: bool,
}

impl<'a> FileReport<'a> {
    pub(crate) fn new(checked: &'a Checked) -> Self {
        let header = checked.loaded.tree.header();
        let measured = checked.model.as_ref().ok();
        Self {
            file: &checked.loaded.name,
            harness: &header.harness,
            fidelity: header.fidelity,
            cache: header.cache,
            notes: &checked.loaded.notes,
            report: checked.loaded.found.iter().map(crate::output::flags).collect(),
            facts: FactsReport::new(&checked.facts),
            evictions: &checked.facts.account.evictions,
            rollouts: checked
                .rollouts
                .iter()
                .map(|(name, facts)| rollout(checked, name, facts, measured))
                .collect(),
            model: ModelReport::new(&checked.model),
        }
    }
}

fn rollout<'a>(
    checked: &Checked,
    rollout: &'a str,
    facts: &'a Facts,
    measured: Option<&Measured>,
) -> RolloutReport<'a> {
    let gap = |measured: &Measured| {
        let eras = gaps::of_rollout(&checked.loaded.tree, rollout, &measured.eras);
        Flattened {
            compressed: Gap::new(&measured.exact, &measured.compressed, &eras),
            full: Gap::new(&measured.exact, &measured.full, &eras),
        }
    };
    RolloutReport { rollout, facts: FactsReport::new(facts), gap: measured.map(gap) }
}

impl<'a> FactsReport<'a> {
    fn new(facts: &'a Facts) -> Self {
        let coverage = |kind| facts.account.coverage(kind);
        Self {
            stats: &facts.account.stats,
            k: facts.account.k(),
            coverage: Coverage {
                packed: coverage(LayoutKind::Packed),
                segments: coverage(LayoutKind::Segments),
                compressed: coverage(LayoutKind::Compressed),
                full: coverage(LayoutKind::Full),
            },
            conditioning: Flattened { compressed: facts.compressed, full: facts.full },
            certificate: &facts.certificate,
            surcharge: facts.surcharge(),
            ideal_speed_up: facts.account.ideal_speed_up(),
        }
    }
}

impl<'a> ModelReport<'a> {
    fn new(model: &'a Result<Measured, Skipped>) -> Self {
        match model {
            Err(Skipped::NotAsked) => {
                Self::Skipped { model: None, skipped: SkippedReport::NotAsked }
            }
            Err(Skipped::TooLarge { needed, available, clip }) => {
                let skipped = SkippedReport::TooLarge {
                    needed_bytes: *needed,
                    available_bytes: *available,
                    fitting_clip: *clip,
                };
                Self::Skipped { model: None, skipped }
            }
            Ok(measured) => Self::Measured(Box::new(MeasuredReport::new(measured))),
        }
    }
}

impl<'a> MeasuredReport<'a> {
    fn new(measured: &'a Measured) -> Self {
        let equivalence = &measured.equivalence;
        Self {
            model: &measured.model,
            device: measured.device,
            logp: Logp {
                exact: triples(&measured.exact),
                compressed: triples(&measured.compressed),
                full: triples(&measured.full),
                union: measured.union.as_deref().map(triples),
            },
            gap: Flattened {
                compressed: measured.gap(&measured.compressed),
                full: measured.gap(&measured.full),
            },
            union_gap: measured.union.as_deref().map(|union| measured.gap(union)),
            recorded_gap: measured.recorded_gap(),
            sdcc: measured.sdcc.as_ref(),
            equivalence: EquivalenceReport {
                max_logp_difference: equivalence.max_logp_difference,
                relative_gradient_error: equivalence.relative_gradient_error,
                dtype: equivalence.dtype.name(),
                against: measured.against,
                holds: measured.holds(),
            },
        }
    }
}

pub(super) fn triples(terms: &[TermLogp]) -> Vec<(u32, u32, f64)> {
    terms.iter().map(|term| (term.generation, term.offset, term.logp)).collect()
}

use super::bounds::{gradient_bound, loss_bound, pinsker, scaled};
use crate::equivalence::larger;
use pleach_layout::{Era, TermId};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// How far the student under the compressed prefix is from the teacher under the live view, at one
/// diverging term.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Residual {
    /// Generation of the term.
    pub generation: u32,
    /// Offset of the term.
    pub offset: u32,
    /// KL of the student from the teacher over the whole vocabulary, in nats.
    pub kl: f64,
    /// Their total variation.
    pub total_variation: f64,
}

impl Residual {
    /// The term's name.
    pub fn id(&self) -> TermId {
        TermId::new(self.generation, self.offset)
    }

    /// The largest total variation that the KL allows.
    pub fn pinsker(&self) -> f64 {
        pinsker(self.kl)
    }

    /// The largest error of the loss at this term for advantages within `a_max` of 0:
    /// [`loss_bound`].
    pub fn loss_bound(&self, a_max: f64) -> f64 {
        loss_bound(self.kl, a_max)
    }

    /// The largest L1 error of the policy gradient at this term's logits for such advantages:
    /// [`gradient_bound`].
    pub fn gradient_bound(&self, a_max: f64) -> f64 {
        gradient_bound(self.kl, a_max)
    }
}

/// How much of what was sampled SDCC trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SdccCoverage {
    /// Tokens that the policy sampled.
    pub sampled: usize,
    /// Those of them that are loss terms of `compressed`; the others lie inside evicted spans or on
    /// abandoned branches.
    pub supervised: usize,
    /// Those of the supervised ones that diverge.
    pub diverging: usize,
}

impl SdccCoverage {
    /// Sampled tokens that SDCC does not train.
    pub fn untrained(&self) -> usize {
        self.sampled.saturating_sub(self.supervised)
    }

    /// Supervised over sampled; 1 where nothing was sampled.
    pub fn fraction(&self) -> f64 {
        if self.sampled == 0 { 1.0 } else { self.supervised as f64 / self.sampled as f64 }
    }
}

/// The residuals of the terms before one junction in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct JunctionCertificate {
    /// The context that the eviction made; `None` for what no eviction follows, and for the sum
    /// over all.
    ///
    /// What a chat template leaves out of later prompts is no eviction of the harness's, so terms
    /// that diverge through it alone stand under `None`.
    pub junction: Option<u32>,
    /// What of the tokens before it is trained.
    #[serde(flatten)]
    pub coverage: SdccCoverage,
    /// Sum of the KL over the diverging terms, in nats.
    pub kl_sum: f64,
    /// Largest KL.
    pub kl_max: f64,
    /// Mean of the total variation over the diverging terms.
    pub total_variation_mean: f64,
    /// Largest total variation.
    pub total_variation_max: f64,
    /// Mean of Pinsker's bound, which is above the mean of the total variation.
    pub pinsker_mean: f64,
    /// Pinsker's bound at the largest KL, which is above every total variation.
    pub pinsker_max: f64,
    /// Sum over the diverging terms of the largest error of the loss, for advantages within 1 of 0.
    pub loss_bound_sum: f64,
    /// Largest of these.
    pub loss_bound_max: f64,
    /// Sum over the diverging terms of the largest L1 error of the policy gradient at their logits,
    /// for advantages within 1 of 0.
    pub gradient_bound_sum: f64,
    /// Largest of these.
    pub gradient_bound_max: f64,
}

impl JunctionCertificate {
    /// The largest error of the summed loss of its terms for advantages within `a_max` of 0, which
    /// is at least 0; else NaN.
    pub fn loss_bound(&self, a_max: f64) -> f64 {
        scaled(a_max, self.loss_bound_sum)
    }

    /// The largest L1 error of the policy gradient at all its terms' logits for such advantages.
    pub fn gradient_bound(&self, a_max: f64) -> f64 {
        scaled(a_max, self.gradient_bound_sum)
    }
}

/// How consistent a model is between `compressed` and the live views, junction by junction.
///
/// Sampled tokens inside evicted spans are not in the compressed walk: the certificate says nothing
/// of them but how many there are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SdccCertificate {
    /// By the next eviction after the term, in the order in which terms were sampled.
    pub junctions: Vec<JunctionCertificate>,
    /// All terms.
    pub all: JunctionCertificate,
}

impl SdccCertificate {
    /// Sums residuals up; `supervised` are the loss terms of `compressed`, `eras` every token that
    /// was sampled.
    pub fn new(
        residuals: &[Residual],
        supervised: impl IntoIterator<Item = TermId>,
        eras: &[Era],
    ) -> Self {
        let residuals: HashMap<TermId, Residual> =
            residuals.iter().map(|residual| (residual.id(), *residual)).collect();
        let supervised: HashSet<TermId> = supervised.into_iter().collect();
        let mut order = Vec::new();
        let mut by_junction: HashMap<Option<u32>, Vec<&Era>> = HashMap::new();
        for era in eras {
            let group = by_junction.entry(era.next).or_default();
            if group.is_empty() {
                order.push(era.next);
            }
            group.push(era);
        }
        let of = |junction, eras: &[&Era]| summary(junction, eras, &supervised, &residuals);
        let junctions =
            order.into_iter().map(|junction| of(junction, &by_junction[&junction])).collect();
        Self { junctions, all: of(None, &eras.iter().collect::<Vec<_>>()) }
    }
}

fn summary(
    junction: Option<u32>,
    eras: &[&Era],
    supervised: &HashSet<TermId>,
    residuals: &HashMap<TermId, Residual>,
) -> JunctionCertificate {
    let ids = || eras.iter().map(|era| era.id());
    let found: Vec<&Residual> = ids().filter_map(|id| residuals.get(&id)).collect();
    let count = found.len().max(1) as f64;
    let sum = |of: fn(&Residual) -> f64| found.iter().map(|residual| of(residual)).sum::<f64>();
    let max = |of: fn(&Residual) -> f64| {
        found.iter().fold(0.0, |max, residual| larger(max, of(residual)))
    };
    let kl_max = max(|residual| residual.kl);
    let coverage = SdccCoverage {
        sampled: eras.len(),
        supervised: ids().filter(|id| supervised.contains(id)).count(),
        diverging: found.len(),
    };
    JunctionCertificate {
        junction,
        coverage,
        kl_sum: sum(|residual| residual.kl),
        kl_max,
        total_variation_mean: sum(|residual| residual.total_variation) / count,
        total_variation_max: max(|residual| residual.total_variation),
        pinsker_mean: sum(Residual::pinsker) / count,
        pinsker_max: pinsker(kl_max),
        loss_bound_sum: sum(|residual| residual.loss_bound(1.0)),
        loss_bound_max: loss_bound(kl_max, 1.0),
        gradient_bound_sum: sum(|residual| residual.gradient_bound(1.0)),
        gradient_bound_max: gradient_bound(kl_max, 1.0),
    }
}

use crate::evaluation::TermLogp;
use pleach_layout::{Era, TermId};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Log-probability gaps of many terms in a few numbers, in nats.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct GapSummary {
    /// Number of terms.
    pub terms: usize,
    /// Mean of |log p(y | training context) - log p(y | live view)|.
    pub mean: f64,
    /// Its maximum.
    pub max: f64,
    /// Mean of the difference with its sign; above 0 where the training context makes the token
    /// likelier.
    pub signed_mean: f64,
}

impl GapSummary {
    /// The summary of the terms of both.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let terms = self.terms + other.terms;
        let (a, b) = (self.terms as f64, other.terms as f64);
        let mean = |x: f64, y: f64| if terms == 0 { 0.0 } else { (a * x + b * y) / (a + b) };
        Self {
            terms,
            mean: mean(self.mean, other.mean),
            max: crate::equivalence::larger(self.max, other.max),
            signed_mean: mean(self.signed_mean, other.signed_mean),
        }
    }
}

/// Gaps of the terms on one side of one eviction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EvictionGap {
    /// The context that the eviction made; `None` for what has no eviction on that side.
    pub eviction: Option<u32>,
    /// The gaps.
    #[serde(flatten)]
    pub gap: GapSummary,
}

/// Gaps of the terms within a range of distances from an eviction, counted in sampled tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DistanceGap {
    /// Smallest distance.
    pub from: u32,
    /// First distance beyond the range.
    pub to: u32,
    /// The gaps.
    #[serde(flatten)]
    pub gap: GapSummary,
}

/// How far a flattened layout's log-probabilities are from those under the live views.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Gap {
    /// All terms of the layout.
    pub all: GapSummary,
    /// By the last eviction before the token.
    pub since_eviction: Vec<EvictionGap>,
    /// By the next eviction after the token.
    pub until_eviction: Vec<EvictionGap>,
    /// By the distance from the last eviction before the token.
    pub since_distance: Vec<DistanceGap>,
    /// By the distance to the next eviction after the token.
    pub until_distance: Vec<DistanceGap>,
}

impl Gap {
    /// Compares a layout's log-probabilities with the exact ones; terms that only one side has are
    /// left out.
    pub fn new(exact: &[TermLogp], layout: &[TermLogp], eras: &[Era]) -> Self {
        let exact: HashMap<TermId, f64> = exact.iter().map(|term| (term.id(), term.logp)).collect();
        let layout: HashMap<TermId, f64> =
            layout.iter().map(|term| (term.id(), term.logp)).collect();
        let placed: Vec<(Era, f64)> = eras
            .iter()
            .filter_map(|era| Some((*era, layout.get(&era.id())? - exact.get(&era.id())?)))
            .collect();
        Self {
            all: summary(placed.iter().map(|(_, gap)| *gap)),
            since_eviction: by_eviction(&placed, |era| era.eviction),
            until_eviction: by_eviction(&placed, |era| era.next),
            since_distance: by_distance(&placed, |era| era.since),
            until_distance: by_distance(&placed, |era| era.until),
        }
    }
}

fn summary(gaps: impl IntoIterator<Item = f64>) -> GapSummary {
    let (mut terms, mut absolute, mut signed, mut max) = (0, 0.0, 0.0, 0.0);
    for gap in gaps {
        terms += 1;
        absolute += f64::abs(gap);
        signed += gap;
        max = crate::equivalence::larger(max, f64::abs(gap));
    }
    let count = f64::from(u32::try_from(terms.max(1)).unwrap_or(u32::MAX));
    GapSummary { terms, mean: absolute / count, max, signed_mean: signed / count }
}

fn by_eviction(placed: &[(Era, f64)], side: impl Fn(&Era) -> Option<u32>) -> Vec<EvictionGap> {
    let mut order = Vec::new();
    let mut groups: HashMap<Option<u32>, Vec<f64>> = HashMap::new();
    for (era, gap) in placed {
        let eviction = side(era);
        groups
            .entry(eviction)
            .or_insert_with(|| {
                order.push(eviction);
                Vec::new()
            })
            .push(*gap);
    }
    let summed = |eviction| EvictionGap {
        eviction,
        gap: summary(groups.get(&eviction).into_iter().flatten().copied()),
    };
    order.into_iter().map(summed).collect()
}

fn by_distance(placed: &[(Era, f64)], side: impl Fn(&Era) -> Option<u32>) -> Vec<DistanceGap> {
    let mut groups: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (era, gap) in placed {
        if let Some(distance) = side(era) {
            groups.entry(lower_bound(distance)).or_default().push(*gap);
        }
    }
    let summed = |(from, gaps): (u32, Vec<f64>)| DistanceGap {
        from,
        to: upper_bound(from),
        gap: summary(gaps),
    };
    groups.into_iter().map(summed).collect()
}

/// Ranges 0, 1 to 3, 4 to 15, 16 to 63 and so on: what an eviction does fades slowly.
pub(crate) fn lower_bound(distance: u32) -> u32 {
    match distance {
        0 => 0,
        _ => 1 << (distance.ilog2() / 2 * 2),
    }
}

pub(crate) fn upper_bound(from: u32) -> u32 {
    if from == 0 { 1 } else { from.saturating_mul(4) }
}

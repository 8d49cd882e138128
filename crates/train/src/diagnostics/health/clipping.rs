use crate::{
    batch::BatchTerms,
    error::{ObjectiveError, TrainError},
};
use pleach_layout::{Era, TermId};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// How many terms were clipped within a range of distances from the last eviction, counted in
/// sampled tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClipDistance {
    /// Smallest distance; none for terms that no eviction precedes.
    pub from: Option<u32>,
    /// First distance beyond the range.
    pub to: Option<u32>,
    /// Terms of a weight other than 0.
    pub terms: usize,
    /// Those of them that were clipped.
    pub clipped: usize,
}

impl ClipDistance {
    /// Clipped over all.
    pub fn fraction(&self) -> f64 {
        if self.terms == 0 { 0.0 } else { self.clipped as f64 / self.terms as f64 }
    }
}

/// The clip fraction by the distance from the last eviction: 0, 1 to 3, 4 to 15 and so on, as the
/// gaps are grouped.
///
/// A conditioning that is off shows first right after an eviction. `clipped` is one number a term,
/// 0 for what was not clipped.
///
/// # Errors
/// Another number of numbers than terms; a batch of several trees, whose eras cannot be told apart.
pub fn clip_fractions(
    terms: &BatchTerms,
    clipped: &[f64],
    eras: &[Era],
) -> Result<Vec<ClipDistance>, TrainError> {
    if clipped.len() != terms.len() {
        return Err(ObjectiveError::SignalLength {
            what: "clipped terms",
            terms: terms.len(),
            found: clipped.len(),
        }
        .into());
    }
    terms.places()?;
    let since: HashMap<TermId, Option<u32>> =
        eras.iter().map(|era| (era.id(), era.since)).collect();
    let mut groups: BTreeMap<Option<u32>, (usize, usize)> = BTreeMap::new();
    let counted = terms
        .ids
        .iter()
        .zip(&terms.weights)
        .zip(clipped)
        .filter(|((_, weight), _)| **weight != 0.0);
    for ((id, _), &clipped) in counted {
        let from = since.get(id).copied().flatten().map(crate::diagnostics::gap::lower_bound);
        let (terms, taken) = groups.entry(from).or_default();
        *terms += 1;
        *taken += usize::from(clipped != 0.0);
    }
    let of = |(from, (terms, clipped)): (Option<u32>, _)| ClipDistance {
        from,
        to: from.map(crate::diagnostics::gap::upper_bound),
        terms,
        clipped,
    };
    Ok(groups.into_iter().map(of).collect())
}

/// The clip fraction of all terms.
pub(super) fn total(distances: &[ClipDistance]) -> Option<f64> {
    let terms: usize = distances.iter().map(|distance| distance.terms).sum();
    let clipped: usize = distances.iter().map(|distance| distance.clipped).sum();
    (terms > 0).then(|| clipped as f64 / terms as f64)
}

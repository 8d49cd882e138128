use super::group::{RolloutAdvantage, RolloutOutcome};
use crate::{
    batch::BatchTerms,
    error::{ObjectiveError, TrainError},
};
use pleach_layout::{Era, Layouts, TermId};
use pleach_tree::{GenerationId, Outcome, Status};
use std::collections::HashMap;

/// The optimised tokens of one rollout in the order in which they were sampled: its loss terms of a
/// weight other than 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// The rollout.
    pub rollout: String,
    /// Which sampled tokens they are.
    pub ids: Vec<TermId>,
    /// First token of each segment, and the number of tokens; a segment ends where an eviction or
    /// another thread begins.
    pub bounds: Vec<usize>,
}

impl Timeline {
    /// Number of segments that hold a token.
    pub fn segments(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }
}

/// The timelines of all rollouts of a tree: what is known per rollout or per token, brought to loss
/// terms of any layout and back.
///
/// Terms are found by generation and offset, so a batch is of this one tree.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timelines {
    /// One a rollout, in order of their first generation.
    pub rollouts: Vec<Timeline>,
    rollout_of: HashMap<u32, usize>,
}

impl Timelines {
    /// The timelines of a tree.
    pub fn of(layouts: &Layouts<'_>) -> Self {
        let tree = layouts.tree();
        let names = tree.rollouts();
        let place: HashMap<&str, usize> = names.iter().copied().zip(0..).collect();
        let rollout_of = tree
            .generations()
            .map(|generation| (generation.id.0, place[generation.rollout.as_str()]))
            .collect();
        let mut timelines = Self {
            rollouts: names
                .into_iter()
                .map(|name| Timeline { rollout: name.to_owned(), ..Timeline::default() })
                .collect(),
            rollout_of,
        };
        let eras: HashMap<TermId, Era> =
            layouts.eras().into_iter().map(|era| (era.id(), era)).collect();
        let mut open = vec![None; timelines.rollouts.len()];
        for view in tree.views() {
            let (generation, thread) = (view.generation().id.0, view.generation().thread.as_str());
            let rollout = timelines.rollout_of[&generation];
            let before = view.context().tokens();
            for token in
                view.output().filter(|token| token.weight.is_some_and(|weight| weight != 0.0))
            {
                if before + token.offset as usize == 0 {
                    continue;
                }
                let timeline = &mut timelines.rollouts[rollout];
                let eviction =
                    eras.get(&TermId::new(generation, token.offset)).and_then(|era| era.eviction);
                let segment = Some((thread, eviction));
                if open[rollout] != segment {
                    timeline.bounds.push(timeline.ids.len());
                    open[rollout] = segment;
                }
                timeline.ids.push(TermId::new(generation, token.offset));
            }
        }
        for timeline in &mut timelines.rollouts {
            if timeline.bounds.is_empty() {
                timeline.bounds.push(0);
            }
            if timeline.bounds.last() != Some(&timeline.ids.len()) {
                timeline.bounds.push(timeline.ids.len());
            }
        }
        timelines
    }

    /// The outcome of each rollout, groups numbered in order of first appearance.
    ///
    /// # Errors
    /// A rollout without an outcome record.
    pub fn outcomes(&self, layouts: &Layouts<'_>) -> Result<Vec<RolloutOutcome>, TrainError> {
        let recorded: HashMap<&str, &Outcome> =
            layouts.tree().outcomes().map(|outcome| (outcome.rollout.as_str(), outcome)).collect();
        let mut groups: HashMap<&str, usize> = HashMap::new();
        let of = |timeline: &Timeline| {
            let outcome = recorded.get(timeline.rollout.as_str());
            let outcome = outcome
                .ok_or_else(|| ObjectiveError::NoOutcome { rollout: timeline.rollout.clone() })?;
            let next = groups.len();
            let group = *groups.entry(outcome.group.as_str()).or_insert(next);
            let overlong = outcome.status == Status::Overlong;
            Ok(RolloutOutcome {
                group,
                reward: outcome.reward,
                segments: timeline.segments(),
                overlong,
            })
        };
        self.rollouts.iter().map(of).collect()
    }

    /// The advantage of each rollout at each of its terms, and the terms with weight 0 where a
    /// rollout is not trained.
    ///
    /// # Errors
    /// Another number of advantages than rollouts; a term of a generation that the tree does not
    /// have; a batch of several trees.
    pub fn broadcast(
        &self,
        terms: &BatchTerms,
        rollouts: &[RolloutAdvantage],
    ) -> Result<(Vec<f64>, BatchTerms), TrainError> {
        let what = "rollout advantages";
        if rollouts.len() != self.rollouts.len() {
            return Err(ObjectiveError::SignalLength {
                what,
                terms: self.rollouts.len(),
                found: rollouts.len(),
            }
            .into());
        }
        terms.places()?;
        let mut weighted = terms.clone();
        let mut advantages = Vec::with_capacity(terms.len());
        for (&TermId { generation, offset }, weight) in terms.ids.iter().zip(&mut weighted.weights)
        {
            let rollout = self
                .rollout_of
                .get(&generation)
                .ok_or(TrainError::TermsDiffer { generation, offset })?;
            let RolloutAdvantage { advantage, trained } = rollouts[*rollout];
            advantages.push(advantage);
            if !trained {
                *weight = 0.0;
            }
        }
        Ok((advantages, weighted))
    }

    /// Numbers per optimised token, a list a rollout, as one number a term; 0 at terms that are not
    /// optimised.
    ///
    /// # Errors
    /// Lists of other lengths than the timelines; a batch of several trees.
    pub fn to_terms(
        &self,
        terms: &BatchTerms,
        per_token: &[Vec<f64>],
    ) -> Result<Vec<f64>, TrainError> {
        terms.places()?;
        let lengths = self.rollouts.iter().map(|timeline| timeline.ids.len());
        let found: usize = per_token.iter().map(Vec::len).sum();
        if !lengths.clone().eq(per_token.iter().map(Vec::len)) {
            return Err(ObjectiveError::SignalLength {
                what: "numbers per optimised token",
                terms: lengths.sum(),
                found,
            }
            .into());
        }
        let ids = self.rollouts.iter().flat_map(|timeline| &timeline.ids);
        let known: HashMap<TermId, f64> =
            ids.copied().zip(per_token.iter().flatten().copied()).collect();
        Ok(terms.ids.iter().map(|id| known.get(id).copied().unwrap_or_default()).collect())
    }

    /// Numbers per term of a batch, such as values, as one list a rollout in the order of its
    /// timeline.
    ///
    /// # Errors
    /// Another number of numbers than terms; an optimised token that is no term of the batch; a
    /// batch of several trees.
    pub fn from_terms(
        &self,
        terms: &BatchTerms,
        per_term: &[f64],
    ) -> Result<Vec<Vec<f64>>, TrainError> {
        if per_term.len() != terms.len() {
            return Err(ObjectiveError::SignalLength {
                what: "numbers per term",
                terms: terms.len(),
                found: per_term.len(),
            }
            .into());
        }
        let places = terms.places()?;
        let find = |id: &TermId| -> Result<f64, TrainError> {
            let TermId { generation, offset } = *id;
            let at = places.get(id).ok_or(TrainError::TermsDiffer { generation, offset })?;
            Ok(per_term[*at])
        };
        self.rollouts.iter().map(|timeline| timeline.ids.iter().map(find).collect()).collect()
    }
}

/// The log-probability that the records hold for each term's target; NaN where they hold none,
/// which an objective refuses at a term that counts. The terms are of a batch of this one tree.
pub fn recorded_log_probabilities(layouts: &Layouts<'_>, terms: &BatchTerms) -> Vec<f64> {
    let tree = layouts.tree();
    let mut outputs: HashMap<u32, Vec<f64>> = HashMap::new();
    let of = |&TermId { generation, offset }: &TermId| {
        let known = outputs.entry(generation).or_insert_with(|| {
            let view = tree.view(GenerationId(generation));
            let logp = |token: pleach_tree::OutputToken| {
                let segment = tree.segment(token.segment);
                segment
                    .and_then(|s| s.logprobs.as_ref()?.get(token.at as usize).copied())
                    .unwrap_or(f64::NAN)
            };
            view.into_iter().flat_map(|view| view.output()).map(logp).collect()
        });
        known.get(offset as usize).copied().unwrap_or(f64::NAN)
    };
    terms.ids.iter().map(of).collect()
}

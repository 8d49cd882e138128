use rustc_hash::FxHashSet;

use crate::{BranchTree, By, ByKind, ContextId, GenerationId, Record, Segment, SegmentId};

impl BranchTree {
    /// The rollouts of the file, in order of their first generation.
    pub fn rollouts(&self) -> Vec<&str> {
        let mut seen = FxHashSet::default();
        self.generations()
            .map(|generation| generation.rollout.as_str())
            .filter(|rollout| seen.insert(*rollout))
            .collect()
    }

    /// The records of one rollout: its generations, the contexts they descend from, the contexts
    /// that only lead on from those, and the segments they use, which have loss where a generation
    /// of the rollout sampled them.
    pub fn rollout_records(&self, rollout: &str) -> Vec<Record> {
        let generations: FxHashSet<GenerationId> = self
            .generations()
            .filter(|generation| generation.rollout == rollout)
            .map(|generation| generation.id)
            .collect();
        let contexts = self.rollout_contexts(&generations);
        let segments = self.rollout_segments(&generations, &contexts);
        let own = |segment: &Segment| {
            self.owner(segment.id).is_some_and(|owner| generations.contains(&owner))
        };
        let author = |by: &Option<By>| {
            let named = by.as_ref().and_then(|by| by.generation);
            if named.is_some_and(|id| !generations.contains(&id)) {
                Some(By::new(ByKind::Unknown))
            } else {
                by.clone()
            }
        };
        let select = |record: &Record| match record {
            Record::Header(_) | Record::Unknown(_) => Some(record.clone()),
            Record::Segment(segment) if segments.contains(&segment.id) => {
                let loss = segment.loss.clone().filter(|_| own(segment));
                Some(Record::Segment(Segment { loss, ..segment.clone() }))
            }
            Record::Segment(_) => None,
            Record::Append(append) => contexts.contains(&append.context).then(|| record.clone()),
            Record::Fork(fork) => contexts.contains(&fork.context).then(|| record.clone()),
            Record::Evict(evict) if contexts.contains(&evict.context) => {
                Some(Record::Evict(Box::new(crate::Evict {
                    by: author(&evict.by),
                    ..evict.as_ref().clone()
                })))
            }
            Record::Replace(replace) if contexts.contains(&replace.context) => {
                Some(Record::Replace(crate::Replace { by: author(&replace.by), ..replace.clone() }))
            }
            Record::Evict(_) | Record::Replace(_) => None,
            Record::Generation(generation) => {
                generations.contains(&generation.id).then(|| record.clone())
            }
            Record::Outcome(outcome) => (outcome.rollout == rollout).then(|| record.clone()),
        };
        self.records().iter().filter_map(select).collect()
    }

    fn rollout_contexts(&self, generations: &FxHashSet<GenerationId>) -> FxHashSet<ContextId> {
        let mut own = FxHashSet::default();
        let mut others = FxHashSet::default();
        for generation in self.generations() {
            let side = if generations.contains(&generation.id) { &mut own } else { &mut others };
            let mut at = Some(generation.context);
            while let Some(id) = at.filter(|&id| side.insert(id)) {
                at = self.parent(id);
            }
        }
        for id in self.contexts().filter_map(crate::Context::id) {
            if !others.contains(&id) && self.parent(id).is_some_and(|parent| own.contains(&parent))
            {
                own.insert(id);
            }
        }
        own
    }

    fn rollout_segments(
        &self,
        generations: &FxHashSet<GenerationId>,
        contexts: &FxHashSet<ContextId>,
    ) -> FxHashSet<SegmentId> {
        let mut segments = FxHashSet::default();
        for record in self.records() {
            match record {
                Record::Append(append) if contexts.contains(&append.context) => {
                    segments.extend(&append.segments)
                }
                Record::Replace(replace) if contexts.contains(&replace.context) => {
                    segments.extend(&replace.segments)
                }
                Record::Evict(evict) if contexts.contains(&evict.context) => {
                    segments.extend(
                        evict.replacement.iter().flat_map(|replacement| &replacement.segments),
                    );
                }
                Record::Generation(generation) if generations.contains(&generation.id) => {
                    segments.extend(&generation.output)
                }
                _ => {}
            }
        }
        segments
    }
}

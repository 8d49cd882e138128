//! The specification read literally: lists of token identities, maps and sets, and no care for
//! time.
mod apply;
mod certificate;
mod exact;
mod naive;
mod replay;
mod table;

use std::collections::HashMap;

use pleach_tree::{CacheSemantics, Generation, Record, Segment};

pub(crate) use apply::piece_starts;
pub use naive::Compared;
pub use replay::{Replayed, ReplayedTerm};
pub use table::{Rows, Scored, Table};

/// Segment id and index in the segment: which token a token is.
pub type Identity = (u32, u32);

/// One place of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// A token.
    Token(Identity),
    /// A segment without tokens, which keeps its place all the same.
    Empty(u32),
}

impl Slot {
    /// The segment that stands here.
    pub fn segment(self) -> u32 {
        match self {
            Self::Token((segment, _)) | Self::Empty(segment) => segment,
        }
    }
}

/// One call of the policy with its view spelt out.
#[derive(Debug, Clone)]
pub struct Call {
    /// The generation's record.
    pub generation: Generation,
    /// The tokens of its context.
    pub context: Vec<Identity>,
    /// The tokens of its output.
    pub output: Vec<Identity>,
}

impl Call {
    /// Context and output in order.
    pub fn view(&self) -> Vec<Identity> {
        [self.context.as_slice(), &self.output].concat()
    }
}

/// Sound records, read one after the other.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    /// What the header says of the cache.
    pub cache: CacheSemantics,
    /// Segments by id.
    pub segments: HashMap<u32, Segment>,
    /// The list of every context.
    pub contexts: HashMap<u32, Vec<Slot>>,
    /// The root of every context.
    pub roots: HashMap<u32, u32>,
    /// Calls in file order.
    pub calls: Vec<Call>,
    /// All records.
    pub records: Vec<Record>,
}

impl Oracle {
    /// Reads sound records.
    pub fn of(records: &[Record]) -> Self {
        let mut oracle = Self::default();
        for record in records {
            oracle.push(record.clone());
        }
        oracle
    }

    /// The places of a whole segment.
    pub fn whole(&self, segment: u32) -> Vec<Slot> {
        let tokens = self
            .segments
            .get(&segment)
            .and_then(|segment| segment.tokens.as_ref())
            .map_or(0, Vec::len);
        if tokens == 0 {
            return vec![Slot::Empty(segment)];
        }
        (0..).take(tokens).map(|offset| Slot::Token((segment, offset))).collect()
    }

    /// The tokens of a context, in order.
    pub fn context_tokens(&self, context: u32) -> Vec<Identity> {
        self.contexts.get(&context).map(|list| apply::tokens(list)).unwrap_or_default()
    }

    /// The id of a token.
    pub fn value(&self, (segment, offset): Identity) -> u32 {
        let tokens = self.segments.get(&segment).and_then(|segment| segment.tokens.as_ref());
        tokens.and_then(|tokens| tokens.get(offset as usize)).copied().unwrap_or(u32::MAX)
    }

    /// The ids of tokens.
    pub fn values(&self, identities: &[Identity]) -> Vec<u32> {
        identities.iter().map(|&identity| self.value(identity)).collect()
    }

    /// Every token that a loss term can stand on: sampled by the policy behind a non-empty prefix.
    pub fn scored(&self, call: &Call) -> Vec<Scored> {
        let mut scored = Vec::new();
        for (offset, &identity) in (0..).zip(&call.output) {
            let prefix = [call.context.as_slice(), &call.output[..offset as usize]].concat();
            let Some(weight) = self.weight(identity).filter(|_| !prefix.is_empty()) else {
                continue;
            };
            scored.push(Scored {
                generation: call.generation.id.0,
                offset,
                target: self.value(identity),
                weight,
                identity,
                prefix,
            });
        }
        scored
    }

    /// Number of tokens that the policy sampled.
    pub fn sampled(&self) -> usize {
        let sampled = |call: &Call| {
            call.output.iter().filter(|&&identity| self.weight(identity).is_some()).count()
        };
        self.calls.iter().map(sampled).sum()
    }

    /// The weight of a token as output: what its runs say, else 1; `None` where the policy did not
    /// write it.
    fn weight(&self, (segment, offset): Identity) -> Option<f64> {
        let segment = self
            .segments
            .get(&segment)
            .filter(|segment| segment.origin == pleach_tree::Origin::Policy)?;
        let Some(runs) = &segment.loss else { return Some(1.0) };
        runs.iter().find(|run| (run.start..run.end).contains(&offset)).map(|run| run.weight)
    }

    /// Threads in order of their first generation, each with the indices of its calls.
    pub fn threads(&self) -> Vec<Vec<usize>> {
        let mut threads: Vec<((&str, &str), Vec<usize>)> = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            let name = (call.generation.rollout.as_str(), call.generation.thread.as_str());
            match threads.iter_mut().find(|(known, _)| *known == name) {
                Some((_, calls)) => calls.push(index),
                None => threads.push((name, vec![index])),
            }
        }
        threads.into_iter().map(|(_, calls)| calls).collect()
    }
}

use bytemuck::{Pod, Zeroable};
use serde::Serialize;

use crate::LayoutError;

/// A loss term: the hidden state at `source` predicts the token id `target`.
///
/// Terms are a list and no property of tokens: at a branch point one source predicts several
/// targets, and a token shared by several rollouts has one term per rollout.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable, Serialize)]
#[repr(C)]
pub struct Term {
    /// Index into the sequence of the token whose hidden state predicts.
    pub source: u32,
    /// The token id that is predicted.
    pub target: u32,
    /// Id of the generation that sampled the target.
    pub generation: u32,
    /// Index of the target in the generation's concatenated output.
    pub offset: u32,
    /// Loss weight; a term of weight 0 stays in the list.
    pub weight: f64,
}

/// Which token of which segment a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable, Serialize)]
#[repr(C)]
pub struct Identity {
    /// Id of the segment.
    pub segment: u32,
    /// Index of the token in it.
    pub offset: u32,
}

/// One row of a layout: tokens in order, with the interval mask and the loss terms.
///
/// Row `i` may attend to key `j` if and only if `j <= i < ends[j]`. All vectors but `terms` are as
/// long as `tokens`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Sequence {
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Position of each token for rotary embeddings, counted from 0.
    pub positions: Vec<i32>,
    /// First index that does not see the token any more.
    pub ends: Vec<i32>,
    /// Loss terms, in file order of generations, then by offset.
    pub terms: Vec<Term>,
}

impl Sequence {
    /// A plain causal sequence.
    pub fn causal(tokens: Vec<u32>, terms: Vec<Term>) -> Result<Self, LayoutError> {
        let len = index(tokens.len())?;
        Ok(Self { positions: (0..len).collect(), ends: vec![len; tokens.len()], tokens, terms })
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Number of visible (row, key) pairs.
    pub fn pairs(&self) -> u64 {
        let seen = |(token, &end): (i64, &i32)| u64::try_from(i64::from(end) - token).unwrap_or(0);
        (0..).zip(&self.ends).map(seen).sum()
    }
}

/// `count` as a device index.
pub(crate) fn index(count: usize) -> Result<i32, LayoutError> {
    i32::try_from(count).map_err(|_| LayoutError::TooLong { tokens: count })
}

use serde::{Deserialize, Serialize};

use crate::LayoutError;

/// A loss term: the hidden state at `source` predicts the token id `target`.
///
/// Terms are a list and no property of tokens: at a branch point one source predicts several
/// targets, and a token shared by several rollouts has one term per rollout.
///
/// ```
/// # use pleach_layout::Layouts;
/// # use pleach_tree::{BranchTree, ReadOptions};
/// # let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
/// # {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
/// # {"t":"append","context":0,"from":null,"segments":[0]}
/// # {"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}
/// # {"t":"generation","id":0,"context":0,"output":[1]}
/// # {"t":"append","context":1,"from":0,"segments":[1]}
/// # {"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,2]}]}
/// # {"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[10]}
/// # {"t":"generation","id":1,"context":2,"output":[2]}
/// # "#;
/// # let (tree, _) = BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT)?;
/// let sequence = Layouts::new(&tree)?.packed()?.sequences.remove(0);
/// let last = sequence.terms[2];
/// assert_eq!((last.generation, last.offset, last.weight), (1, 0, 1.0));
/// // The first token that generation 1 sampled, 10, follows the 9 that stands behind the hole.
/// assert_eq!((sequence.tokens[last.source as usize], last.target), (9, 10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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

/// Which sampled token a loss term predicts: the name of a term within one tree.
///
/// All layouts of a tree call a sampled token the same, so what one says of it is found in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TermId {
    /// Id of the generation that sampled the token.
    pub generation: u32,
    /// Index of the token in the generation's concatenated output.
    pub offset: u32,
}

impl TermId {
    /// The token at `offset` of what `generation` sampled.
    pub const fn new(generation: u32, offset: u32) -> Self {
        Self { generation, offset }
    }
}

impl Term {
    /// The term's name within its tree.
    pub fn id(&self) -> TermId {
        TermId::new(self.generation, self.offset)
    }
}

/// Which token of which segment a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Id of the segment.
    pub segment: u32,
    /// Index of the token in it.
    pub offset: u32,
}

/// One row of a layout: tokens in order, with the interval mask and the loss terms.
///
/// Row `i` may attend to key `j` if and only if `j <= i < ends[j]`. All vectors but `terms` are as
/// long as `tokens`. One that is deserialised, from a cache say, is [checked](Sequence::check) on the
/// way in.
///
/// ```
/// # use pleach_layout::{Sequence, Term};
/// // A prompt of two tokens and two answers to it, each of one token.
/// let term = |target, generation| Term { source: 1, target, generation, offset: 0, weight: 1.0 };
/// let sequence = Sequence {
///     tokens: vec![5, 6, 7, 8],
///     positions: vec![0, 1, 2, 2],
///     ends: vec![4, 4, 3, 4],
///     terms: vec![term(7, 0), term(8, 1)],
/// };
/// sequence.check()?;
/// assert_eq!(sequence.pairs(), 9);
/// assert!(sequence.sees(3, 1) && !sequence.sees(3, 2));
/// # Ok::<(), pleach_layout::LayoutError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "UncheckedSequence")]
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

impl AsRef<Self> for Sequence {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Sequence {
    /// A plain causal sequence: every token sees itself and all before it.
    ///
    /// # Errors
    /// More than 2^31 - 1 tokens.
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

    /// Whether row `row` may attend to key `key`.
    pub fn sees(&self, row: usize, key: usize) -> bool {
        key <= row
            && row < self.len()
            && self
                .ends
                .get(key)
                .is_some_and(|&end| usize::try_from(end).is_ok_and(|end| row < end))
    }

    /// Whether the arrays fit together: equal lengths, positions from 0, ends between their token
    /// and the sequence's end, terms inside.
    ///
    /// Sequences of [`Layouts`](crate::Layouts) do. One put together by hand is worth the check
    /// before a device takes it.
    ///
    /// # Errors
    /// The first fault that is found, by array and index.
    pub fn check(&self) -> Result<(), LayoutError> {
        let tokens = self.len();
        index(tokens)?;
        for (array, found) in [("positions", self.positions.len()), ("ends", self.ends.len())] {
            if found != tokens {
                return Err(LayoutError::ArrayLength { array, found, tokens });
            }
        }
        if let Some((token, &position)) =
            self.positions.iter().enumerate().find(|(_, position)| **position < 0)
        {
            return Err(LayoutError::NegativePosition { token, position });
        }
        let outside = |&(token, &end): &(usize, &i32)| {
            !usize::try_from(end).is_ok_and(|end| (token..=tokens).contains(&end))
        };
        if let Some((token, &end)) = self.ends.iter().enumerate().find(outside) {
            return Err(LayoutError::EndOutside { token, end, tokens });
        }
        for (index, term) in self.terms.iter().enumerate() {
            if term.source as usize >= tokens {
                return Err(LayoutError::TermOutside { index, source_index: term.source, tokens });
            }
            if !term.weight.is_finite() {
                return Err(LayoutError::TermWeight { index, weight: term.weight.to_string() });
            }
        }
        Ok(())
    }

    /// Number of visible (row, key) pairs.
    pub fn pairs(&self) -> u64 {
        let seen = |(token, &end): (i64, &i32)| u64::try_from(i64::from(end) - token).unwrap_or(0);
        (0..).zip(&self.ends).map(seen).sum()
    }
}

/// The arrays of a sequence as they were read.
#[derive(Deserialize)]
struct UncheckedSequence {
    tokens: Vec<u32>,
    positions: Vec<i32>,
    ends: Vec<i32>,
    terms: Vec<Term>,
}

impl TryFrom<UncheckedSequence> for Sequence {
    type Error = LayoutError;

    fn try_from(read: UncheckedSequence) -> Result<Self, LayoutError> {
        let UncheckedSequence { tokens, positions, ends, terms } = read;
        let sequence = Self { tokens, positions, ends, terms };
        sequence.check()?;
        Ok(sequence)
    }
}

/// `count` as a device index.
pub(crate) fn index(count: usize) -> Result<i32, LayoutError> {
    i32::try_from(count).map_err(|_| LayoutError::TooLong { tokens: count })
}

use super::Identity;

/// A token that a loss term stands on, with the live view before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Id of the generation.
    pub generation: u32,
    /// Index in its concatenated output.
    pub offset: u32,
    /// Token id.
    pub target: u32,
    /// Declared weight.
    pub weight: f64,
    /// Which token it is.
    pub identity: Identity,
    /// The live view that it was sampled under.
    pub prefix: Vec<Identity>,
}

/// One sequence of a layout.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Positions.
    pub positions: Vec<i32>,
    /// First row that does not see the token any more.
    pub ends: Vec<i32>,
    /// Which token each is.
    pub identities: Vec<Identity>,
    /// `(source, target, generation, offset, weight)`.
    pub terms: Vec<(u32, u32, u32, u32, f64)>,
}

impl Rows {
    /// A causal sequence.
    pub(crate) fn causal(tokens: Vec<u32>, identities: Vec<Identity>) -> Self {
        let len = tokens.len() as i32;
        Self {
            positions: (0..len).collect(),
            ends: vec![len; tokens.len()],
            tokens,
            identities,
            terms: Vec::new(),
        }
    }
}

/// A layout: its sequences and, for those of a trie or a cache, who sees whom.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The sequences.
    pub rows: Vec<Rows>,
    /// For each row of the first sequence the keys that it sees, ascending; empty for plain causal
    /// layouts.
    pub sees: Vec<Vec<usize>>,
}

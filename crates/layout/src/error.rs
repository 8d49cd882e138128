use pleach_tree::{ContextId, SegmentId};

/// Why a tree cannot be laid out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A segment holds text only.
    #[error(
        "{location}: {segment} has text but no tokens; tokenise the records first (pleach_render::Renderer)"
    )]
    NoTokens {
        /// The segment.
        segment: SegmentId,
        /// Where it stands.
        location: String,
    },
    /// A context holds embeddings in place of tokens.
    #[error(
        "{location}: {context} holds embeddings in place of tokens, which no layout takes yet; lay out other rollouts"
    )]
    Latent {
        /// The context.
        context: ContextId,
        /// Where it stands.
        location: String,
    },
    /// A layout that has no meaning under this cache semantics.
    #[error(
        "layout {layout} does not exist under cache \"kv_evict\", where survivors keep what they saw; use packed"
    )]
    KvEvict {
        /// The layout.
        layout: &'static str,
    },
    /// A question that token ids cannot answer under this cache semantics.
    #[error(
        "diverging terms are not defined under cache \"kv_evict\", where survivors keep what they saw and equal ids do not mean equal conditioning; train the packed layout"
    )]
    DivergingUnderKvEvict,
    /// More tokens than an index holds.
    #[error(
        "the layout has {tokens} tokens, an index holds 2^31 - 1; lay out fewer rollouts at once"
    )]
    TooLong {
        /// Number of tokens.
        tokens: usize,
    },
    /// An array that is longer or shorter than the tokens it goes with.
    #[error(
        "{tokens} tokens have {found} {array}, one each is needed; a cache that says so is broken: lay the tree out again"
    )]
    ArrayLength {
        /// The array.
        array: &'static str,
        /// Its length.
        found: usize,
        /// The tokens.
        tokens: usize,
    },
    /// A position below 0.
    #[error("positions[{token}] = {position}; positions count from 0")]
    NegativePosition {
        /// Index of the token.
        token: usize,
        /// Its position.
        position: i32,
    },
    /// An interval end that lies before its token or beyond the sequence.
    #[error(
        "ends[{token}] = {end} lies outside {token}..={tokens}; an end is the first index that does not see the token"
    )]
    EndOutside {
        /// Index of the token.
        token: usize,
        /// The end that was given.
        end: i32,
        /// Tokens of the sequence.
        tokens: usize,
    },
    /// A loss term whose source is no token of the sequence.
    #[error(
        "terms[{index}] is predicted from token {source_index}, the sequence has {tokens}; a source counts from the sequence's first token"
    )]
    TermOutside {
        /// Index of the term.
        index: usize,
        /// Its source.
        source_index: u32,
        /// Tokens of the sequence.
        tokens: usize,
    },
    /// A loss term whose weight is no number.
    #[error("terms[{index}] has the weight {weight}; a weight is a finite number")]
    TermWeight {
        /// Index of the term.
        index: usize,
        /// Its weight.
        weight: String,
    },
    /// A layout that does not hold the identities of one list per sequence.
    #[error(
        "{sequences} sequences have {found} lists of identities, one each is needed; a cache that says so is broken: lay the tree out again"
    )]
    IdentityLists {
        /// Sequences of the layout.
        sequences: usize,
        /// Lists of identities.
        found: usize,
    },
    /// A parent that does not stand before its token.
    #[error(
        "parents[{token}] = {parent} is not before the token; a parent is an earlier token of the one packed sequence, or -1"
    )]
    ParentOutside {
        /// Index of the token.
        token: usize,
        /// The parent that was given.
        parent: i32,
    },
    /// A sequence that no row can hold.
    #[error(
        "sequence {index} has {tokens} tokens, the budget of a row is {budget}; raise the budget or leave it out"
    )]
    OverBudget {
        /// Index of the sequence.
        index: usize,
        /// Its tokens.
        tokens: usize,
        /// The budget of a row.
        budget: usize,
    },
}

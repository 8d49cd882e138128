use pleach_tree::{ContextId, SegmentId};

/// Why a tree cannot be laid out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A segment holds text only.
    #[error(
        "{location}: {segment} has text but no tokens; tokenise the records first (--tokenizer, or pleach_render::Renderer)"
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

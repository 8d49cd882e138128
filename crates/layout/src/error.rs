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
    /// A sequence that a layout does not have.
    #[error(
        "there is no sequence {index}: the layout has {sequences}, counted from 0; name one of them or draw all"
    )]
    NoSequence {
        /// Index that was asked for.
        index: usize,
        /// Number of sequences.
        sequences: usize,
    },
    /// A picture of no use, or of more pixels than are drawn.
    #[error(
        "a mask of {side} px at scale {scale} cannot be drawn; choose 64 to 8192 px, scale 1 to 4, 16384 pixels at most"
    )]
    PictureSize {
        /// Side of the mask in CSS pixels.
        side: u32,
        /// Pixels per CSS pixel.
        scale: u32,
    },
    /// A picture that could not be encoded.
    #[error("the picture could not be encoded as PNG ({reason}); draw it smaller, or as SVG")]
    Png {
        /// What the encoder said.
        reason: String,
    },
}

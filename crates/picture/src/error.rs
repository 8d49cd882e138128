use pleach_layout::LayoutError;

/// Why a layout cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
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
    /// What the layouts cannot say, such as where more than 2^31 - 1 tokens stand.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

use crate::SegmentId;

/// A half-open range of a segment: `[start, end)` in tokens, or bytes for a segment that is not
/// tokenised yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The segment.
    pub segment: SegmentId,
    /// First token.
    pub start: u32,
    /// First token behind the range.
    pub end: u32,
}

impl Span {
    /// Number of tokens.
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the range holds no token; an empty segment keeps its place as such a span.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// Handle of a [`Piece`] of one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PieceId(u32);

impl PieceId {
    /// Index for tables that run beside [`BranchTree::pieces`](crate::BranchTree::pieces).
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A span and what stands before it.
///
/// Contexts that share a beginning share its pieces, so a tree takes memory for what each operation
/// adds and not for the sum of its contexts, and whatever is computed per piece is computed once
/// for all views that share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The piece before it, if any.
    pub parent: Option<PieceId>,
    /// Its tokens.
    pub span: Span,
}

/// All pieces of a tree; a parent stands before its children.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces(Vec<Piece>);

impl Pieces {
    pub(crate) fn as_slice(&self) -> &[Piece] {
        &self.0
    }

    /// Puts `spans` behind `parent` and returns the last piece.
    pub(crate) fn extend(
        &mut self,
        parent: Option<PieceId>,
        spans: impl IntoIterator<Item = Span>,
    ) -> Option<PieceId> {
        spans.into_iter().fold(parent, |parent, span| {
            // Ids are u32 throughout the format, so a file cannot hold more pieces than fit.
            let id = PieceId(u32::try_from(self.0.len()).unwrap_or(u32::MAX));
            self.0.push(Piece { parent, span });
            Some(id)
        })
    }

    /// The pieces from the first to `tail`.
    pub(crate) fn path(&self, tail: Option<PieceId>) -> Vec<PieceId> {
        let mut path: Vec<PieceId> =
            std::iter::successors(tail, |id| self.0[id.index()].parent).collect();
        path.reverse();
        path
    }

    pub(crate) fn span(&self, id: PieceId) -> Span {
        self.0[id.index()].span
    }
}

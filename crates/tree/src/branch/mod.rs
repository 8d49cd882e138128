//! The branch tree: contexts as nodes, the operations that made them as edges.
mod build;
mod check;
mod cut;
mod evicted;
mod generation;
mod piece;
mod register;
mod tree;

pub use build::TreeBuilder;
pub use piece::{Piece, PieceId, Span};
pub use tree::{BranchTree, Change, Context, Event, Operation};

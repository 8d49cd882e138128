//! Layouts of a conditioning tree as plain arrays that a device can take.
//!
//! A [`Layouts`] is built once per [`BranchTree`](pleach_tree::BranchTree). From it come the exact
//! layouts, [`Layouts::packed`] (the token trie in depth-first order under an interval mask) and
//! [`Layouts::segments`] (one causal sequence per maximal view), the two common flattenings
//! [`Layouts::compressed`] and [`Layouts::full`], and what each of them costs and gets wrong.
//! Everything is a [`Sequence`]: tokens, positions, interval ends and loss terms. Nothing of size
//! tokens x tokens is built but by [`union`], which lists the keys of every row.
mod analysis;
mod error;
mod flattened;
mod forest;
mod layouts;
mod pack;
mod packed;
mod regime;
mod segments;
mod sequence;
mod tape;
mod trie;
mod union;

pub use analysis::{
    Account, Certificate, Conditioning, ConditioningSummary, Diverging, Era, Eviction,
    EvictionPlace, GenerationPlace, LayoutStats, PackedStats, Stats,
};
pub use error::LayoutError;
pub use layouts::{Layout, LayoutKind, Layouts};
pub use pack::{Member, Row, pack};
pub use regime::Regime;
pub use sequence::{Identity, Sequence, Term};
pub use union::{Union, union};

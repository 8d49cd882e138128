//! Layouts of a conditioning tree as plain arrays that a device can take.
//!
//! [`Layouts`] is built once per [`BranchTree`](pleach_tree::BranchTree). It yields the two exact
//! layouts, [`Layouts::packed`] (one sequence under an interval mask) and [`Layouts::segments`] (one
//! causal sequence per maximal view), the two common flattenings [`Layouts::compressed`] and
//! [`Layouts::full`], and what each of them costs and gets wrong. Every layout is a list of
//! [`Sequence`]s: tokens, positions, interval ends and loss terms.
//!
//! ```
//! use pleach_layout::{LayoutKind, Layouts};
//! use pleach_tree::{BranchTree, ReadOptions};
//!
//! // A prompt [5, 6, 7]; the policy samples [8, 9]; token 6 is evicted; the policy samples [10].
//! let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
//! {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
//! {"t":"append","context":0,"from":null,"segments":[0]}
//! {"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}
//! {"t":"generation","id":0,"context":0,"output":[1]}
//! {"t":"append","context":1,"from":0,"segments":[1]}
//! {"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,2]}]}
//! {"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[10]}
//! {"t":"generation","id":1,"context":2,"output":[2]}
//! "#;
//! let (tree, _) = BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT)?;
//! let layouts = Layouts::new(&tree)?;
//!
//! // Both views begin with token 5. Behind the hole the survivors stand again, on their new prefix.
//! let packed = layouts.packed()?;
//! let sequence = &packed.sequences[0];
//! assert_eq!(sequence.tokens, [5, 6, 7, 8, 9, 7, 8, 9, 10]);
//! assert_eq!(sequence.positions, [0, 1, 2, 3, 4, 1, 2, 3, 4]);
//! // Row i may attend to key j if and only if j <= i < ends[j].
//! assert_eq!(sequence.ends, [9, 5, 5, 5, 5, 9, 9, 9, 9]);
//! assert!(sequence.sees(8, 0) && !sequence.sees(8, 1));
//! // Every sampled token is predicted once, from the token before it in its own view.
//! let terms: Vec<_> = sequence.terms.iter().map(|term| (term.source, term.target)).collect();
//! assert_eq!(terms, [(2, 8), (3, 9), (7, 10)]);
//!
//! // The same loss as one causal sequence a view; the last view alone scores 8 and 9 without 6.
//! assert_eq!(layouts.segments()?.sequences.len(), 2);
//! assert_eq!(layouts.compressed()?.sequences[0].tokens, [5, 7, 8, 9, 10]);
//! let missing: Vec<u32> =
//!     layouts.conditioning(LayoutKind::Compressed).iter().map(|term| term.missing).collect();
//! assert_eq!(missing, [1, 1, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What can be said about a tree without a model: [`Layouts::account`] counts the layouts and lists
//! the evictions, [`Layouts::conditioning`] tells how far a flattening is from what the policy saw,
//! [`Layouts::certificate`] whether each token once would have been enough, [`Layouts::eras`] where
//! sampled tokens stand between evictions. [`pack`] joins several sequences into rows of a budget.
mod analysis;
mod error;
mod flattened;
mod forest;
mod layouts;
mod pack;
mod packed;
mod segments;
mod sequence;
mod tape;
mod trie;

pub use analysis::{
    Account, Certificate, Conditioning, ConditioningSummary, Era, Eviction, EvictionPlace,
    GenerationPlace, LayoutStats, PackedStats, Stats,
};
pub use error::LayoutError;
pub use layouts::{Layout, LayoutKind, Layouts};
pub use pack::{Member, Row, pack};
pub use sequence::{Identity, Sequence, Term, TermId};

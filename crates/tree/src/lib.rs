//! Eviction records and the conditioning tree of a compacted rollout.
//!
//! A harness that rewrites the context of an agent forks the history that later tokens are sampled
//! under. This crate reads what happened ([`Record`], one JSON object a line), builds the
//! [`BranchTree`] of contexts and operations, and tells what every [`Generation`] saw and said
//! ([`View`]). It knows no tensors and no tokenizer.
//!
//! ```
//! use pleach_tree::{BranchTree, ReadOptions};
//! let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
//! {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
//! {"t":"append","context":0,"from":null,"segments":[0]}
//! {"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8]}
//! {"t":"generation","id":0,"context":0,"output":[1]}
//! {"t":"evict","context":1,"from":0,"evicted":[{"segment":0,"tokens":[1,2]}]}
//! "#;
//! let (tree, report) = BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT)?;
//! assert!(!report.has_errors());
//! assert_eq!(tree.generations().len(), 1);
//! # Ok::<(), pleach_tree::TreeError>(())
//! ```
mod branch;
mod clip;
mod compression;
mod constants;
pub mod diff;
mod dot;
mod error;
mod ids;
mod lines;
mod merge;
mod reader;
mod record;
mod record_builder;
mod requests;
mod rollout;
mod view;
mod writer;

pub use branch::{
    BranchTree, Change, Context, Event, Operation, Piece, PieceId, Span, TreeBuilder,
};
pub use clip::clip;
pub use compression::compression;
pub use constants::without_constants;
pub use error::{Diagnostic, Fault, Location, Report, Severity, TreeError};
pub use ids::{ContextId, GenerationId, SegmentId};
pub use lines::{JsonLines, ReadOptions};
pub use merge::{RolloutNames, merge};
pub use reader::RecordReader;
pub use record::{
    Append, By, ByKind, CacheSemantics, Evict, Evicted, Evidence, Extra, Fidelity, Fork,
    ForkReason, Generation, Header, Latent, LossRun, Origin, Outcome, Part, Place, Record, Replace,
    Replacement, ReplacementKind, Role, Segment, Source, Status, TokenizerIdentity, Trigger,
};
pub use record_builder::RecordBuilder;
pub use requests::{Request, records_of_requests};
pub use view::{OutputToken, View};
pub use writer::write_records;

//! Adapters from what agent harnesses record to eviction records.
//!
//! An adapter reads the files of one harness and writes what happened as [`pleach_tree::Record`]s,
//! together with a [`pleach_tree::Report`] of everything that is wrong with the files or is not
//! recorded in them. [`detect`] tells from the content which harness wrote a file ([`Harness`] lists
//! them), [`convert`] does that and reads it; [`convert_from`] takes an [`Input`] from memory or a
//! pipe, and a harness where you know it better.
//!
//! ```
//! use pleach_harness::{Harness, Input, ReadOptions, convert_from, detect};
//! use pleach_tree::{BranchTree, Record};
//!
//! // A run of TC-RAG: the policy looks something up, then takes the result off its stack again.
//! let run = r#"{"question":"How long is the bridge?","steps":[
//!     {"output":"Thought: look it up\nAction: search\nAction Input: bridge","observation":"a page about dentistry"},
//!     {"output":"Backtrack: that page is of no use"},
//!     {"output":"Final Answer: 120 m"}]}"#;
//! let input = Input::memory("run.json", run.into(), []);
//! assert_eq!(detect(&input)?, Harness::TcRag);
//!
//! let session = convert_from(&input, None, ReadOptions::STRICT)?;
//! assert!(!session.report.has_errors());
//! let taken_out = |record: &Record| matches!(record, Record::Evict(_));
//! assert_eq!(session.records.iter().filter(|record| taken_out(record)).count(), 1);
//! let (tree, _) = BranchTree::from_records(session.records, "run.json", ReadOptions::STRICT)?;
//! assert_eq!(tree.generations().len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A damaged file is refused with every fault that it has, by file, line and key;
//! [`ReadOptions::LENIENT`] repairs what can be repaired and says what was done.
mod core;
mod detect;
mod error;
mod formats;
mod unread;

pub use crate::core::format::Conversion;
pub use crate::core::input::Input;
pub use crate::core::usage::{CallUsage, EraUsage, JumpCause, UsageCheck, UsageJump};
pub use detect::{Harness, convert, convert_from, detect, detect_bytes, misnamed};
pub use error::HarnessError;
pub use formats::{atif, claude_code};
pub use pleach_tree::ReadOptions;

//! Adapters from what agent harnesses record to eviction records.
//!
//! An adapter reads the files of one harness and writes what happened as [`pleach_tree::Record`]s,
//! together with a [`pleach_tree::Report`] of everything that is wrong with the files or is not
//! recorded in them. [`convert`] finds the adapter.
//!
//! ```no_run
//! use pleach_harness::{ReadOptions, convert};
//! let session = convert("session.jsonl", ReadOptions::STRICT)?;
//! println!("{} records\n{}", session.records.len(), session.report);
//! # Ok::<(), pleach_harness::HarnessError>(())
//! ```

mod core;
mod detect;
mod error;
mod formats;

pub use crate::core::format::Conversion;
pub use crate::core::input::Input;
pub use crate::core::usage::{CallUsage, EraUsage, UsageCheck};
pub use detect::{Harness, convert, convert_from, detect, detect_bytes, misnamed};
pub use error::HarnessError;
pub use formats::{atif, claude_code};
pub use pleach_tree::ReadOptions;

//! Adapters from what agent harnesses record to eviction records, and rendering of text to tokens.
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
mod agentfold;
pub mod atif;
mod block;
pub mod claude_code;
mod codex;
mod detect;
mod draft;
mod error;
mod gemini_cli;
mod genai;
mod input;
mod inspect_ai;
mod ledger;
mod memexrl;
mod opencode;
mod openhands;
mod pi;
mod prompts;
mod qwen_code;
mod records;
mod render;
mod requests;
mod rl;
mod script;
mod shape;
mod tcrag;
mod threads;
mod wording;

pub use detect::{Conversion, Harness, convert, convert_from, detect, detect_bytes, misnamed};
pub use error::HarnessError;
pub use input::Input;
pub use pleach_tree::ReadOptions;
pub use render::{ChatTemplate, RenderError, Rendered, Renderer};

//! What all formats share: input, what a format exports, and the ways from a log to contexts and evictions.
pub(crate) mod block;
pub(crate) mod draft;
pub(crate) mod format;
pub(crate) mod genai;
pub(crate) mod input;
pub(crate) mod ledger;
pub(crate) mod prompts;
pub(crate) mod script;
pub(crate) mod shape;
pub(crate) mod threads;
pub(crate) mod usage;
pub(crate) mod wording;

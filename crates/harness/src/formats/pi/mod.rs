//! Session files of Pi and of OpenClaw, which writes the same ones: session versions 1 to 3.
//!
//! # What a session becomes
//! - **Entries** hang together by `parentId`; in version 1 each goes on from the one before it. A
//!   second entry behind the same one is a branch (where several entries have one id, as markers of
//!   extensions do, the nearest above is meant): `main` is the branch of the last call, and what
//!   was given up is `main~1`, `main~2` and so on.
//! - **Calls** are assistant messages. One that was aborted or failed is a call, but no later
//!   request shows it. A tool call without a result is answered by the harness with a fixed text as
//!   soon as the conversation goes on, which is what the request shows.
//! - **Answers of the harness.** Assistant messages of the provider `openclaw` are OpenClaw's own
//!   writing: context of origin harness and no calls. Its notes of what was delivered
//!   (`delivery-mirror`, `gateway-injected`) stand in no request from June 2026 on, which is told
//!   from the date.
//! - **Contexts** hold user, tool-result and custom messages, commands that a person ran (unless
//!   they were excluded), the summary of a branch that was left, and the summary of a compaction.
//!   Changes of model, labels and the like stand in none.
//! - **Compactions** are evictions with the summary first, then everything from `firstKeptEntryId`
//!   on (version 1: `firstKeptEntryIndex`, which counts the entries of the file from its header),
//!   the summaries of earlier compactions left out. The summariser's call is not recorded, so its
//!   text is an external model's and the author of the eviction is unknown; `fromHook` is the rule
//!   `extension`.
//! - **Copied history.** A session that says which one it was branched from begins with the entries
//!   of that one. Where that file lies beside it, its calls are context here and generations there.
//!   Where it does not, or cannot be read, they are generations here, with a warning.
//!
//! The system prompt and tool schemas are not recorded. The program's own version is not either:
//! what is sent of broken calls is read from versions of 2026.
//!
//! # What is a fault
//! A parent or a first kept entry that is not there, a second result for a call, a call with nothing
//! before it. A second entry of one id is a warning.
mod line;
mod message;
mod session;

pub(crate) use session::FORMAT;

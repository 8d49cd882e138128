//! Sessions of OpenCode: what `opencode export` writes, and the storage folder of versions that
//! keep a file for each record. Read from versions of September 2025 (0.9) to June 2026; the
//! database of later versions is read by way of its export.
//!
//! # What a session becomes
//! - **Calls** are the steps of assistant messages. The results of a step's tools are kept with it
//!   and stand behind it in the next request; a tool that never ended is answered by a fixed text.
//!   A message with an error is a call that no later request shows, unless it was aborted with
//!   something said. Reasoning is context without loss.
//! - **Contexts** hold text and files of user messages (not those marked as ignored), the fixed
//!   text that stands for a request to compact, and the system prompt where a version records it.
//!   Snapshots, patches and the like stand in none.
//! - **Compactions** are a user message with a part `compaction` and an assistant message with
//!   `summary: true` behind it, which counts only with `finish` and without `error`. What stays is
//!   the request, the summary, and the tail from `tail_start_id` on, which stands before the two in
//!   versions before May 2026 and behind them since; which it was is told from the date. A tail
//!   that is not there leaves all of the history in place, because the harness does so.
//! - **The summariser's call** is that message: a thread `compact-1` and so on. Its prompt is not
//!   recorded, so it carries no loss.
//! - **Pruned results** carry the time at which they were cleared: from the first request behind it
//!   on, a fixed text stands for them.
//! - **Copied history.** A fork copies messages with their times; what is older than its session is
//!   context here.
//! - **Sub-agents** are the sessions in the same storage folder whose `parentID` is the session:
//!   threads that start from nothing. One that a tool names and that is not there, as in every
//!   export, is a warning.
//!
//! Messages stand in the order of their times, then of their ids, which rolled over in August 2026.
//! Tool schemas are not recorded, nor is the system prompt by most versions.
//!
//! # What is a fault
//! Two messages with one id, a summary whose request is not there, a call with nothing before it.
mod load;
mod message;
mod order;
mod record;
mod session;

pub(crate) use load::FORMAT;

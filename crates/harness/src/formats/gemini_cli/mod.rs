//! Session files of Gemini CLI: JSON Lines as versions of 2026 write them, and the single documents
//! of earlier ones.
//!
//! # What a session becomes
//! - **Messages** have ids; a line with the id of an earlier one is that message as it was by then,
//!   and the last one counts.
//! - **Calls** are messages of type `gemini`: thoughts (context without loss), text, tool calls.
//!   The results of its tools are kept with the message and stand behind it in the next request.
//!   `info`, `error` and `warning` stand in no context.
//! - **`$rewindTo`** takes back a message and all behind it; what comes next goes on from before
//!   it, and what was taken back is `main~1`.
//! - **`$set.messages`** is the whole new list, which the harness writes when it compresses the
//!   history, masks results, or puts in a message of its own. What of it stands in the context
//!   already keeps its identity. The summariser's call is not recorded.
//! - **Sub-agents** are the files in the folder beside the session that has its id: threads that
//!   start from nothing.
//!
//! Single documents hold the messages as they were in the end: what a compression took out is not
//! recorded in them. The system prompt and tool schemas are recorded in neither.
//!
//! # What is a fault
//! A rewind to a message that is not there, a message without an id, a call with nothing before it.
mod line;
mod session;

pub(crate) use session::FORMAT;

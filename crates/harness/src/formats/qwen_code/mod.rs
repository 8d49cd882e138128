//! Session files of Qwen Code, read from versions of January to June 2026.
//!
//! # What a session becomes
//! - **Lines** hang together by `parentUuid`; a second line behind the same one is a branch. `main`
//!   is the branch of the last call.
//! - **Calls** are `assistant` lines; several lines of one uuid are one. Thoughts are context
//!   without loss.
//! - **Contexts** hold user lines, tool results and notifications that have a message. `system`
//!   lines stand in none.
//! - **Compressions** are `system` lines of subtype `chat_compression` whose `compressedHistory` is
//!   the whole new list. What of it stands in the context already keeps its identity. The
//!   summariser's call is not recorded. One whose status says that it failed is passed over,
//!   because the harness does so.
//! - **Copied history.** Lines with `forkedFrom` are those of another session: its calls are
//!   context here.
//!
//! The system prompt and tool schemas are not recorded.
//!
//! # What is a fault
//! A parent that is not above, one uuid with two contents, a compression without a list, a call
//! with nothing before it.
mod session;

pub(crate) use session::FORMAT;

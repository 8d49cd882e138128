//! Rollout files of Codex CLI, read from versions of September 2025 (0.3x) to June 2026.
//!
//! # What a rollout becomes
//! - **Calls** are runs of items that the model made: reasoning, messages, tool calls. A run ends
//!   where anything else is put in, where a turn begins or ends, and where the count of used tokens
//!   grows, which it does once for each response. `policy` is the model of the last `turn_context`.
//!   Reasoning is the provider's summary, context without loss, unless its raw text is recorded.
//! - **Contexts** hold the base instructions of `session_meta` (versions that record them), user
//!   and developer messages, and the outputs of tools. What a person typed is told from what the
//!   harness put in a person's place by the harness's own marks. Events, ghost snapshots and titles
//!   stand in none. A call without an output is answered by `aborted`, as the request shows it.
//! - **Compactions** with `replacement_history` give the whole new list. What of it stands in the
//!   context already keeps its identity, so the record is an eviction of the rest;
//!   `context_compacted` is no second one. Older ones have only `message`: the list is rebuilt as
//!   the harness does (the messages before the first prompt, the newest prompts of 20,000 tokens at
//!   4 bytes each, the summary), which is inferred, and a warning. Where a list holds an
//!   item of the provider (`compaction`), the provider compacted: that item stands for all that is
//!   not in the list, prompts keep their identity wherever they stand now, and one warning says that
//!   the item is encrypted, so its size stands there.
//! - **The summariser's call** is recorded by some versions, as a message right before the
//!   compaction whose text ends the summary. It is a thread of its own, `compact-1` and so on. The
//!   prompt that it answers is not recorded, so it carries no loss.
//! - **Rollbacks** take the newest turns back: what comes next goes on from before them, and they
//!   are `main~1` and so on.
//! - **Copied history.** A rollout that was forked begins with the items of its parent. Where the
//!   parent's file lies beside it or in the folder of another day, those are context here and calls
//!   there. They are told by content, and by id where both have one, in the order of the parent: a
//!   fork may begin at any of its turns, and leave out what a turn holds and what a rollback took
//!   back, but no prompt in between. The first other item is the rollout's own, as is all behind
//!   it; where ids of the parent stand there, a warning says so. Where the file does not lie there,
//!   or cannot be read, the calls are calls here, with a warning.
//!
//! # What is written again
//! An item is known by its id and a call of a tool by its own, each with what it says; a copy, a
//! new item and one that was met are never parts of one call of the model.
//! - **What the history holds** was written twice: it is left out, with a warning, and so is the
//!   same output of a call.
//! - **What a rollback or a compaction took out** is context, with a warning, as it was sampled
//!   before; so are outputs of such calls.
//! - **An id with other content** is another item. Servers that number calls anew give one id to
//!   several: each is a call of its own, with one warning for the id, and an output answers one
//!   that has none yet. A call stays unanswered where another of its id has an output, as the
//!   harness pairs by ids alone.
//! - **What has no id** goes with what is beside it in the run, and is a call of its own where
//!   nothing is; a warning says so where it says what was taken out, or what was said before to a
//!   prompt that is the same as well.
//!
//! # What is a fault
//! An ordinal that stands twice, a second output for a call that says something else, an output
//! without a call, a compaction without summary and list, a rollback of more turns than there are
//! or of no number, history that lies in another rollout, a call with nothing before it. An output
//! whose call was taken out is left out with a warning, as the harness does not send it.
mod compaction;
mod copied;
mod history;
mod item;
mod known;
mod line;
mod run;
mod session;

pub(crate) use session::FORMAT;

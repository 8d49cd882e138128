//! Logs of inspect_ai: `.eval` archives of format version 2, and logs that are one JSON document,
//! read from releases 0.3.100 to 0.3.285.
//!
//! # What a log becomes
//! - **Rollouts** are samples: `ID_epoch_N`, with the sample's first score as outcome, in the group
//!   of the sample's id.
//! - **Calls** are model events with an output; one that failed or is pending is none, and neither is
//!   one inside a scorer's span or of a model in another role, such as a grader's. Every call
//!   has its whole prompt, as a list of messages or as ranges over the sample's pool, so every view
//!   is what was sent. Texts kept as attachments are put back.
//! - **Threads** are spans: a call goes on from the last one of its span, or from the thread whose
//!   context it repeats. What goes back to an earlier state is a fork.
//! - **Compactions** are recorded as events; the prompt behind one shows what it did. A summary is
//!   by the call right before its event, which is a thread of its own, if its model is that of the
//!   thread it summarises, and an external model's if not. A trim or an edit is by the rule that
//!   the event names. A change without an event is inferred.
//! - **Reasoning** is a provider's summary where the log says so, or where it is redacted; raw
//!   reasoning is what was sampled.
//!
//! # What is a fault
//! An entry that is compressed in a way that is not read or is too large, a reference outside the
//! pool, a text whose attachment is not there, a call with nothing before it.
mod archive;
mod compaction;
mod message;
mod play;
mod pool;
mod sample;

pub(crate) use archive::FORMAT;

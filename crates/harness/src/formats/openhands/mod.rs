//! Event logs of the OpenHands SDK (version 1): a file of JSON Lines, or a conversation's folder
//! with one file an event. Read from versions 1.0 to 1.58 of the SDK.
//!
//! # What a log becomes
//! - **Calls** are the events of one `llm_response_id`: an agent's message, or actions, each of
//!   which is one tool call. `policy` is the model that `base_state.json` names, where the folder
//!   has it. Reasoning is context without loss.
//! - **Contexts** hold the system prompt, messages with what the harness adds to them, actions, and
//!   what answers them. Every other event stands in none. A result is the content of its
//!   observation; what some tools add to it in a request is not recorded.
//! - **Condensations** take out `forgotten_event_ids` and put a summary, known as `ID-summary`, at
//!   `summary_offset`, which counts the events that are left. The summariser's call is not
//!   recorded, so its text is an external model's and the author of the eviction is unknown.
//! - **What a request leaves out.** An action without an answer, an answer without its action, and
//!   the other actions of a response of which one is gone, are left out of requests as the SDK
//!   does, by the rule `view-properties`, and come back when they are whole again.
//!
//! Tool schemas are recorded with the system prompt and are not rendered here.
//!
//! # What is a fault
//! One id with two contents, two files of one number, a forgotten event that stands nowhere above,
//! a second answer to a call, a call with nothing before it.
mod event;
mod load;
mod log;
mod view;

pub(crate) use load::FORMAT;

//! A module a format: what only that harness writes.
pub(crate) mod agentfold;
pub mod atif;
pub mod claude_code;
pub(crate) mod codex;
pub(crate) mod gemini_cli;
pub(crate) mod inspect_ai;
pub(crate) mod memexrl;
pub(crate) mod messages;
pub(crate) mod opencode;
pub(crate) mod openhands;
pub(crate) mod pi;
pub(crate) mod qwen_code;
pub(crate) mod records;
pub(crate) mod requests;
pub(crate) mod rl;
pub(crate) mod tcrag;

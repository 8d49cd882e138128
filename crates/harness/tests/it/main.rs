//! The contracts of this crate, a module each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it does not expect"
)]
mod atif;
mod claude_code;
mod claude_code_copies;
mod claude_code_damage;
mod claude_code_faults;
mod claude_code_forks;
mod claude_code_sent;
mod claude_code_tails;
mod codex;
mod codex_damage;
mod codex_files;
mod codex_repeats;
mod damage;
mod damaged;
mod damaged_logs;
mod damaged_sessions;
mod detect;
mod gemini_cli;
mod inspect_ai;
mod lines;
mod log_lines;
mod logs;
mod messages;
mod mini_swe_agent;
mod opencode;
mod openhands;
mod pi;
mod prompt_logs;
mod prompt_samples;
mod prompts;
mod qwen_code;
mod replayed;
mod requests;
mod rl;
mod rl_captures;
mod rollout;
mod seen;
mod shared;
mod shared_compactions;
mod shared_sessions;
mod shown;
mod swe_agent;
mod told;

//! The contracts of this crate, a module each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it does not expect"
)]
mod answers;
mod folders;
mod invariant;
mod joined;
mod long;
mod loss;
mod messages;
mod records;
mod requests;
mod session;
mod shared;
mod template;
mod tokenizer;

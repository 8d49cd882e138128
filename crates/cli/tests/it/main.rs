//! The contracts of this crate, a module each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it does not expect"
)]
mod arrays;
mod folder;
mod objective;
mod pleach;
mod streams;
mod vectors;
mod verbs;

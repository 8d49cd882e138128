//! The contracts of this crate, a module each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it does not expect"
)]
mod bytes;
mod cutting;
mod diverging;
mod drawn;
mod gradients;
mod invariants;
mod kv_evict;
mod layouts;
mod pack;
mod reach;
mod records;
mod streaming;

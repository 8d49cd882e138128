//! The contracts of this crate, a module each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it does not expect"
)]
mod cache;
mod diverging;
mod eras;
mod places;
mod vectors;

//! The contracts of this crate, a module each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it does not expect"
)]
mod clip;
mod errors;
mod merge;
mod record_builder;
mod requests;
mod rollouts;
mod schema;
mod views;

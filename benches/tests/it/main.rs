//! The contracts of this package, a module each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it does not expect"
)]
mod program;
mod regimes;
mod run;

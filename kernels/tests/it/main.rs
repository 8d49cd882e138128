//! The contracts of tree attention, a module each: every execution, on every device that is there, in
//! every dtype that it computes in, with the plain float64 loops of the oracle as the only truth.
//! They are one program so that a device compiles its kernels once.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#[path = "../oracle/mod.rs"]
mod oracle;

mod accuracy;
mod checkpointing;
mod determinism;
mod empty_rows;
mod executions;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod half_precision;
mod heads;
mod intervals;
mod invalid_tensors;
mod isolation;
mod lengths;
mod mask;
mod messages;
mod nan;
mod packing;
mod random_problems;
mod reuse;
mod rotary;
mod schedule;
mod view_attention;
mod views;
mod windows;

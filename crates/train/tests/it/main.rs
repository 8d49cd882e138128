//! The contracts of this crate, a module each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it does not expect"
)]
mod advantages;
mod batch;
mod checkpoint;
mod compaction_invariance;
mod config;
mod decoder;
mod divergence;
mod divergence_pairs;
mod evaluation;
mod fixtures;
mod gae;
mod gap;
mod health;
#[cfg(feature = "metrics")]
mod metrics;
mod nll;
mod nll_splits;
mod objective_devices;
mod optimiser_steps;
mod own_model;
mod policy_gradient;
mod presets;
mod replay;
mod sd_search;
mod sdcc;
mod sdcc_certificate;
mod sdcc_teachers;
mod sdcc_vectors;
mod timelines;
mod union;
mod value;
mod vectors;

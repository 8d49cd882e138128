//! Contracts of memory: they count the whole process, so they are a program of their own and take
//! turns.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#[path = "../it/fixtures/mod.rs"]
mod fixtures;

mod estimate;
mod head;

use peak_alloc::PeakAlloc;
use std::sync::Mutex;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// The count is of the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Peak bytes above what was live before.
fn peak<T>(run: impl FnOnce() -> T) -> f64 {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let result = run();
    let real = ALLOCATED.peak_usage() - before;
    drop(result);
    real as f64
}

use anyhow::Result;
use pleach_kernels::TreeMask;
use pleach_kernels::problem::NamedProblem;
use serde::Serialize;
use std::time::Instant;

use crate::clock::Spread;
use crate::setup::Setup;

/// The length of a long rollout, at which planning must still be nothing.
const LONG_TOKENS: usize = 131_072;

/// The plan of one mask.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ScheduleRow {
    pub(crate) problem: NamedProblem,
    pub(crate) tokens: usize,
    pub(crate) plan_s: f64,
    pub(crate) live_tiles: u64,
    pub(crate) partial_tiles: u64,
    /// Computed over visible pairs.
    pub(crate) block_overhead: f64,
    /// Computed pairs over tokens x tokens.
    pub(crate) computed_fraction: f64,
}

/// Plans every problem at every length and at a long one.
pub(crate) fn measure(
    setup: &Setup,
    problems: &[NamedProblem],
    tokens: &[usize],
) -> Result<Vec<ScheduleRow>> {
    let mut lengths = tokens.to_vec();
    if !lengths.contains(&LONG_TOKENS) {
        lengths.push(LONG_TOKENS);
    }
    let mut rows = Vec::new();
    for tokens in lengths {
        for &problem in problems {
            rows.push(row(setup, problem, tokens)?);
        }
    }
    Ok(rows)
}

fn row(setup: &Setup, problem: NamedProblem, tokens: usize) -> Result<ScheduleRow> {
    let ends = problem.tree(tokens).ends;
    let seconds = (0..setup.repeats).map(|_| plan_s(setup, &ends)).collect::<Result<Vec<_>>>()?;
    let stats = TreeMask::new(&[&ends], &setup.device)?.schedule_stats()?;
    Ok(ScheduleRow {
        problem,
        tokens,
        plan_s: Spread::of(&seconds).map_or(0.0, |plan| plan.median),
        live_tiles: stats.live_tiles,
        partial_tiles: stats.partial_tiles,
        block_overhead: stats.block_overhead(),
        computed_fraction: stats.computed_fraction(),
    })
}

/// Seconds that the first use of a mask takes to plan it.
pub(crate) fn plan_s(setup: &Setup, ends: &[i32]) -> Result<f64> {
    let mask = TreeMask::new(&[ends], &setup.device)?;
    let start = Instant::now();
    let schedule = mask.schedule()?;
    let seconds = start.elapsed().as_secs_f64();
    drop(schedule);
    Ok(seconds)
}

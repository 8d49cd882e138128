use pleach_kernels::problem::NamedProblem;
use serde::Serialize;

use crate::attention::AttentionRow;
use crate::environment::Environment;
use crate::inputs::{Pass, Way};
use crate::memory::{Peak, Peaks};
use crate::schedule::ScheduleRow;
use crate::step::StepRow;

/// Everything that a run measured.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    pub(crate) environment: Environment,
    /// Tree attention and other ways.
    pub(crate) rows: Vec<AttentionRow>,
    pub(crate) schedule: Vec<ScheduleRow>,
    pub(crate) step: Vec<StepRow>,
    /// How memory was measured, or why not.
    pub(crate) memory_method: String,
    /// Peaks of tree attention at lengths that were not timed.
    pub(crate) memory: Vec<Peak>,
}

impl Report {
    /// Puts the peaks of timed ways beside their times.
    pub(crate) fn new(
        environment: Environment,
        mut rows: Vec<AttentionRow>,
        peaks: Peaks,
        schedule: Vec<ScheduleRow>,
        step: Vec<StepRow>,
    ) -> Self {
        for row in &mut rows {
            row.peak_bytes = peaks.get(row.problem, row.tokens, row.way, row.pass);
        }
        let timed = |peak: &Peak| rows.iter().any(|row| row.tokens == peak.tokens);
        let memory = peaks.rows.iter().filter(|peak| !timed(peak)).cloned().collect();
        Self { environment, rows, schedule, step, memory_method: peaks.method, memory }
    }

    /// The row of another way on the same problem and pass.
    pub(crate) fn beside(&self, row: &AttentionRow, way: Way) -> Option<&AttentionRow> {
        self.find(row.problem, row.tokens, way, row.pass)
    }

    /// One row.
    pub(crate) fn find(
        &self,
        problem: NamedProblem,
        tokens: usize,
        way: Way,
        pass: Pass,
    ) -> Option<&AttentionRow> {
        self.rows.iter().find(|row| {
            (row.problem, row.tokens, row.way, row.pass) == (problem, tokens, way, pass)
        })
    }
}

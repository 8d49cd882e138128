//! What the kernels aim at on two CPU cores, set beside what was measured.
use pleach_kernels::problem::NamedProblem;

use super::attention::AttentionRow;
use super::inputs::{Pass, Way};
use super::report::Report;
use super::setup::Dtype;
use crate::output;

/// One aim and what was found of it.
pub(super) struct Aim {
    pub(super) what: String,
    pub(super) aim: String,
    pub(super) found: String,
    pub(super) met: bool,
}

impl Aim {
    fn at_least(what: String, aim: f64, found: f64) -> Self {
        Self {
            what,
            aim: format!("at least {aim:.2}"),
            found: format!("{found:.2}"),
            met: found >= aim,
        }
    }

    fn at_most(what: String, aim: f64, found: f64) -> Self {
        Self {
            what,
            aim: format!("at most {aim:.2}"),
            found: format!("{found:.2}"),
            met: found <= aim,
        }
    }
}

/// The aims that a report has figures for; none on machines and shapes that they were not set for.
pub(super) fn of(report: &Report) -> Vec<Aim> {
    let environment = &report.environment;
    let shape =
        [environment.heads, environment.kv_heads, environment.head_dim, environment.threads];
    if environment.device != "flex" || environment.dtype != Dtype::F32 || shape != [8, 8, 64, 2] {
        return Vec::new();
    }
    let mut aims = rates(report);
    aims.extend(against_dense(report));
    aims.extend(plans(report));
    aims.extend(memory(report));
    aims.extend(steps(report));
    aims
}

fn tree_rows(report: &Report) -> impl Iterator<Item = &AttentionRow> {
    report.rows.iter().filter(|row| row.way == Way::Tree)
}

fn name(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => "forward",
        Pass::ForwardBackward => "with backward",
    }
}

fn rates(report: &Report) -> Vec<Aim> {
    let of_aim = |problem| {
        matches!(problem, NamedProblem::Causal | NamedProblem::Fold | NamedProblem::ClearedResults)
    };
    let rows =
        tree_rows(report).filter(|row| of_aim(row.problem) && [4096, 8192].contains(&row.tokens));
    let aims = rows.filter_map(|row| {
        let what = format!(
            "rate on {}, {} tokens, {}",
            row.problem,
            output::size(row.tokens),
            name(row.pass)
        );
        let aim = if row.pass == Pass::Forward { 0.65 } else { 0.60 };
        Some(Aim::at_least(what, aim, row.rate?))
    });
    aims.collect()
}

fn against_dense(report: &Report) -> Vec<Aim> {
    let aims = tree_rows(report).filter_map(|row| {
        let aim = match (row.tokens, row.problem, row.pass) {
            (512, ..) => 1.0,
            (8192, NamedProblem::Fold, Pass::Forward) => 15.0,
            (8192, NamedProblem::Fold, Pass::ForwardBackward) => 20.0,
            _ => return None,
        };
        let dense_s = report.beside(row, Way::Reference)?.time_s?;
        let what = format!(
            "dense reference over tree on {}, {} tokens, {}",
            row.problem,
            output::size(row.tokens),
            name(row.pass)
        );
        Some(Aim::at_least(what, aim, dense_s / row.time_s?))
    });
    aims.collect()
}

fn plans(report: &Report) -> Vec<Aim> {
    let mut aims = Vec::new();
    for row in &report.schedule {
        let tokens = output::size(row.tokens);
        if row.problem == NamedProblem::Fold && row.tokens >= 4096 {
            aims.push(Aim::at_most(
                format!("block overhead of {}, {tokens} tokens", row.problem),
                1.15,
                row.block_overhead,
            ));
        }
        if row.problem != NamedProblem::Causal && row.tokens == 131_072 {
            aims.push(Aim::at_most(
                format!("plan of {}, {tokens} tokens, ms", row.problem),
                20.0,
                row.plan_s * 1e3,
            ));
        }
    }
    aims
}

fn memory(report: &Report) -> Vec<Aim> {
    let peaks = report.memory.iter().filter(|peak| peak.tokens == 32_768);
    let aim = |peak: &super::memory::Peak| {
        let what = format!(
            "extra memory on {}, {} tokens, {}, MiB",
            peak.problem,
            output::size(peak.tokens),
            name(peak.pass)
        );
        Aim::at_most(what, 64.0, peak.peak_bytes as f64 / f64::from(1 << 20))
    };
    peaks.map(aim).collect()
}

fn steps(report: &Report) -> Vec<Aim> {
    let aims = report.step.iter().flat_map(|row| {
        let of_ideal = Aim::at_least(
            format!("speed-up of the step on {}, of the ideal one", row.regime),
            0.85,
            row.of_ideal,
        );
        let share = Aim::at_most(
            format!("plan of the step on {}, %", row.regime),
            1.0,
            row.schedule_share * 100.0,
        );
        [of_ideal, share]
    });
    aims.collect()
}

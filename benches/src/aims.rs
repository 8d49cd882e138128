//! What the kernels aim at on two CPU cores, read from `aims.json` and set beside what was measured.
use anyhow::{Context, Result};
use serde::Deserialize;

use crate::attention::AttentionRow;
use crate::inputs::{Pass, Way};
use crate::output;
use crate::report::Report;

const AIMS: &str = include_str!("../aims.json");

/// The aims, by figure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Aims {
    setting: Setting,
    rate: Vec<Target>,
    dense_over_tree: Vec<Target>,
    block_overhead: Vec<Target>,
    plan_ms: Vec<Target>,
    extra_memory_mib: Vec<Target>,
    step: StepTarget,
}

/// What the aims were set for.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Setting {
    device: String,
    dtype: String,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    threads: usize,
}

/// The aim of a figure on some problems, lengths and passes; all of them where none is named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    #[serde(default)]
    problems: Vec<String>,
    tokens: Vec<usize>,
    pass: Option<Pass>,
    aim: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepTarget {
    of_ideal: f64,
    plan_percent: f64,
}

impl Target {
    fn is_of(&self, problem: &str, tokens: usize, pass: Option<Pass>) -> bool {
        (self.problems.is_empty() || self.problems.iter().any(|name| name == problem))
            && self.tokens.contains(&tokens)
            && (self.pass.is_none() || self.pass == pass)
    }
}

/// The aim of a list that is for a figure, if there is one.
fn aim_of(targets: &[Target], problem: &str, tokens: usize, pass: Option<Pass>) -> Option<f64> {
    targets.iter().find(|target| target.is_of(problem, tokens, pass)).map(|target| target.aim)
}

/// One aim and what was found of it.
pub(crate) struct Aim {
    pub(crate) what: String,
    pub(crate) aim: String,
    pub(crate) found: String,
    pub(crate) met: bool,
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
///
/// # Errors
/// Where `aims.json` is not of this form.
pub(crate) fn of(report: &Report) -> Result<Vec<Aim>> {
    let aims: Aims = serde_json::from_str(AIMS).context("benches/aims.json cannot be read")?;
    let environment = &report.environment;
    let setting = Setting {
        device: environment.device.to_owned(),
        dtype: environment.dtype.to_string(),
        heads: environment.heads,
        kv_heads: environment.kv_heads,
        head_dim: environment.head_dim,
        threads: environment.threads,
    };
    if setting != aims.setting {
        return Ok(Vec::new());
    }
    let mut found = rates(report, &aims.rate);
    found.extend(against_dense(report, &aims.dense_over_tree));
    found.extend(plans(report, &aims));
    found.extend(memory(report, &aims.extra_memory_mib));
    found.extend(steps(report, &aims.step));
    Ok(found)
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

fn rates(report: &Report, targets: &[Target]) -> Vec<Aim> {
    let aims = tree_rows(report).filter_map(|row| {
        let aim = aim_of(targets, row.problem.name(), row.tokens, Some(row.pass))?;
        let (tokens, pass) = (output::size(row.tokens), name(row.pass));
        let what = format!("rate on {}, {tokens} tokens, {pass}", row.problem);
        Some(Aim::at_least(what, aim, row.rate?))
    });
    aims.collect()
}

fn against_dense(report: &Report, targets: &[Target]) -> Vec<Aim> {
    let aims = tree_rows(report).filter_map(|row| {
        let aim = aim_of(targets, row.problem.name(), row.tokens, Some(row.pass))?;
        let dense_s = report.beside(row, Way::Reference)?.time_s?;
        let (tokens, pass) = (output::size(row.tokens), name(row.pass));
        let what = format!("dense reference over tree on {}, {tokens} tokens, {pass}", row.problem);
        Some(Aim::at_least(what, aim, dense_s / row.time_s?))
    });
    aims.collect()
}

fn plans(report: &Report, aims: &Aims) -> Vec<Aim> {
    let mut found = Vec::new();
    for row in &report.schedule {
        let (problem, tokens) = (row.problem.name(), output::size(row.tokens));
        if let Some(aim) = aim_of(&aims.block_overhead, problem, row.tokens, None) {
            let what = format!("block overhead of {problem}, {tokens} tokens");
            found.push(Aim::at_most(what, aim, row.block_overhead));
        }
        if let Some(aim) = aim_of(&aims.plan_ms, problem, row.tokens, None) {
            let what = format!("plan of {problem}, {tokens} tokens, ms");
            found.push(Aim::at_most(what, aim, row.plan_s * 1e3));
        }
    }
    found
}

fn memory(report: &Report, targets: &[Target]) -> Vec<Aim> {
    let aims = report.memory.iter().filter_map(|peak| {
        let aim = aim_of(targets, &peak.problem, peak.tokens, Some(peak.pass))?;
        let (tokens, pass) = (output::size(peak.tokens), name(peak.pass));
        let what = format!("extra memory on {}, {tokens} tokens, {pass}, MiB", peak.problem);
        Some(Aim::at_most(what, aim, peak.peak_bytes as f64 / f64::from(1 << 20)))
    });
    aims.collect()
}

fn steps(report: &Report, target: &StepTarget) -> Vec<Aim> {
    let aims = report.step.iter().flat_map(|row| {
        let of_ideal = Aim::at_least(
            format!("speed-up of the step on {}, of the ideal one", row.regime),
            target.of_ideal,
            row.of_ideal,
        );
        let share = Aim::at_most(
            format!("plan of the step on {}, %", row.regime),
            target.plan_percent,
            row.schedule_share * 100.0,
        );
        [of_ideal, share]
    });
    aims.collect()
}

#[cfg(test)]
mod tests {
    use pleach_kernels::problem::NamedProblem;

    use super::*;

    #[test]
    fn aims_name_problems_that_exist() {
        let aims: Aims = serde_json::from_str(AIMS).unwrap();
        let lists = [&aims.rate, &aims.dense_over_tree, &aims.block_overhead, &aims.plan_ms];
        let names: Vec<&str> = NamedProblem::ALL.iter().map(|problem| problem.name()).collect();
        for name in lists.into_iter().flatten().flat_map(|target| &target.problems) {
            assert!(names.contains(&name.as_str()), "{name}");
        }
        assert_eq!(aim_of(&aims.plan_ms, "causal", 131_072, None), None);
        assert_eq!(aim_of(&aims.rate, "fold", 4096, Some(Pass::Forward)), Some(0.65));
    }
}

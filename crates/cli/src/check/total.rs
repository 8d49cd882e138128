use std::path::PathBuf;

use anyhow::Result;
use pleach_layout::{ConditioningSummary, LayoutKind, Stats};
use pleach_train::diagnostics::GapSummary;
use serde::Serialize;

use super::Checked;
use super::report::FileReport;
use crate::output;

/// All files of a folder, and their sums.
#[derive(Serialize)]
pub(crate) struct Total<'a> {
    files: Vec<FileReport<'a>>,
    errors: Vec<Failure>,
    total: Sums,
}

#[derive(Serialize)]
struct Failure {
    file: String,
    error: String,
}

/// Sums over files; gaps are over all terms of all files.
#[derive(Serialize)]
struct Sums {
    stats: Option<Stats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compressed_gap: Option<GapSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    full_gap: Option<GapSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_logp_difference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_relative_gradient_error: Option<f64>,
}

impl<'a> Total<'a> {
    pub(crate) fn new(
        checked: &[Checked],
        files: Vec<FileReport<'a>>,
        failures: &[(PathBuf, anyhow::Error)],
    ) -> Self {
        let failure = |(file, error): &(PathBuf, anyhow::Error)| Failure {
            file: file.display().to_string(),
            error: format!("{error:#}"),
        };
        Self { files, errors: failures.iter().map(failure).collect(), total: Sums::of(checked) }
    }
}

impl Sums {
    fn of(checked: &[Checked]) -> Self {
        let measured: Vec<_> = checked.iter().filter_map(|one| one.model.as_ref().ok()).collect();
        let pooled = |of: &dyn Fn(&super::measure::Measured) -> GapSummary| {
            measured.iter().map(|measured| of(measured)).reduce(GapSummary::merge)
        };
        let largest = |numbers: &mut dyn Iterator<Item = f64>| {
            numbers.reduce(|a, b| if a.is_nan() || a > b { a } else { b })
        };
        Self {
            stats: checked.iter().map(|one| one.facts.account.stats).reduce(|a, b| a + b),
            compressed_gap: pooled(&|measured| measured.gap(&measured.compressed).all),
            full_gap: pooled(&|measured| measured.gap(&measured.full).all),
            max_logp_difference: largest(
                &mut measured.iter().map(|one| one.equivalence.max_logp_difference),
            ),
            max_relative_gradient_error: largest(
                &mut measured.iter().map(|one| one.equivalence.relative_gradient_error),
            ),
        }
    }
}

/// The sums for a person.
pub(crate) fn print(checked: &[Checked]) -> Result<()> {
    let sums = Sums::of(checked);
    let Some(stats) = sums.stats else { return Ok(()) };
    output::line(format!(
        "\ntotal of {} files: {} evictions\n",
        checked.len(),
        output::size(stats.evictions)
    ))?;
    let account = pleach_layout::Account { stats, evictions: Vec::new() };
    let summed = |of: fn(&super::facts::Facts) -> ConditioningSummary| {
        checked
            .iter()
            .map(|one| of(&one.facts))
            .reduce(ConditioningSummary::merge)
            .unwrap_or_default()
    };
    let (compressed, full) = (summed(|facts| facts.compressed), summed(|facts| facts.full));
    let conditioning = |kind| match kind {
        LayoutKind::Compressed => compressed,
        LayoutKind::Full => full,
        LayoutKind::Packed | LayoutKind::Segments => ConditioningSummary::default(),
    };
    output::line(
        super::table::layouts_table(&account, &super::table::conditioning_columns(conditioning))
            .trim_fmt(),
    )?;
    for (name, gap) in [("compressed", sums.compressed_gap), ("full", sums.full_gap)] {
        if let Some(gap) = gap {
            let (mean, max, signed) = (gap.mean, gap.max, gap.signed_mean);
            output::line(format!(
                "gap of {name}: mean {mean:.4}, max {max:.4}, signed {signed:.4} nats"
            ))?;
        }
    }
    if let (Some(logp), Some(gradients)) =
        (sums.max_logp_difference, sums.max_relative_gradient_error)
    {
        output::line(format!(
            "packed against segments or replay: max |difference of log p| {logp:.1e} nats, gradients {gradients:.1e}"
        ))?;
    }
    Ok(())
}

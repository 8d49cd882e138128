//! The report as tables for a person.
use anyhow::Result;
use pleach_harness::UsageCheck;
use pleach_layout::{Account, Certificate, ConditioningSummary, LayoutKind};
use pleach_train::diagnostics::{Gap, GapSummary};
use pleach_tree::{ByKind, CacheSemantics};

use super::facts::Facts;
use super::measure::{Measured, Skipped};
use super::{Checked, gaps};
use crate::input::Loaded;
use crate::output;

/// A column that a caller adds to the table of layouts.
pub(crate) struct Column<'a> {
    pub(crate) title: &'static str,
    pub(crate) cell: Box<dyn Fn(LayoutKind) -> String + 'a>,
}

/// Everything about one file.
pub(super) fn file(checked: &Checked) -> Result<()> {
    heading(&checked.loaded)?;
    let measured = checked.model.as_ref().ok();
    let gap =
        |measured: &Measured| (measured.gap(&measured.compressed), measured.gap(&measured.full));
    layouts(&checked.facts, measured.map(gap).as_ref())?;
    evictions(&checked.facts.account)?;
    let cache = checked.loaded.tree.header().cache;
    certificate(&checked.facts.account, &checked.facts.certificate, cache)?;
    for (rollout, facts) in &checked.rollouts {
        let gap = |measured: &Measured| {
            let eras = gaps::of_rollout(&checked.loaded.tree, rollout, &measured.eras);
            let of = |layout| Gap::new(&measured.exact, layout, &eras);
            (of(&measured.compressed), of(&measured.full))
        };
        output::line(format!("\nrollout {rollout}\n"))?;
        layouts(facts, measured.map(gap).as_ref())?;
        evictions(&facts.account)?;
    }
    match &checked.model {
        Ok(measured) => model(measured),
        Err(skipped) => self::skipped(skipped),
    }
}

/// What the file is and how it was read.
pub(crate) fn heading(loaded: &Loaded) -> Result<()> {
    let header = loaded.tree.header();
    let version =
        header.harness_version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    let fidelity = format!("{:?}", header.fidelity).to_lowercase();
    let cache = match header.cache {
        CacheSemantics::Reprefill => "reprefill",
        CacheSemantics::KvEvict => "kv_evict",
    };
    output::line(format!(
        "{}\n  {}{version}, fidelity {fidelity}, cache {cache}",
        loaded.name, header.harness
    ))?;
    for note in &loaded.notes {
        output::line(format!("  {note}"))?;
    }
    if let Some(usage) = &loaded.usage {
        output::line(format!("  hidden context: {}", self::usage(usage)))?;
    }
    output::line("")
}

fn layouts(facts: &Facts, gap: Option<&(Gap, Gap)>) -> Result<()> {
    let mut columns = Vec::from(conditioning_columns(|kind| facts.conditioning(kind)));
    if let Some((compressed, full)) = gap {
        let of = move |kind: LayoutKind, number: fn(&GapSummary) -> f64| match kind {
            LayoutKind::Compressed => nats(number(&compressed.all)),
            LayoutKind::Full => nats(number(&full.all)),
            LayoutKind::Packed | LayoutKind::Segments => "0".to_string(),
        };
        columns.push(Column {
            title: "gap mean",
            cell: Box::new(move |kind| of(kind, |gap| gap.mean)),
        });
        columns.push(Column { title: "max", cell: Box::new(move |kind| of(kind, |gap| gap.max)) });
        columns.push(Column {
            title: "signed",
            cell: Box::new(move |kind| of(kind, |gap| gap.signed_mean)),
        });
    }
    output::line(layouts_table(&facts.account, &columns).trim_fmt())
}

/// Columns of what each layout's prefixes lack and have too much.
pub(super) fn conditioning_columns<'a>(
    of: impl Fn(LayoutKind) -> ConditioningSummary + Copy + 'a,
) -> [Column<'a>; 2] {
    let missing = move |kind| mean_max(of(kind).mean_missing, of(kind).max_missing);
    let leaked = move |kind| mean_max(of(kind).mean_leaked, of(kind).max_leaked);
    [
        Column { title: "missing", cell: Box::new(missing) },
        Column { title: "leaked", cell: Box::new(leaked) },
    ]
}

/// The sizes of the layouts, one a row.
pub(crate) fn layouts_table(account: &Account, columns: &[Column<'_>]) -> comfy_table::Table {
    let fixed = ["layout", "passes", "tokens", "pairs", "supervised", "coverage"];
    let mut table =
        output::table(fixed.into_iter().chain(columns.iter().map(|column| column.title)));
    for kind in LayoutKind::ALL {
        let Some(size) = account.layout(kind) else { continue };
        let coverage = account
            .coverage(kind)
            .map_or_else(String::new, |coverage| format!("{:.1} %", 100.0 * coverage));
        let cells = [
            kind.name().to_string(),
            output::size(size.sequences),
            output::size(size.tokens),
            output::count(size.pairs),
            output::size(size.supervised),
            coverage,
        ];
        table.add_row(cells.into_iter().chain(columns.iter().map(|column| (column.cell)(kind))));
    }
    table
}

/// What each eviction took out.
pub(crate) fn evictions(account: &Account) -> Result<()> {
    const SHOWN: usize = 12;
    let (by_template, by_harness): (Vec<_>, Vec<_>) =
        account.evictions.iter().partition(|eviction| eviction.chat_template);
    let plural = if by_harness.len() == 1 { "" } else { "s" };
    output::line(format!("\n{} eviction{plural}", output::size(by_harness.len())))?;
    if !by_harness.is_empty() {
        let mut table =
            output::table(["  context", "before", "removed", "added", "by", "replaced by", ""]);
        for eviction in by_harness.iter().take(SHOWN) {
            let by = eviction.by.as_ref().map_or(String::new(), |by| match (by.kind, &by.name) {
                (ByKind::Rule, Some(name)) => name.clone(),
                (kind, _) => snake(kind),
            });
            let kind = eviction.replacement.map_or_else(|| "none".to_string(), snake);
            let trigger = eviction.trigger.map_or_else(String::new, snake);
            let (before, removed, added) = (eviction.before, eviction.removed, eviction.added);
            let numbers = [
                format!("  {}", eviction.context),
                output::size(before),
                output::size(removed),
                output::size(added),
            ];
            table.add_row(numbers.into_iter().chain([by, kind, trigger]));
        }
        output::line(table.trim_fmt())?;
        if by_harness.len() > SHOWN {
            output::line(format!("  ... and {} more", output::size(by_harness.len() - SHOWN)))?;
        }
    }
    if !by_template.is_empty() {
        let removed: usize = by_template.iter().map(|eviction| eviction.removed).sum();
        let (count, removed) = (output::size(by_template.len()), output::size(removed));
        output::line(format!(
            "and {count} times the chat template renders earlier turns differently ({removed} tokens)"
        ))?;
    }
    Ok(())
}

/// What exactness costs, and whether it was needed.
pub(crate) fn certificate(
    account: &Account,
    certificate: &Certificate,
    cache: CacheSemantics,
) -> Result<()> {
    if cache == CacheSemantics::KvEvict {
        return output::line(
            "\nkeys and values are evicted in place: every token once, in the order of processing, is exact",
        );
    }
    let (trie, union) = (account.stats.packed.tokens, certificate.union_tokens);
    let verdict = if certificate.union_is_exact {
        "exact under reprefill: no token is read behind two different prefixes".to_string()
    } else {
        format!(
            "not exact under reprefill: {} tokens are read behind two or more different prefixes",
            output::size(certificate.copied)
        )
    };
    output::line(format!("\nunion mask ({} tokens): {verdict}", output::size(union)))?;
    match trie.checked_sub(union) {
        Some(more) => {
            output::line(format!("exactness costs {} tokens beyond the union", output::size(more)))?
        }
        None => output::line(format!(
            "the trie is {} tokens smaller: rollouts share equal prefixes",
            output::size(union - trie)
        ))?,
    }
    if let Some((tokens, pairs)) = account.ideal_speed_up() {
        let (low, high) = (tokens.min(pairs), tokens.max(pairs));
        output::line(format!(
            "ideal speed-up of packed over segments: {low:.2} to {high:.2} times"
        ))?;
    }
    Ok(())
}

fn model(measured: &Measured) -> Result<()> {
    let equivalence = &measured.equivalence;
    output::line(format!(
        "\n{} on {}, {}",
        measured.model,
        measured.device,
        equivalence.dtype.name()
    ))?;
    by_eviction(
        "compressed, by the next eviction",
        &measured.gap(&measured.compressed).until_eviction,
    )?;
    by_eviction("full, by the last eviction", &measured.gap(&measured.full).since_eviction)?;
    if let Some(union) = &measured.union {
        let gap = measured.gap(union).all;
        let (mean, max) = (nats(gap.mean), nats(gap.max));
        output::line(format!(
            "union mask against live views: mean {mean}, max {max}, signed {} nats",
            nats(gap.signed_mean)
        ))?;
    }
    if let Some(recorded) = measured.recorded_gap() {
        let (mean, max) = (nats(recorded.mean), nats(recorded.max));
        let (terms, signed) = (output::size(recorded.terms), nats(recorded.signed_mean));
        output::line(format!(
            "live views against {terms} recorded log-probabilities: mean {mean}, max {max}, signed {signed} nats"
        ))?;
    }
    if let Some(certificate) = &measured.sdcc {
        super::sdcc::print(certificate)?;
    }
    let verdict = if measured.holds() { "equal to rounding" } else { "NOT EQUAL" };
    output::line(format!(
        "packed against {}: {verdict}, max |difference of log p| {:.1e} nats, relative gradient error {:.1e}",
        measured.against, equivalence.max_logp_difference, equivalence.relative_gradient_error
    ))?;
    match equivalence.likely_cause() {
        Some(cause) => output::line(format!("likely cause: {cause}")),
        None => Ok(()),
    }
}

fn by_eviction(title: &str, gaps: &[pleach_train::diagnostics::EvictionGap]) -> Result<()> {
    const SHOWN: usize = 12;
    if gaps.iter().all(|gap| gap.eviction.is_none()) {
        return Ok(());
    }
    let mut table = output::table([title, "terms", "gap mean", "max", "signed"]);
    for gap in gaps.iter().take(SHOWN) {
        let name = gap
            .eviction
            .map_or_else(|| "  none".to_string(), |context| format!("  context {context}"));
        let of = gap.gap;
        table.add_row([
            name,
            output::size(of.terms),
            nats(of.mean),
            nats(of.max),
            nats(of.signed_mean),
        ]);
    }
    output::line(table.trim_fmt())?;
    if gaps.len() > SHOWN {
        output::line(format!("  ... and {} more", output::size(gaps.len() - SHOWN)))?;
    }
    Ok(())
}

fn skipped(skipped: &Skipped) -> Result<()> {
    match too_large(skipped) {
        Some(sentence) => output::line(format!("\n{sentence}")),
        None => Ok(()),
    }
}

/// Why the model part was left out, where it would not have fitted into memory.
pub(super) fn too_large(skipped: &Skipped) -> Option<String> {
    let Skipped::TooLarge { needed, available, clip } = skipped else { return None };
    let (needed, available) = (output::bytes(*needed), output::bytes(*available));
    let advice = match clip {
        Some(clip) => format!("--clip {clip} would fit"),
        None => "no --clip would fit; use a smaller model or --no-model".to_string(),
    };
    Some(format!(
        "the model part needs about {needed} of memory, {available} are free: left out; {advice}"
    ))
}

/// How reconstructed requests compare with the sizes that the harness recorded.
pub(super) fn usage(usage: &UsageCheck) -> String {
    let hidden: Vec<String> = usage
        .eras
        .iter()
        .map(|era| output::count(era.hidden_tokens.max(0.0).round() as u64))
        .collect();
    let calls: usize = usage.eras.iter().map(|era| era.calls.len()).sum();
    let deviating =
        usage.eras.iter().flat_map(|era| &era.calls).filter(|call| call.deviates).count();
    let (calls, deviating) = (output::size(calls), output::size(deviating));
    format!(
        "about {} tokens per request by era are not in the file; {deviating} of {calls} calls deviate",
        hidden.join(" / ")
    )
}

fn mean_max(mean: f64, max: u32) -> String {
    if max == 0 { "0".to_string() } else { format!("{mean:.1} / {}", output::count(max)) }
}

pub(super) fn nats(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_string(),
        size if size < 1e-4 => format!("{value:.0e}"),
        _ => format!("{value:.4}"),
    }
}

/// A name as the formats write it.
pub(super) fn snake(value: impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_string))
        .unwrap_or_default()
}

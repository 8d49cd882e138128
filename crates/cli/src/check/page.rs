//! The report as a page.
use anyhow::{Context, Result};
use pleach_layout::{LayoutKind, Layouts};
use pleach_picture::{Picture, PictureOptions, Theme};
use pleach_train::diagnostics::{EvictionGap, Gap};

use pleach_tree::CacheSemantics;

use super::facts::Facts;
use super::measure::{Measured, Skipped};
use super::report::triples;
use super::{Checked, gaps, table};
use crate::html::{self, EvictionRow, Fact, LayoutRow, Mask, Page, Per};
use crate::input::Loaded;

/// The page of one file.
pub(super) fn render(checked: &Checked) -> Result<String> {
    let measured = checked.model.as_ref().ok();
    let gap =
        measured.map(|measured| (measured.gap(&measured.compressed), measured.gap(&measured.full)));
    let page = Page {
        file: checked.loaded.name.clone(),
        facts: facts(checked, measured),
        notices: notices(checked),
        layouts: rows(&checked.facts, gap.as_ref()),
        equivalence: measured.map(|measured| html::Equivalence {
            against: measured.against.into(),
            max_logp_difference: measured.equivalence.max_logp_difference,
            relative_gradient_error: measured.equivalence.relative_gradient_error,
            dtype: measured.equivalence.dtype.name().to_owned(),
            holds: measured.holds(),
        }),
        rollouts: checked
            .rollouts
            .iter()
            .map(|(name, facts)| rollout(checked, measured, name, facts))
            .collect(),
        gaps: measured.map(|measured| along(checked, measured)),
        mask: Some(mask(&checked.loaded)?),
        evictions: evictions(checked, gap.as_ref()),
    };
    html::render(&page).context("the page cannot be rendered")
}

fn facts(checked: &Checked, measured: Option<&Measured>) -> Vec<Fact> {
    let header = checked.loaded.tree.header();
    let version =
        header.harness_version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    let mut facts = vec![
        Fact::new("harness", format!("{}{version}", header.harness)),
        Fact::new("fidelity", table::snake(header.fidelity)),
        Fact::new("cache", table::snake(header.cache)),
    ];
    if header.cache == CacheSemantics::Reprefill {
        facts.push(Fact::new("tokens beyond the union", checked.facts.surcharge().to_string()));
    }
    if let Some(tokenizer) = &header.tokenizer {
        facts.push(Fact::new("tokenizer", &tokenizer.id));
    }
    if let Some(measured) = measured {
        facts.push(Fact::new(
            "model",
            format!(
                "{} on {}, {}",
                measured.model,
                measured.device,
                measured.equivalence.dtype.name()
            ),
        ));
    }
    if let Some(union) =
        measured.and_then(|measured| Some(measured.gap(measured.union.as_ref()?).all))
    {
        facts.push(Fact::new(
            "union mask",
            format!("mean gap {:.4}, max {:.4} nats", union.mean, union.max),
        ));
    }
    if let Some(usage) = &checked.loaded.usage {
        facts.push(Fact::new("hidden context", table::usage(usage)));
    }
    facts
}

fn notices(checked: &Checked) -> Vec<String> {
    let mut notices = checked.loaded.notes.clone();
    match &checked.model {
        Err(skipped @ Skipped::TooLarge { .. }) => notices.extend(table::too_large(skipped)),
        Err(Skipped::NotAsked) => notices.push("no model was asked".into()),
        Ok(_) => {}
    }
    notices.extend(checked.loaded.found.iter().map(ToString::to_string));
    notices
}

fn rows(facts: &Facts, gap: Option<&(Gap, Gap)>) -> Vec<LayoutRow> {
    LayoutKind::ALL.into_iter().filter_map(|kind| row(facts, kind, gap)).collect()
}

fn row(facts: &Facts, kind: LayoutKind, gap: Option<&(Gap, Gap)>) -> Option<LayoutRow> {
    let size = facts.account.layout(kind)?;
    let conditioning = facts.conditioning(kind);
    let nothing = html::Gap { mean: 0.0, max: 0.0, signed: 0.0 };
    let gap = gap.map(|(compressed, full)| match kind {
        LayoutKind::Packed | LayoutKind::Segments => nothing,
        LayoutKind::Compressed => html::Gap {
            mean: compressed.all.mean,
            max: compressed.all.max,
            signed: compressed.all.signed_mean,
        },
        LayoutKind::Full => {
            html::Gap { mean: full.all.mean, max: full.all.max, signed: full.all.signed_mean }
        }
    });
    Some(LayoutRow {
        name: kind.name().into(),
        exact: matches!(kind, LayoutKind::Packed | LayoutKind::Segments),
        passes: size.sequences,
        tokens: size.tokens,
        pairs: size.pairs,
        supervised: size.supervised,
        coverage: facts.account.coverage(kind)?,
        missing: Per { mean: conditioning.mean_missing, max: f64::from(conditioning.max_missing) },
        leaked: Per { mean: conditioning.mean_leaked, max: f64::from(conditioning.max_leaked) },
        gap,
    })
}

fn rollout(
    checked: &Checked,
    measured: Option<&Measured>,
    name: &str,
    facts: &Facts,
) -> html::Rollout {
    let gap = measured.map(|measured| {
        let eras = gaps::of_rollout(&checked.loaded.tree, name, &measured.eras);
        let of = |layout| Gap::new(&measured.exact, layout, &eras);
        (of(&measured.compressed), of(&measured.full))
    });
    html::Rollout {
        name: name.into(),
        evictions: facts.account.stats.evictions,
        layouts: rows(facts, gap.as_ref()),
    }
}

fn evictions(checked: &Checked, gap: Option<&(Gap, Gap)>) -> Vec<EvictionRow> {
    let per = |gaps: &[EvictionGap], context: u32| {
        let found = gaps.iter().find(|gap| gap.eviction == Some(context))?;
        Some(Per { mean: found.gap.mean, max: found.gap.max })
    };
    let row = |eviction: &pleach_layout::Eviction| EvictionRow {
        compressed: gap
            .and_then(|(compressed, _)| per(&compressed.until_eviction, eviction.context)),
        full: gap.and_then(|(_, full)| per(&full.since_eviction, eviction.context)),
        ..EvictionRow::new(eviction)
    };
    checked.facts.account.evictions.iter().map(row).collect()
}

fn along(checked: &Checked, measured: &Measured) -> html::Gaps {
    let exact = triples(&measured.exact);
    let with = |gaps: html::Gaps, name, layout| gaps.with(name, &exact, &triples(layout));
    let gaps = with(html::Gaps::new(&exact), "compressed", &measured.compressed);
    let mut gaps = with(gaps, "full", &measured.full);
    if let Some(union) = &measured.union {
        gaps = with(gaps, "union mask", union);
    }
    gaps.marked(&measured.eras, &checked.facts.account.evictions)
}

fn mask(loaded: &Loaded) -> Result<Mask> {
    let layouts = Layouts::new(&loaded.tree)?;
    let options = PictureOptions { theme: Theme::Auto, ..PictureOptions::default() };
    Ok(Mask::new(&Picture::new(&layouts, &layouts.packed()?, &options)?)?)
}

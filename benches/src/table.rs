//! A report as tables, for a terminal and in Markdown.
use anyhow::Result;
use comfy_table::CellAlignment;

use crate::aims;
use crate::blocks::{Section, blocks};
use crate::environment::Environment;
use crate::output;
use crate::peers;
use crate::report::Report;

/// How it was measured.
const METHOD: &str = "\
In the tables of attention, times are medians, with half their range; every sample stands beside a sample of the product taken less than a second before, the \
device is synchronised inside the clock, and compilation, plans and masks are made outside it. `rate` is the time of the visible \
pairs' flops (4 d a pair and head forward, 14 d with backward) at the product's speed over the measured time. A training step includes making its batch, mask and plan.";

/// Tables for a person.
pub(crate) fn plain(report: &Report) -> Result<()> {
    output::line(machine(&report.environment))?;
    for block in blocks(report) {
        let mut table = output::table(block.header);
        for column in table.column_iter_mut().take(block.names) {
            column.set_cell_alignment(CellAlignment::Left);
        }
        for row in block.rows {
            table.add_row(row);
        }
        output::line(format!("\n{}\n{}", block.title, table.trim_fmt()))?;
        for note in block.notes {
            output::line(format!("  {note}"))?;
        }
    }
    Ok(())
}

/// The page of results.
pub(crate) fn markdown(report: &Report) -> Result<()> {
    output::line(format!("# Benches\n\n{}\n\n{METHOD}", machine(&report.environment)))?;
    for block in blocks(report) {
        print_block(&block)?;
    }
    print_block(&peers::section()?)?;
    let aims = aims::of(report)?;
    if !aims.is_empty() {
        let met = |met| if met { "met" } else { "missed" }.to_owned();
        print_block(&Section {
            title: "What it aims at".into(),
            notes: Vec::new(),
            names: 1,
            header: vec!["on two CPU cores, float32, 8 heads of 64", "aim", "measured", ""],
            rows: aims
                .into_iter()
                .map(|aim| vec![aim.what, aim.aim, aim.found, met(aim.met)])
                .collect(),
        })?;
    }
    Ok(())
}

fn print_block(block: &Section) -> Result<()> {
    let line = |cells: Vec<&str>| format!("| {} |", cells.join(" | "));
    let rule =
        (0..block.header.len()).map(|column| if column < block.names { "---" } else { "---:" });
    output::line(format!(
        "\n## {}\n\n{}\n{}",
        block.title,
        line(block.header.clone()),
        line(rule.collect())
    ))?;
    for row in &block.rows {
        output::line(line(row.iter().map(String::as_str).collect()))?;
    }
    for (index, note) in block.notes.iter().enumerate() {
        output::line(if index == 0 { format!("\n- {note}") } else { format!("- {note}") })?;
    }
    Ok(())
}

fn machine(environment: &Environment) -> String {
    let commit =
        environment.commit.as_ref().map_or_else(String::new, |commit| format!(", commit {commit}"));
    let device = match &environment.device_description {
        Some(name) => format!("{} ({name})", environment.device),
        None => environment.device.to_owned(),
    };
    format!(
        "`{}`\n\npleach {}{commit}, {}: {}, {} cores, {} threads, {}, {}, load {:.1}. Device {device}, {}, {} query and {} \
         key/value heads of {}; floor: a product of {}^3.",
        environment.command,
        environment.version,
        environment.date,
        environment.cpu,
        environment.cores,
        environment.threads,
        output::bytes(environment.memory_bytes),
        environment.system,
        environment.load_average,
        environment.dtype,
        environment.heads,
        environment.kv_heads,
        environment.head_dim,
        environment.product,
    )
}

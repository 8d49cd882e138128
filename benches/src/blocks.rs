//! A report cut into tables.
use std::collections::BTreeSet;

use pleach_kernels::problem::NamedProblem;

use crate::attention::AttentionRow;
use crate::inputs::{Pass, Way};
use crate::memory::Peak;
use crate::output;
use crate::report::Report;

/// A table with its title and what has to be said beside it.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) notes: Vec<String>,
    pub(crate) header: Vec<&'static str>,
    /// Columns at the left that hold names; the others hold numbers.
    pub(crate) names: usize,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Everything that was measured, as tables.
pub(crate) fn blocks(report: &Report) -> Vec<Section> {
    let lengths: BTreeSet<usize> = report.rows.iter().map(|row| row.tokens).collect();
    let mut blocks: Vec<Section> =
        lengths.into_iter().map(|tokens| attention(report, tokens)).collect();
    if !report.memory.is_empty() {
        blocks.push(memory(report));
    }
    blocks.push(schedule(report));
    if !report.step.is_empty() {
        blocks.push(step(report));
    }
    blocks
}

fn attention(report: &Report, tokens: usize) -> Section {
    let header = vec![
        "problem",
        "way",
        "forward",
        "rate",
        "x tree",
        "backward",
        "both",
        "rate",
        "x tree",
        "memory",
        "memory, both",
        "samples",
    ];
    let mut rows = Vec::new();
    let mut notes = vec!["backward: the difference of the medians of both and forward".to_owned()];
    for problem in NamedProblem::ALL {
        let tree = Pass::ALL.map(|pass| report.find(problem, tokens, Way::Tree, pass));
        let [Some(forward), Some(both)] = tree else { continue };
        for way in Way::ALL {
            let row = [forward, both].map(|row| report.beside(row, way));
            if let [Some(of_forward), Some(of_both)] = row {
                notes.extend(not_run([of_forward, of_both]));
                rows.push(way_cells([of_forward, of_both], [forward, both]));
            }
        }
        rows.push(floor_cells(report, [forward, both]));
    }
    notes.push(format!(
        "memory beyond inputs, outputs and their gradients: {}",
        report.memory_method
    ));
    Section {
        title: format!("Attention, {} tokens", output::size(tokens)),
        notes,
        header,
        names: 2,
        rows,
    }
}

/// Why a way has no times.
fn not_run([forward, both]: [&AttentionRow; 2]) -> Vec<String> {
    let note = |passes: &str, reason: &str| {
        format!("{} on {}, {passes}: not run, {reason}", forward.way.name(), forward.problem)
    };
    match (&forward.skipped, &both.skipped) {
        (Some(first), Some(second)) if first == second => vec![note("forward and both", first)],
        (first, second) => {
            let named = [(label(Pass::Forward), first), (label(Pass::ForwardBackward), second)];
            named
                .into_iter()
                .filter_map(|(passes, reason)| Some(note(passes, reason.as_ref()?)))
                .collect()
        }
    }
}

fn label(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => "forward",
        Pass::ForwardBackward => "both",
    }
}

fn way_cells([forward, both]: [&AttentionRow; 2], tree: [&AttentionRow; 2]) -> Vec<String> {
    let name = match forward.way_tokens == forward.tokens {
        true => forward.way.name().to_owned(),
        false => format!("{} ({} tokens)", forward.way.name(), output::size(forward.way_tokens)),
    };
    let times = |row: &AttentionRow, tree: &AttentionRow| {
        let factor = row.time_s.zip(tree.time_s).map(|(time, tree)| time / tree);
        [timed(row.time_s, row.least_s, row.greatest_s), number(row.rate), number(factor)]
    };
    let [forward_ms, forward_rate, forward_factor] = times(forward, tree[0]);
    let [both_ms, both_rate, both_factor] = times(both, tree[1]);
    let backward = timed(both.backward_difference_s, None, None);
    let bytes = |row: &AttentionRow| row.peak_bytes.map_or_else(dash, output::bytes);
    let samples = format!("{}, {}", forward.repeats, both.repeats);
    let [forward_bytes, both_bytes] = [bytes(forward), bytes(both)];
    vec![
        forward.problem.to_string(),
        name,
        forward_ms,
        forward_rate,
        forward_factor,
        backward,
        both_ms,
        both_rate,
        both_factor,
        forward_bytes,
        both_bytes,
        samples,
    ]
}

fn floor_cells(report: &Report, tree: [&AttentionRow; 2]) -> Vec<String> {
    let factor =
        |row: &AttentionRow| number(row.floor_s.zip(row.time_s).map(|(floor, time)| floor / time));
    let time = |row: &AttentionRow| timed(row.floor_s, None, None);
    let [forward, both] = tree;
    let backward = forward.floor_s.zip(both.floor_s).map(|(forward, both)| both - forward);
    let one = || "1.00".to_owned();
    let cells = [
        time(forward),
        one(),
        factor(forward),
        timed(backward, None, None),
        time(both),
        one(),
        factor(both),
    ];
    let flops =
        Pass::Forward.flops(report.environment.heads, report.environment.head_dim, forward.pairs);
    let speed = forward.floor_s.map_or_else(dash, |floor| format!("{:.0}", flops / floor * 1e-9));
    let named = [forward.problem.to_string(), format!("floor: a product at {speed} GFLOP/s")];
    named.into_iter().chain(cells).chain([dash(), dash(), dash()]).collect()
}

fn memory(report: &Report) -> Section {
    let name = |pass| label(pass).to_owned();
    let cells = |peak: &Peak| {
        vec![
            peak.problem.clone(),
            output::size(peak.tokens),
            name(peak.pass),
            output::bytes(peak.peak_bytes),
        ]
    };
    Section {
        title: "Memory of tree attention beyond inputs, outputs and their gradients".into(),
        notes: vec![report.memory_method.clone()],
        header: vec!["problem", "tokens", "passes", "most"],
        names: 1,
        rows: report.memory.iter().map(cells).collect(),
    }
}

fn schedule(report: &Report) -> Section {
    let rows = report.schedule.iter().map(|row| {
        let fraction = format!("{:.1} %", row.computed_fraction * 100.0);
        let (live, partial) = (output::count(row.live_tiles), output::count(row.partial_tiles));
        let (plan, overhead) =
            (timed(Some(row.plan_s), None, None), format!("{:.3}", row.block_overhead));
        vec![
            row.problem.to_string(),
            output::size(row.tokens),
            plan,
            live,
            partial,
            overhead,
            fraction,
        ]
    });
    Section {
        title: "Schedule".into(),
        notes: vec!["overhead: computed over visible pairs; computed: of tokens x tokens".into()],
        names: 1,
        header: vec!["problem", "tokens", "plan", "live tiles", "partial", "overhead", "computed"],
        rows: rows.collect(),
    }
}

fn step(report: &Report) -> Section {
    let both = |packed: u64, segments: u64| {
        format!("{} / {}", output::count(packed), output::count(segments))
    };
    let rows = report.step.iter().map(|row| {
        vec![
            row.regime.to_string(),
            both(row.packed_tokens as u64, row.segments_tokens as u64),
            both(row.packed_pairs, row.segments_pairs),
            format!("{} in {}", output::size(row.sequences), output::size(row.batches)),
            timed(Some(row.packed_s), Some(row.packed_least_s), Some(row.packed_greatest_s)),
            timed(Some(row.segments_s), None, None),
            format!("{:.2}", row.ratio),
            format!("{:.2}", row.ideal_ratio),
            format!("{:.2}", row.of_ideal),
            format!("{:.3} %", row.schedule_share * 100.0),
            row.repeats.to_string(),
        ]
    });
    Section {
        title: "Training step, packed against segments".into(),
        notes: vec![
            "decoder of 4 layers, width 256, 4 heads of 64, 768 inside the feed-forward block, vocabulary 4,096; forward, token-level \
             negative log-likelihood and backward, no optimiser"
                .into(),
            "ideal: flops of segments over flops of packed: projections by tokens, attention by visible pairs, the head by loss terms"
                .into(),
            "plan: time to plan the mask of packed, of its step".into(),
        ],
        names: 1,
        header: vec![
            "regime", "tokens", "pairs", "rows", "packed", "segments", "speed-up", "ideal", "of ideal", "plan", "samples",
        ],
        rows: rows.collect(),
    }
}

fn dash() -> String {
    "-".to_owned()
}

/// Milliseconds, with half the range in percent where there is one.
fn timed(median: Option<f64>, least: Option<f64>, greatest: Option<f64>) -> String {
    let Some(median) = median else { return dash() };
    let milliseconds = median * 1e3;
    let digits = match milliseconds.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    let spread = match least.zip(greatest) {
        Some((least, greatest)) => format!(" ±{:.0} %", (greatest - least) / 2.0 / median * 100.0),
        None => String::new(),
    };
    format!("{milliseconds:.digits$} ms{spread}")
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(dash, |value| format!("{value:.2}"))
}

//! The training step of a decoder on packed against segments, in regimes that share little and
//! much.
use anyhow::{Context, Result};
use burn::tensor::Device;
use indicatif::ProgressBar;
use pleach_bench::Regime;
use pleach_layout::{Layout, Layouts, Sequence};
use pleach_train::{
    Batch,
    decoder::{Decoder, DecoderConfig, Family},
    memory::Workload,
    objective::NllConfig,
};
use pleach_tree::{BranchTree, ReadOptions};
use serde::Serialize;

use crate::clock::{Spread, sample, warm_up};
use crate::schedule::plan_s;
use crate::setup::Setup;

const VOCABULARY: usize = 4096;
const LAYERS: usize = 4;

/// Seconds that the samples of one regime may take, warm-up apart, before there are fewer of them.
const REGIME_S: f64 = 90.0;

/// The fewest samples of a regime.
const FEWEST: usize = 3;

/// One regime.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct StepRow {
    pub(crate) regime: Regime,
    pub(crate) packed_tokens: usize,
    pub(crate) segments_tokens: usize,
    pub(crate) packed_pairs: u64,
    pub(crate) segments_pairs: u64,
    /// Rows of segments, and the batches that they run in.
    pub(crate) sequences: usize,
    pub(crate) batches: usize,
    pub(crate) terms: usize,
    pub(crate) packed_s: f64,
    pub(crate) packed_least_s: f64,
    pub(crate) packed_greatest_s: f64,
    pub(crate) segments_s: f64,
    pub(crate) repeats: usize,
    /// Median over the rounds of segments' time over packed's.
    pub(crate) ratio: f64,
    /// Flops of segments over flops of packed.
    pub(crate) ideal_ratio: f64,
    pub(crate) of_ideal: f64,
    pub(crate) schedule_s: f64,
    /// Planning over the whole step of packed.
    pub(crate) schedule_share: f64,
}

/// The decoder of the step: 4 layers, width 256, 4 heads of 64, 768 inside the feed-forward block,
/// vocabulary 4,096.
fn decoder_config() -> DecoderConfig {
    DecoderConfig {
        hidden_size: 256,
        intermediate_size: 768,
        heads: 4,
        kv_heads: 4,
        head_dim: 64,
        ..DecoderConfig::small(Family::Llama, VOCABULARY, LAYERS)
    }
}

/// Every regime at about `tokens` packed tokens.
pub(crate) fn measure(
    setup: &Setup,
    tokens: usize,
    progress: &ProgressBar,
) -> Result<Vec<StepRow>> {
    let device = setup.device.clone().autodiff();
    let decoder = Decoder::seeded(decoder_config(), 0, setup.dtype.of_decoder()?, &device)?;
    let mut rows = Vec::new();
    for regime in Regime::ALL {
        progress.set_message(format!("training step, {regime}"));
        progress.tick();
        let records = regime.records(tokens, VOCABULARY as u32)?;
        let (tree, _) = BranchTree::from_records(records, regime.name(), ReadOptions::STRICT)?;
        let layouts = Layouts::new(&tree)?;
        rows.push(measure_regime(
            setup,
            &decoder,
            regime,
            [layouts.packed()?, layouts.segments()?],
        )?);
    }
    Ok(rows)
}

fn measure_regime(
    setup: &Setup,
    decoder: &Decoder,
    regime: Regime,
    layouts: [Layout; 2],
) -> Result<StepRow> {
    let [packed, segments] = &layouts;
    let run = |layout: &Layout| step(decoder, &setup.device, &layout.sequences);
    let warm = [warm_up(&setup.device, || run(packed))?, warm_up(&setup.device, || run(segments))?];
    let round_s: f64 = warm.iter().map(|warm| warm.run_s).sum();
    let affordable = (REGIME_S / round_s).floor().max(FEWEST as f64) as usize;
    let repeats = setup.repeats.min(affordable);
    let (mut packed_s, mut segments_s, mut plans_s) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..repeats {
        packed_s.push(sample(&setup.device, warm[0].inner, || run(packed))?);
        segments_s.push(sample(&setup.device, warm[1].inner, || run(segments))?);
        plans_s.push(
            packed.sequences.iter().map(|row| plan_s(setup, &row.ends)).sum::<Result<f64>>()?,
        );
    }
    let ratios: Vec<f64> =
        packed_s.iter().zip(&segments_s).map(|(packed, segments)| segments / packed).collect();
    let spread = |samples: &[f64]| Spread::of(samples).context("give at least one repeat");
    let (time, ratio, schedule_s) =
        (spread(&packed_s)?, spread(&ratios)?.median, spread(&plans_s)?.median);
    let ideal_ratio = flops(decoder.config(), segments) / flops(decoder.config(), packed);
    Ok(StepRow {
        regime,
        packed_tokens: packed.tokens(),
        segments_tokens: segments.tokens(),
        packed_pairs: packed.pairs(),
        segments_pairs: segments.pairs(),
        sequences: segments.sequences.len(),
        batches: Workload::of(&segments.sequences).len(),
        terms: packed.supervised(),
        packed_s: time.median,
        packed_least_s: time.least,
        packed_greatest_s: time.greatest,
        segments_s: spread(&segments_s)?.median,
        repeats,
        ratio,
        ideal_ratio,
        of_ideal: ratio / ideal_ratio,
        schedule_s,
        schedule_share: schedule_s / time.median,
    })
}

/// Forward, negative log-likelihood and backward of all loss terms, in the batches that the check
/// of equivalence uses; no optimiser.
fn step(decoder: &Decoder, device: &Device, sequences: &[Sequence]) -> Result<()> {
    let nll = NllConfig::new().init();
    let mut rest: Vec<&Sequence> =
        sequences.iter().filter(|sequence| !sequence.is_empty()).collect();
    for workload in Workload::of(sequences) {
        let after = rest.split_off(workload.rows.min(rest.len()));
        let batch = Batch::new(&rest, device)?;
        let gradients = nll.forward(decoder, &batch)?.loss.backward();
        drop(gradients);
        rest = after;
    }
    Ok(())
}

/// Flops of the products of a step: projections by tokens, attention by visible pairs, the head by
/// loss terms.
///
/// A product costs twice as much backward as forward; attention computes its scores once more.
fn flops(config: &DecoderConfig, layout: &Layout) -> f64 {
    let [outer, inner, head_dim] =
        [config.hidden_size, config.intermediate_size, config.head_dim].map(|size| size as f64);
    let (q, kv) = (config.heads as f64 * head_dim, config.kv_heads as f64 * head_dim);
    let weights = outer * (2.0 * q + 2.0 * kv + 3.0 * inner);
    let layers = config.layers as f64;
    let projections = 6.0 * layers * weights * layout.tokens() as f64;
    let attention = 14.0 * layers * q * layout.pairs() as f64;
    let head = 6.0 * config.vocab_size as f64 * outer * layout.supervised() as f64;
    projections + attention + head
}

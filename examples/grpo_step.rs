//! GRPO in a burn training loop of one's own, over a group of rollouts whose contexts were cleared
//! on the way: one packed pass trains every sampled token of the group under what the policy saw.
//!
//! ```sh
//! cargo run --release -p pleach --example grpo_step [RECORDS.jsonl]
//! ```
use anyhow::{Result, ensure};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{DType, Device};
use pleach::layout::{LayoutKind, Layouts};
use pleach::train::{
    Batch, CausalModel,
    advantage::{AdvantageConfig, Timelines, group_advantages},
    backward,
    decoder::{Decoder, DecoderConfig, Family},
    diagnostics::{Health, HealthFigure, RolloutHealth, clip_fractions},
    evaluation::log_probabilities,
    objective::{PolicySignal, Preset},
};
use pleach::tree::{BranchTree, ReadOptions};

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/records/group.jsonl".into());
    let (tree, _) = BranchTree::open(&path, ReadOptions::STRICT)?;
    let layouts = Layouts::new(&tree)?;
    let packed = layouts.packed()?;

    let device = Device::flex().autodiff();
    let mut model =
        Decoder::seeded(DecoderConfig::small(Family::Llama, 258, 2), 0, DType::F32, &device)?;
    let batch = Batch::new(&packed, &device)?;

    let timelines = Timelines::of(&layouts);
    let preset = Preset::supo();
    let rollouts = group_advantages(
        &preset.advantage.unwrap_or_else(AdvantageConfig::new),
        &timelines.outcomes(&layouts)?,
    )?;
    for (timeline, rollout) in timelines.rollouts.iter().zip(&rollouts) {
        let (name, segments) = (&timeline.rollout, timeline.segments());
        println!(
            "{name}: advantage {:+.2}, {segments} segments, trained: {}",
            rollout.advantage, rollout.trained
        );
    }
    let (advantages, terms) = timelines.broadcast(batch.terms(), &rollouts)?;
    // Nothing sampled these rollouts: what a policy would have recorded is what it says now.
    let recorded = log_probabilities(&model, &packed.sequences, &mut |_| {})?
        .iter()
        .map(|term| term.logp)
        .collect();
    let signal = PolicySignal::new(advantages, recorded);

    let policy = preset.policy.init();
    let mut optimizer = AdamWConfig::new().init();
    let mut health = Health {
        rollouts: Some(RolloutHealth::of(
            &layouts,
            LayoutKind::Packed,
            Some((packed.tokens() as u64).pow(2)),
        )?),
        ..Health::default()
    };
    let mut losses = Vec::new();
    for step in 0..6 {
        let output = policy.forward_hidden(&model, model.hidden(&batch)?, &terms, &signal)?;
        health.clipping =
            clip_fractions(&terms, &output.clipped_n.try_to_vec_as::<f64>()?, &layouts.eras())?;
        let loss = output.loss.clone().into_scalar::<f32>();
        let clipped = health.figure(HealthFigure::ClipFraction).unwrap_or_default();
        println!("step {step}: loss {loss:+.4}, {:.0} % of the tokens clipped", 100.0 * clipped);
        losses.push(loss);
        let gradients = GradientsParams::from_grads(backward(&output.loss)?, &model);
        model = optimizer.step(3e-3, model, gradients);
    }
    for figure in HealthFigure::ALL {
        if let Some(value) = health.figure(figure) {
            println!("{}: {value:.3} {}", figure.name(), figure.unit().unwrap_or_default());
        }
    }
    ensure!(losses.last() < losses.first(), "the surrogate did not fall");
    Ok(())
}

//! The packed loss in a plain burn training loop: one forward and one backward pass train every
//! sampled token of a rollout on exactly what the policy saw when it sampled it.
//!
//! ```sh
//! cargo run --release -p pleach --example packed_loss [RECORDS.jsonl]
//! ```
use anyhow::{Result, ensure};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{DType, Device};
use pleach::layout::Layouts;
use pleach::train::{
    Batch, backward,
    decoder::{Decoder, DecoderConfig, Family},
    objective::{NllConfig, Reduction},
};
use pleach::tree::{BranchTree, ReadOptions};

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/records/gate.jsonl".into());
    let (tree, _) = BranchTree::open(&path, ReadOptions::STRICT)?;
    let packed = Layouts::new(&tree)?.packed()?;

    let device = Device::flex().autodiff();
    let mut model =
        Decoder::seeded(DecoderConfig::small(Family::Llama, 258, 2), 0, DType::F32, &device)?;
    let batch = Batch::new(&packed, &device)?;
    let nll = NllConfig::new().with_reduction(Reduction::WeightedMean).init();
    let mut optimizer = AdamWConfig::new().init();

    let mut losses = Vec::new();
    for step in 0..10 {
        let output = nll.forward(&model, &batch)?;
        let loss = output.loss.clone().into_scalar::<f32>();
        println!("step {step}: {loss:.4} nats per sampled token");
        losses.push(loss);
        let gradients = GradientsParams::from_grads(backward(&output.loss)?, &model);
        model = optimizer.step(1e-2, model, gradients);
    }
    ensure!(losses.last() < losses.first(), "the loss did not fall");
    Ok(())
}

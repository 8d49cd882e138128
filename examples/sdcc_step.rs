//! SDCC in a burn training loop of one's own: the student trains on the compressed views that a
//! harness keeps, and is pulled to what the same weights say under the live views, at the tokens
//! where the two differ.
//!
//! ```sh
//! cargo run --release -p pleach --example sdcc_step [RECORDS.jsonl]
//! ```
use anyhow::{Result, ensure};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{DType, Device};
use pleach::layout::Layouts;
use pleach::train::{
    backward,
    decoder::{Decoder, DecoderConfig, Family},
    objective::{Reduction, SdccBatch, SdccConfig, Teacher, certify},
};
use pleach::tree::{BranchTree, ReadOptions};

const STEPS: usize = 10;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/records/gate.jsonl".into());
    let (tree, _) = BranchTree::open(&path, ReadOptions::STRICT)?;
    let layouts = Layouts::new(&tree)?;

    let device = Device::flex().autodiff();
    let mut model =
        Decoder::seeded(DecoderConfig::small(Family::Llama, 258, 2), 0, DType::F32, &device)?;
    let batch = SdccBatch::new(&layouts, &device)?;
    let sdcc = SdccConfig::new().with_reduction(Reduction::WeightedMean).init();
    let mut teacher = Teacher::Live;
    let mut optimizer = AdamWConfig::new().init();

    let before = certify(&model, &model, &layouts)?;
    let mut losses = Vec::new();
    for step in 0..STEPS {
        let lambda = sdcc.lambda(step, STEPS)?;
        let output = sdcc.forward(&model, &teacher, &batch, lambda)?;
        let task = output.task.loss.into_scalar::<f32>();
        let residual = match output.residual {
            Some(residual) => format!("residual {:.4}", residual.loss.into_scalar::<f32>()),
            None => "residual not computed".to_owned(),
        };
        println!(
            "step {step}: task {task:.4}, {residual} at lambda {lambda:.2}, nats per supervised token"
        );
        losses.push(task);
        let gradients = GradientsParams::from_grads(backward(&output.loss)?, &model);
        model = optimizer.step(1e-2, model, gradients);
        teacher.update(&model)?;
    }
    let after = certify(&model, &model, &layouts)?;
    for (name, certificate) in [("before", &before.all), ("after", &after.all)] {
        println!(
            "{name}: {} of {} supervised tokens diverge by at most {:.4} nats; total variation {:.4}, at most {:.4} by Pinsker",
            certificate.coverage.diverging,
            certificate.coverage.supervised,
            certificate.kl_max,
            certificate.total_variation_max,
            certificate.pinsker_max
        );
    }
    println!(
        "{} sampled tokens are not in the compressed walk and are not trained",
        after.all.coverage.untrained()
    );
    ensure!(losses.last() < losses.first(), "the loss did not fall");
    Ok(())
}

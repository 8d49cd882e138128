//! A burn model of one's own, made of burn's own layers, trained on packed trees: it takes the
//! dense mask and the positions.
//!
//! ```sh
//! cargo run --release -p pleach --example own_model [RECORDS.jsonl]
//! ```
use anyhow::{Result, ensure};
use burn::module::Module;
use burn::nn::attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig};
use burn::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Tensor};
use pleach::kernels::dense_mask;
use pleach::layout::Layouts;
use pleach::train::{
    Batch, CausalModel, TrainError, backward,
    equivalence::compare,
    objective::{NllConfig, Reduction},
};
use pleach::tree::{BranchTree, ReadOptions};

const WIDTH: usize = 32;

/// Two blocks of burn's attention with learned positions: nothing in it knows of trees.
#[derive(Module, Debug)]
struct OwnModel {
    tokens: Embedding,
    positions: Embedding,
    attention: Vec<MultiHeadAttention>,
    norms: Vec<LayerNorm>,
    head: Linear,
}

impl OwnModel {
    fn new(vocabulary: usize, context: usize, device: &Device) -> Self {
        let attention = MultiHeadAttentionConfig::new(WIDTH, 4).with_dropout(0.0);
        Self {
            tokens: EmbeddingConfig::new(vocabulary, WIDTH).init(device),
            positions: EmbeddingConfig::new(context, WIDTH).init(device),
            attention: (0..2).map(|_| attention.init(device)).collect(),
            norms: (0..2).map(|_| LayerNormConfig::new(WIDTH).init(device)).collect(),
            head: LinearConfig::new(WIDTH, vocabulary).init(device),
        }
    }
}

impl CausalModel for OwnModel {
    fn hidden(&self, batch: &Batch) -> Result<Tensor<3>, TrainError> {
        let mask_btt = dense_mask(batch.mask()).squeeze_dim::<3>(1);
        let mut x_btc =
            self.tokens.forward(batch.tokens_bt()) + self.positions.forward(batch.positions_bt());
        for (attention, norm) in self.attention.iter().zip(&self.norms) {
            let input =
                MhaInput::self_attn(norm.forward(x_btc.clone())).mask_attn(mask_btt.clone());
            x_btc = x_btc + attention.forward(input).context;
        }
        Ok(x_btc)
    }

    fn vocabulary(&self) -> usize {
        self.head.weight.val().dims()[1]
    }

    fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        self.head.forward(hidden_nd)
    }
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/records/gate.jsonl".into());
    let (tree, _) = BranchTree::open(&path, ReadOptions::STRICT)?;
    let layouts = Layouts::new(&tree)?;
    let (packed, segments) = (layouts.packed()?, layouts.segments()?);
    let context = packed
        .sequences
        .iter()
        .flat_map(|sequence| &sequence.positions)
        .max()
        .map_or(1, |&last| last as usize + 1);

    let device = Device::flex().autodiff();
    let mut model = OwnModel::new(258, context, &device);
    let equivalence = compare(&model, &packed.sequences, &segments.sequences, &mut |_, _| {})?;
    println!(
        "packed against segments: max |difference of log p| {:.1e} nats",
        equivalence.max_logp_difference
    );

    let batch = Batch::new(&packed, &device)?;
    let nll = NllConfig::new().with_reduction(Reduction::WeightedMean).init();
    let mut optimizer = AdamWConfig::new().init();
    let mut losses = Vec::new();
    for step in 0..10 {
        let loss = nll.forward(&model, &batch)?.loss;
        losses.push(loss.clone().into_scalar::<f32>());
        println!("step {step}: {:.4} nats per sampled token", losses[step]);
        let gradients = GradientsParams::from_grads(backward(&loss)?, &model);
        model = optimizer.step(1e-2, model, gradients);
    }
    ensure!(losses.last() < losses.first(), "the loss did not fall");
    Ok(())
}

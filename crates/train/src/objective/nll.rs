use super::head::sum_in_chunks;
use crate::{
    batch::{Batch, BatchTerms},
    error::TrainError,
    model::CausalModel,
};
use burn::{
    config::Config,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use std::ops::Range;

/// Loss terms whose logits exist at one time, unless one chooses otherwise.
pub(crate) const DEFAULT_CHUNK: usize = 256;

/// How the loss terms of a batch become one number.
///
/// Where every weight is 0, and so where there are no terms, the loss is 0 under each of them: a part of a batch may have none, and
/// the parts must add up.
#[derive(Config, Debug, Copy, PartialEq)]
pub enum Reduction {
    /// The weighted sum, which adds up over micro-batches.
    Sum,
    /// The weighted sum over the sum of the weights.
    WeightedMean,
    /// The weighted sum over a number of one's own: the weights of a whole batch that is run in parts, say.
    Over(f64),
}

/// Configuration of [`Nll`].
#[derive(Config, Debug)]
pub struct NllConfig {
    /// How terms become one number.
    #[config(default = "Reduction::Sum")]
    pub reduction: Reduction,
    /// Loss terms whose logits exist at one time.
    #[config(default = "DEFAULT_CHUNK")]
    pub chunk: usize,
}

impl NllConfig {
    /// The objective of this configuration.
    pub fn init(&self) -> Nll {
        Nll { reduction: self.reduction, chunk: self.chunk }
    }
}

/// Token-level negative log-likelihood over loss terms, in nats.
///
/// Logits exist at the sources of the terms only, one chunk at a time, forward and backward. Log-sum-exp is computed in float32
/// or better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nll {
    reduction: Reduction,
    chunk: usize,
}

/// What [`Nll`] computes.
#[derive(Debug, Clone)]
pub struct NllOutput {
    /// The loss, `[1]`, with its gradient.
    pub loss: Tensor<1>,
    /// log p of each term's target, `[terms]`, in the order of [`Batch::terms`], without gradient.
    pub logp_n: Tensor<1>,
}

impl Nll {
    /// Runs a model over a batch and takes the loss of its terms.
    ///
    /// # Errors
    /// As [`forward_hidden`](Self::forward_hidden), and what the model finds wrong.
    pub fn forward<M: CausalModel>(&self, model: &M, batch: &Batch) -> Result<NllOutput, TrainError> {
        let hidden_btc = model.hidden(batch)?;
        let [b, t, width] = hidden_btc.dims();
        let [rows, time] = batch.dims();
        if [b, t] != [rows, time] {
            return Err(TrainError::ModelShape {
                what: "hidden states",
                expected: vec![rows, time, width],
                found: vec![b, t, width],
            });
        }
        self.forward_hidden(model, hidden_btc, batch.terms())
    }

    /// The loss of terms whose hidden states are there already, for objectives that share a forward pass.
    ///
    /// A term of weight 0 gives exactly zero loss and gradient, even where its log-probability is -inf. Where every weight is 0, or
    /// there are no terms, so is the loss, under every [`Reduction`].
    ///
    /// # Shapes
    /// `hidden_btc`: `[batch, time, width]`, from [`CausalModel::hidden`].
    ///
    /// # Errors
    /// A chunk of 0; weights that are not all 0 under a sum that is not positive and finite; targets outside the vocabulary.
    pub fn forward_hidden<M: CausalModel>(
        &self,
        model: &M,
        hidden_btc: Tensor<3>,
        terms: &BatchTerms,
    ) -> Result<NllOutput, TrainError> {
        if self.chunk == 0 {
            return Err(TrainError::EmptyChunk);
        }
        let [b, t, width] = hidden_btc.dims();
        let hidden_nc = hidden_btc.reshape([b * t, width]);
        if terms.is_empty() {
            return Ok(nothing(hidden_nc));
        }
        let factor = 1.0 / self.normaliser(terms)?;
        let device = hidden_nc.device().without_autodiff();
        let mut logps = Vec::new();
        let loss_of = |range: Range<usize>, logits_kv: Tensor<2>| {
            let logp_k1 = target_logp(logits_kv, &terms.targets[range.clone()], &device)?;
            logps.push(logp_k1.clone().without_autodiff().flatten::<1>(0, 1));
            let weights: Vec<f64> = terms.weights[range].iter().map(|w| w * factor).collect();
            let data = TensorData::new(weights, logp_k1.dims());
            let weights_k1 = Tensor::<2>::from_data(data, (&device, logp_k1.dtype()));
            let silent_k1 = weights_k1.clone().equal_scalar(0.0);
            Ok(logp_k1.mask_fill(silent_k1, 0.0).mul(weights_k1).sum().neg())
        };
        let loss = sum_in_chunks(model, &hidden_nc, &terms.sources, self.chunk, loss_of)?;
        Ok(NllOutput { loss, logp_n: Tensor::cat(logps, 0) })
    }

    fn normaliser(&self, terms: &BatchTerms) -> Result<f64, TrainError> {
        if terms.weights.iter().all(|&weight| weight == 0.0) {
            return Ok(1.0);
        }
        let sum = match self.reduction {
            Reduction::Sum => return Ok(1.0),
            Reduction::WeightedMean => terms.weights.iter().sum(),
            Reduction::Over(sum) => sum,
        };
        match sum.is_finite() && sum > 0.0 {
            true => Ok(sum),
            false => Err(TrainError::Weights { terms: terms.len(), sum }),
        }
    }
}

/// The loss of no terms: zero, with a gradient that is zero.
fn nothing(hidden_nc: Tensor<2>) -> NllOutput {
    let options = (&hidden_nc.device().without_autodiff(), hidden_nc.dtype());
    let logp_n = Tensor::from_data(TensorData::new(Vec::<f64>::new(), [0]), options);
    let loss = hidden_nc.narrow(0, 0, 1).sum().mul_scalar(0.0);
    NllOutput { loss, logp_n }
}

/// log p of one target per row of logits.
///
/// # Shapes
/// `logits_kv`: `[k, vocabulary]`; `targets`: `[k]`; returns `[k, 1]`.
fn target_logp(logits_kv: Tensor<2>, targets: &[u32], device: &Device) -> Result<Tensor<2>, TrainError> {
    let [rows, vocabulary] = logits_kv.dims();
    if rows != targets.len() {
        return Err(TrainError::ModelShape {
            what: "logits",
            expected: vec![targets.len(), vocabulary],
            found: vec![rows, vocabulary],
        });
    }
    let largest = targets.iter().copied().max().unwrap_or_default();
    if largest as usize >= vocabulary {
        return Err(TrainError::Vocabulary { token: largest, vocabulary });
    }
    let targets: Vec<i64> = targets.iter().copied().map(i64::from).collect();
    let targets_k1 = Tensor::<2, Int>::from_data(TensorData::new(targets, [rows, 1]), device);
    let logits_kv = match logits_kv.dtype() {
        DType::F64 | DType::F32 => logits_kv,
        _ => logits_kv.cast(DType::F32),
    };
    let max_k1 = logits_kv.clone().detach().max_dim(1);
    let shifted_kv = logits_kv.sub(max_k1);
    let log_sum_k1 = shifted_kv.clone().exp().sum_dim(1).log();
    Ok(shifted_kv.gather(1, targets_k1).sub(log_sum_k1))
}

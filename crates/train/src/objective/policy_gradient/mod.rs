//! Clipped policy gradients against recorded log-probabilities.
mod clip;
mod signal;

pub use clip::ClipConfig;
pub use signal::PolicySignal;
pub(super) use signal::checked;

use super::{
    head::{flat, hidden_states, nothing, sum_in_chunks},
    logits::{column, target_logp},
    nll::DEFAULT_CHUNK,
    reduction::Reduction,
};
use crate::{
    batch::{Batch, BatchTerms},
    error::TrainError,
    model::CausalModel,
};
use burn::{
    config::Config,
    tensor::{Tensor, TensorData},
};
use std::ops::Range;

/// The largest |log ratio| that is exponentiated; beyond it a ratio stays at e^20 or e^-20 and has
/// no gradient.
///
/// Chosen here: e^20 is five hundred million, far outside every clip, and its square is still a
/// number in float32.
pub const MAX_LOG_RATIO: f64 = 20.0;

/// Configuration of [`PolicyGradient`].
#[derive(Config, Debug)]
pub struct PolicyGradientConfig {
    /// Where ratios are clipped.
    #[config(default = "ClipConfig::new()")]
    pub clip: ClipConfig,
    /// Weight of the KL to a reference, by its low-variance estimator; 0 for none.
    #[config(default = 0.0)]
    pub reference_kl: f64,
    /// The largest importance weight of the trainer's old log-probabilities over the recorded ones;
    /// none leaves it out.
    pub truncation: Option<f64>,
    /// How terms become one number: a mean over all optimised tokens, never a mean of means.
    #[config(default = "Reduction::WeightedMean")]
    pub reduction: Reduction,
    /// Loss terms whose logits exist at one time.
    #[config(default = "DEFAULT_CHUNK")]
    pub chunk: usize,
}

impl PolicyGradientConfig {
    /// The objective of this configuration.
    pub fn init(&self) -> PolicyGradient {
        PolicyGradient { config: self.clone() }
    }
}

/// The clipped surrogate of PPO (arXiv 1707.06347), with the advantages of GRPO (arXiv 2402.03300)
/// or a critic, and the separate clips and token-level mean of DAPO (arXiv 2503.14476).
///
/// Per term `-min(r A, clip(r, 1 - low, 1 + high) A)`, with r the probability of the sampled token
/// over its probability when it was recorded, under the same live view. With truncation, r is taken
/// against the trainer's own old log-probabilities, and the term carries the weight
/// `min(p_trainer / p_recorded, C)` for the mismatch of trainer and rollout engine (truncated
/// importance sampling).
///
/// Nothing in it depends on how a rollout was cut: every sampled token is a term, a `compact()`
/// decision and a summary among them.
#[derive(Debug, Clone)]
pub struct PolicyGradient {
    config: PolicyGradientConfig,
}

/// What [`PolicyGradient`] computes. Per-term tensors are `[terms]`, in the order of the terms, and
/// without gradient.
#[derive(Debug, Clone)]
pub struct PolicyGradientOutput {
    /// The loss, `[1]`, with its gradient.
    pub loss: Tensor<1>,
    /// log p of each term's target.
    pub logp_n: Tensor<1>,
    /// The ratio of each term.
    pub ratio_n: Tensor<1>,
    /// 1 where clipping took the term's gradient away, else 0.
    pub clipped_n: Tensor<1>,
    /// The estimate of the KL to the reference at each term, where there is one.
    pub reference_kl_n: Option<Tensor<1>>,
}

impl PolicyGradient {
    /// The same objective over another number.
    pub(crate) fn with_reduction(&self, reduction: Reduction) -> Self {
        Self { config: PolicyGradientConfig { reduction, ..self.config.clone() } }
    }

    /// Runs a model over a batch and takes the loss of its terms.
    ///
    /// # Errors
    /// As [`forward_hidden`](Self::forward_hidden), and what the model finds wrong.
    pub fn forward<M: CausalModel>(
        &self,
        model: &M,
        batch: &Batch,
        signal: &PolicySignal,
    ) -> Result<PolicyGradientOutput, TrainError> {
        let hidden_btc = hidden_states(model, batch)?;
        self.forward_hidden(model, hidden_btc, batch.terms(), signal)
    }

    /// The loss of terms whose hidden states are there already.
    ///
    /// A term of weight 0, such as one of a masked rollout, gives exactly zero loss and gradient
    /// whatever its signal; where every weight is 0, or there are no terms, so is the loss. A
    /// target that the model has come to rule out has a ratio of e^-20 and no gradient.
    ///
    /// # Shapes
    /// `hidden_btc`: `[batch, time, width]`, from [`CausalModel::hidden`].
    ///
    /// # Errors
    /// Settings out of range, signals of another length than the terms or not finite at a term that
    /// counts, and as [`Nll`](crate::objective::Nll).
    pub fn forward_hidden<M: CausalModel>(
        &self,
        model: &M,
        hidden_btc: Tensor<3>,
        terms: &BatchTerms,
        signal: &PolicySignal,
    ) -> Result<PolicyGradientOutput, TrainError> {
        if self.config.chunk == 0 {
            return Err(TrainError::EmptyChunk);
        }
        self.config.clip.check()?;
        let hidden_nc = flat(hidden_btc);
        terms.check(hidden_nc.dims()[0])?;
        let plan = signal.plan(terms, &self.config)?;
        let device = hidden_nc.device().without_autodiff();
        if terms.is_empty() {
            let none_n: Tensor<1> = Tensor::from_data(
                TensorData::new(Vec::<f64>::new(), [0]),
                (&device, hidden_nc.dtype()),
            );
            let reference_kl_n = plan.reference.as_ref().map(|_| none_n.clone());
            let (logp_n, ratio_n, clipped_n) = (none_n.clone(), none_n.clone(), none_n);
            return Ok(PolicyGradientOutput {
                loss: nothing(&hidden_nc),
                logp_n,
                ratio_n,
                clipped_n,
                reference_kl_n,
            });
        }
        let factor = 1.0 / self.config.reduction.normaliser(&terms.weights)?;
        let mut collected = Collected::default();
        let loss_of = |range: Range<usize>, logits_kv: Tensor<2>| {
            let logp_k1 = target_logp(logits_kv, &terms.targets[range.clone()], &device)?;
            collected.logp.push(plain(&logp_k1));
            let of = |values: &[f64]| column(values[range.clone()].to_vec(), &logp_k1, &device);
            let weights =
                terms.weights[range.clone()].iter().map(|weight| weight * factor).collect();
            let weights_k1 = column(weights, &logp_k1, &device);
            let ratio_k1 = log_ratio(logp_k1.clone(), of(&plan.old)).exp();
            collected.ratio.push(plain(&ratio_k1));
            let (surrogate_k1, clipped_k1) =
                self.config.clip.surrogate(ratio_k1, of(&plan.advantages));
            collected.clipped.push(plain(&clipped_k1));
            let mut loss_k1 = surrogate_k1.mul(of(&plan.importance)).neg();
            if let Some(reference) = &plan.reference {
                let kl_k1 = low_variance_kl(log_ratio(logp_k1.clone(), of(reference)));
                collected.reference_kl.push(plain(&kl_k1));
                loss_k1 = loss_k1.add(kl_k1.mul_scalar(self.config.reference_kl));
            }
            let silent_k1 = weights_k1.clone().equal_scalar(0.0);
            Ok(loss_k1.mask_fill(silent_k1, 0.0).mul(weights_k1).sum())
        };
        let loss = sum_in_chunks(model, &hidden_nc, &terms.sources, self.config.chunk, loss_of)?;
        super::finite(&loss, "policy gradient loss", terms.len())?;
        let reference_kl_n = plan.reference.map(|_| Tensor::cat(collected.reference_kl, 0));
        let (logp_n, ratio_n) = (Tensor::cat(collected.logp, 0), Tensor::cat(collected.ratio, 0));
        let clipped_n = Tensor::cat(collected.clipped, 0);
        Ok(PolicyGradientOutput { loss, logp_n, ratio_n, clipped_n, reference_kl_n })
    }
}

/// Figures of chunks.
#[derive(Default)]
struct Collected {
    logp: Vec<Tensor<1>>,
    ratio: Vec<Tensor<1>>,
    clipped: Vec<Tensor<1>>,
    reference_kl: Vec<Tensor<1>>,
}

fn plain(column_k1: &Tensor<2>) -> Tensor<1> {
    column_k1.clone().without_autodiff().flatten::<1>(0, 1)
}

/// log p - log p_old within the bounds that can be exponentiated.
fn log_ratio(logp_k1: Tensor<2>, old_k1: Tensor<2>) -> Tensor<2> {
    let impossible_k1 = logp_k1.clone().equal_scalar(f64::NEG_INFINITY);
    let log_ratio_k1 = logp_k1
        .mask_fill(impossible_k1.clone(), 0.0)
        .sub(old_k1)
        .clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
    log_ratio_k1.mask_fill(impossible_k1, -MAX_LOG_RATIO)
}

/// `exp(log q - log p) - (log q - log p) - 1` from log p - log q: an estimate of KL(p || q) at a
/// token of p that is never below 0, since e^x >= 1 + x (GRPO, arXiv 2402.03300).
fn low_variance_kl(log_ratio_k1: Tensor<2>) -> Tensor<2> {
    let inverse_k1 = log_ratio_k1.neg();
    inverse_k1.clone().exp().sub(inverse_k1).sub_scalar(1.0)
}

use super::{
    head::{flat, hidden_states, nothing, sum_in_chunks},
    logits::{column, target_logp},
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

/// Loss terms whose logits exist at one time, unless one chooses otherwise.
pub(crate) const DEFAULT_CHUNK: usize = 256;

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
/// Logits exist at the sources of the terms only, one chunk at a time, forward and backward.
/// Log-sum-exp is computed in float32 or better.
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
    pub fn forward<M: CausalModel>(
        &self,
        model: &M,
        batch: &Batch,
    ) -> Result<NllOutput, TrainError> {
        let hidden_btc = hidden_states(model, batch)?;
        self.forward_hidden(model, hidden_btc, batch.terms())
    }

    /// The loss of terms whose hidden states are there already, for objectives that share a forward
    /// pass.
    ///
    /// A term of weight 0 gives exactly zero loss and gradient, even where its log-probability is
    /// -inf. Where every weight is 0, or there are no terms, so is the loss, under every
    /// [`Reduction`].
    ///
    /// # Shapes
    /// `hidden_btc`: `[batch, time, width]`, from [`CausalModel::hidden`].
    ///
    /// # Errors
    /// A chunk of 0; terms whose arrays do not fit each other, or of a weight that is no number;
    /// weights that are not all 0 under a sum that is not positive and finite;
    /// targets outside the vocabulary; a loss that is not finite, since a target of another weight
    /// than 0 is impossible: [`log_probabilities`](crate::evaluation::log_probabilities) says which.
    pub fn forward_hidden<M: CausalModel>(
        &self,
        model: &M,
        hidden_btc: Tensor<3>,
        terms: &BatchTerms,
    ) -> Result<NllOutput, TrainError> {
        let output = self.measure(model, hidden_btc, terms)?;
        super::finite(&output.loss, "negative log-likelihood", terms.len())?;
        Ok(output)
    }

    /// The same for those who look at a model and do not train it: an impossible target is a
    /// log-probability of -inf like any other, and the loss may be infinite.
    pub(crate) fn measure<M: CausalModel>(
        &self,
        model: &M,
        hidden_btc: Tensor<3>,
        terms: &BatchTerms,
    ) -> Result<NllOutput, TrainError> {
        if self.chunk == 0 {
            return Err(TrainError::EmptyChunk);
        }
        let hidden_nc = flat(hidden_btc);
        terms.check(hidden_nc.dims()[0])?;
        let device = hidden_nc.device().without_autodiff();
        if terms.is_empty() {
            let logp_n = Tensor::from_data(
                TensorData::new(Vec::<f64>::new(), [0]),
                (&device, hidden_nc.dtype()),
            );
            return Ok(NllOutput { loss: nothing(&hidden_nc), logp_n });
        }
        let factor = 1.0 / self.reduction.normaliser(&terms.weights)?;
        let mut logps = Vec::new();
        let loss_of = |range: Range<usize>, logits_kv: Tensor<2>| {
            let logp_k1 = target_logp(logits_kv, &terms.targets[range.clone()], &device)?;
            logps.push(logp_k1.clone().without_autodiff().flatten::<1>(0, 1));
            let weights: Vec<f64> = terms.weights[range].iter().map(|w| w * factor).collect();
            let weights_k1 = column(weights, &logp_k1, &device);
            let silent_k1 = weights_k1.clone().equal_scalar(0.0);
            Ok(logp_k1.mask_fill(silent_k1, 0.0).mul(weights_k1).sum().neg())
        };
        let loss = sum_in_chunks(model, &hidden_nc, &terms.sources, self.chunk, loss_of)?;
        Ok(NllOutput { loss, logp_n: Tensor::cat(logps, 0) })
    }
}

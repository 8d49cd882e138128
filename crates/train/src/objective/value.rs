use super::{
    head::{flat, nothing},
    reduction::Reduction,
};
use crate::{
    batch::BatchTerms,
    error::{ObjectiveError, TrainError},
};
use burn::{
    config::Config,
    module::{Module, Param},
    tensor::{DType, Device, Int, Tensor, TensorData},
};

/// Configuration of [`ValueHead`].
#[derive(Config, Debug)]
pub struct ValueHeadConfig {
    /// Width of the hidden states.
    pub width: usize,
    /// How far a value may move from the one that advantages were computed with; none leaves
    /// clipping out.
    ///
    /// 0.2 is chosen here, so that values are held as tightly as ratios are.
    #[config(default = "Some(0.2)")]
    pub clip: Option<f64>,
    /// How terms become one number.
    #[config(default = "Reduction::WeightedMean")]
    pub reduction: Reduction,
}

impl ValueHeadConfig {
    /// A head that says 0 everywhere, so that training starts without a bias of its own.
    pub fn init(&self, dtype: DType, device: &Device) -> ValueHead {
        let options = (device, dtype);
        ValueHead {
            weight_c: Param::from_tensor(Tensor::zeros([self.width], options)),
            bias_1: Param::from_tensor(Tensor::zeros([1], options)),
            clip: self.clip,
            reduction: self.reduction,
        }
    }
}

/// A critic on top of a model's hidden states: the value of a state is what will be got from its
/// next token on.
///
/// The loss is `1/2 max((v - R)^2, (v_old + clip(v - v_old, -c, c) - R)^2)`, the
/// clipping of PPO (arXiv 1707.06347) done to values, as its implementations do.
#[derive(Module, Debug)]
pub struct ValueHead {
    weight_c: Param<Tensor<1>>,
    bias_1: Param<Tensor<1>>,
    #[module(skip)]
    clip: Option<f64>,
    #[module(skip)]
    reduction: Reduction,
}

/// What [`ValueHead`] computes.
#[derive(Debug, Clone)]
pub struct ValueOutput {
    /// The loss, `[1]`, with its gradient.
    pub loss: Tensor<1>,
    /// The value at each term's source, `[terms]`, without gradient.
    pub values_n: Tensor<1>,
    /// 1 where clipping took the term's gradient away, else 0, `[terms]`.
    pub clipped_n: Tensor<1>,
}

impl ValueHead {
    /// The values at the sources of terms, with their gradient.
    ///
    /// # Shapes
    /// `hidden_btc`: `[batch, time, width]`; returns `[terms]`.
    ///
    /// # Errors
    /// Hidden states of another width.
    pub fn values(
        &self,
        hidden_btc: Tensor<3>,
        terms: &BatchTerms,
    ) -> Result<Tensor<1>, TrainError> {
        let [b, t, found] = hidden_btc.dims();
        let [width] = self.weight_c.dims();
        if found != width {
            let expected = vec![b, t, width];
            return Err(TrainError::ModelShape {
                what: "hidden states",
                expected,
                found: vec![b, t, found],
            });
        }
        let hidden_nc = flat(hidden_btc);
        let device = hidden_nc.device().without_autodiff();
        if terms.is_empty() {
            return Ok(Tensor::from_data(
                TensorData::new(Vec::<f64>::new(), [0]),
                (&device, hidden_nc.dtype()),
            ));
        }
        let sources_n = Tensor::<1, Int>::from_data(terms.sources.as_slice(), &device);
        let selected_nc = hidden_nc.select(0, sources_n);
        let products_nc = selected_nc.mul(self.weight_c.val().unsqueeze_dim::<2>(0));
        Ok(products_nc.sum_dim(1).squeeze_dim::<1>(1).add(self.bias_1.val()))
    }

    /// The clipped loss of values against returns.
    ///
    /// A term of weight 0 gives exactly zero loss and gradient; where every weight is 0, or there
    /// are no terms, so is the loss.
    ///
    /// # Shapes
    /// `hidden_btc`: `[batch, time, width]`; `old`, `returns`: `[terms]`, the values that
    /// advantages were computed with, and what was got.
    ///
    /// # Errors
    /// Lengths that differ, numbers that are not finite at a term that counts, a clip that is not
    /// positive and finite.
    pub fn forward(
        &self,
        hidden_btc: Tensor<3>,
        terms: &BatchTerms,
        old: &[f64],
        returns: &[f64],
    ) -> Result<ValueOutput, TrainError> {
        let [b, t, _] = hidden_btc.dims();
        terms.check(b * t)?;
        let old = super::policy_gradient::checked(old, terms, "old value")?;
        let returns = super::policy_gradient::checked(returns, terms, "return")?;
        if let Some(clip) = self.clip.filter(|clip| !(clip.is_finite() && *clip > 0.0)) {
            let expected = "a positive finite number, or none";
            return Err(ObjectiveError::Setting {
                setting: "the clip of values",
                value: clip,
                expected,
            }
            .into());
        }
        let values_n = self.values(hidden_btc.clone(), terms)?;
        if terms.is_empty() {
            return Ok(ValueOutput {
                loss: nothing(&flat(hidden_btc)),
                clipped_n: values_n.clone(),
                values_n,
            });
        }
        let factor = 0.5 / self.reduction.normaliser(&terms.weights)?;
        let options = (&values_n.device().without_autodiff(), values_n.dtype());
        let of = |values: &[f64]| {
            Tensor::<1>::from_data(TensorData::new(values.to_vec(), [values.len()]), options)
        };
        let (old_n, returns_n) = (of(&old), of(&returns));
        let error_n = values_n.clone().sub(returns_n.clone());
        let mut square_n = error_n.clone().mul(error_n);
        let mut clipped_n = square_n.clone().without_autodiff().zeros_like();
        if let Some(clip) = self.clip {
            let moved_n = values_n.clone().sub(old_n.clone());
            let plain_n = moved_n.clone().without_autodiff();
            let outside_n = plain_n.clone().abs().greater_scalar(clip);
            let held_n = old_n.add(plain_n.clamp(-clip, clip)).sub(returns_n);
            let held_n = held_n.clone().mul(held_n);
            let takes_n =
                held_n.clone().greater(square_n.clone().without_autodiff()).bool_and(outside_n);
            square_n = square_n.mask_where(takes_n.clone(), held_n);
            clipped_n = clipped_n.mask_fill(takes_n, 1.0);
        }
        let weights: Vec<f64> = terms.weights.iter().map(|weight| weight * factor).collect();
        let silent_n = of(&weights).equal_scalar(0.0);
        let loss = square_n.mask_fill(silent_n, 0.0).mul(of(&weights)).sum();
        super::finite(&loss, "value loss", terms.len())?;
        Ok(ValueOutput { loss, values_n: values_n.without_autodiff(), clipped_n })
    }
}

use crate::error::{ObjectiveError, TrainError};
use burn::{config::Config, tensor::Tensor};

/// Where the ratio of a policy gradient is clipped.
#[derive(Config, Debug, Copy, PartialEq)]
pub struct ClipConfig {
    /// How far below 1.
    #[config(default = 0.2)]
    pub low: f64,
    /// How far above 1; higher than `low` in DAPO, so that unlikely tokens can be encouraged.
    #[config(default = 0.28)]
    pub high: f64,
    /// The largest ratio that counts where the advantage is negative (dual clip); none leaves it
    /// out.
    pub dual: Option<f64>,
}

impl ClipConfig {
    /// No clipping but at the ends of what a ratio can be.
    pub fn open() -> Self {
        Self { low: 1.0, high: f64::MAX, dual: None }
    }

    pub(super) fn check(&self) -> Result<(), TrainError> {
        let refuse = |setting, value, expected| {
            Err(ObjectiveError::Setting { setting, value, expected }.into())
        };
        match *self {
            Self { low, .. } if !(0.0..=1.0).contains(&low) => {
                refuse("the lower clip", low, "a number from 0 to 1")
            }
            Self { high, .. } if !(high >= 0.0 && high.is_finite()) => {
                refuse("the upper clip", high, "a finite number, 0 or above")
            }
            Self { dual: Some(dual), high, .. } if !(dual > 1.0 + high && dual.is_finite()) => {
                refuse("the dual clip", dual, "a finite ratio above 1 + the upper clip")
            }
            _ => Ok(()),
        }
    }

    /// The clipped surrogate, to be made large, and 1 where clipping takes its gradient.
    ///
    /// # Shapes
    /// All `[k, 1]`.
    pub(super) fn surrogate(
        &self,
        ratio_k1: Tensor<2>,
        advantage_k1: Tensor<2>,
    ) -> (Tensor<2>, Tensor<2>) {
        let low = 1.0 - self.low;
        let high = (1.0 + self.high).min(super::MAX_LOG_RATIO.exp());
        let value_k1 = ratio_k1.clone().without_autodiff();
        let positive_k1 = advantage_k1.clone().greater_scalar(0.0);
        let negative_k1 = advantage_k1.clone().lower_scalar(0.0);
        let above_k1 = value_k1.clone().greater_scalar(high).bool_and(positive_k1);
        let below_k1 = value_k1.clone().lower_scalar(low).bool_and(negative_k1.clone());
        let mut clipped_k1 = above_k1.clone().bool_or(below_k1.clone());
        let mut kept_k1 = ratio_k1.mask_fill(above_k1, high).mask_fill(below_k1, low);
        if let Some(dual) = self.dual {
            let far_k1 = value_k1.greater_scalar(dual).bool_and(negative_k1);
            clipped_k1 = clipped_k1.bool_or(far_k1.clone());
            kept_k1 = kept_k1.mask_fill(far_k1, dual);
        }
        let clipped_k1 = advantage_k1.zeros_like().mask_fill(clipped_k1, 1.0);
        (kept_k1.mul(advantage_k1), clipped_k1)
    }
}

use crate::{batch::BatchTerms, error::TrainError};
use burn::config::Config;

/// How the loss terms of a batch become one number.
///
/// Where every weight is 0, and so where there are no terms, the loss is 0 under each of them: a
/// part of a batch may have none, and the parts must add up.
#[derive(Config, Debug, Copy, PartialEq)]
pub enum Reduction {
    /// The weighted sum, which adds up over micro-batches.
    Sum,
    /// The weighted sum over the sum of the weights.
    WeightedMean,
    /// The weighted sum over a number of one's own: the weights of a whole batch that is run in
    /// parts, say.
    Over(f64),
}

impl Reduction {
    /// What the weighted sum of terms of these weights is divided by.
    pub(crate) fn normaliser(self, weights: &[f64]) -> Result<f64, TrainError> {
        if weights.iter().all(|&weight| weight == 0.0) {
            return Ok(1.0);
        }
        let sum = match self {
            Self::Sum => return Ok(1.0),
            Self::WeightedMean => weights.iter().sum(),
            Self::Over(sum) => sum,
        };
        match sum.is_finite() && sum > 0.0 {
            true => Ok(sum),
            false => Err(TrainError::Weights { terms: weights.len(), sum }),
        }
    }

    /// The reduction over one number that two objectives of the same terms share.
    pub(crate) fn fixed(self, terms: &BatchTerms) -> Result<Self, TrainError> {
        Ok(Self::Over(self.normaliser(&terms.weights)?))
    }
}

use crate::error::{ObjectiveError, TrainError};
use burn::config::Config;

/// Which length a lambda by length reads; papers say l and leave it open.
#[derive(Config, Debug, Copy, PartialEq)]
pub enum LengthReading {
    /// The optimised tokens of the whole rollout.
    Rollout,
    /// The optimised tokens of the segment that a token stands in.
    Segment,
    /// A length of one's own: a budget, or a mean over the batch.
    Given(f64),
}

/// How far generalised advantage estimation looks ahead.
#[derive(Config, Debug, Copy, PartialEq)]
pub enum LambdaConfig {
    /// The same everywhere.
    Fixed(f64),
    /// `1 - 1 / (alpha l)`, so that what is far from the end of a long rollout still learns of it
    /// (CompactionRL, arXiv 2607.05378, alpha 1.5).
    LengthAdaptive {
        /// Tokens that count, as a multiple of the length.
        alpha: f64,
        /// Which length l is.
        length: LengthReading,
    },
}

impl LambdaConfig {
    /// The lambda of each segment of a rollout, from the optimised tokens of each.
    ///
    /// A length so short that the formula falls below 0 gives 0: nothing lies ahead.
    ///
    /// # Errors
    /// A fixed lambda outside 0 to 1; an alpha or a given length that is not positive and finite.
    pub fn of_segments(self, tokens: &[usize]) -> Result<Vec<f64>, TrainError> {
        let (alpha, length) = match self {
            Self::Fixed(lambda) if (0.0..=1.0).contains(&lambda) => {
                return Ok(vec![lambda; tokens.len()]);
            }
            Self::Fixed(lambda) => {
                let expected = "a number from 0 to 1";
                return Err(ObjectiveError::Setting {
                    setting: "the lambda of advantage estimation",
                    value: lambda,
                    expected,
                }
                .into());
            }
            Self::LengthAdaptive { alpha, length } => (alpha, length),
        };
        let expected = "a positive finite number";
        if !(alpha.is_finite() && alpha > 0.0) {
            return Err(ObjectiveError::Setting {
                setting: "the alpha of lambda by length",
                value: alpha,
                expected,
            }
            .into());
        }
        let lambda = |length: f64| (1.0 - 1.0 / (alpha * length)).max(0.0);
        match length {
            LengthReading::Given(length) if !(length.is_finite() && length > 0.0) => {
                Err(ObjectiveError::Setting {
                    setting: "the length of lambda by length",
                    value: length,
                    expected,
                }
                .into())
            }
            LengthReading::Given(length) => Ok(vec![lambda(length); tokens.len()]),
            LengthReading::Rollout => {
                Ok(vec![lambda(tokens.iter().sum::<usize>() as f64); tokens.len()])
            }
            LengthReading::Segment => {
                Ok(tokens.iter().map(|&tokens| lambda(tokens as f64)).collect())
            }
        }
    }
}

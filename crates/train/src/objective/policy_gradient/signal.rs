use super::PolicyGradientConfig;
use crate::{
    batch::BatchTerms,
    error::{ObjectiveError, TrainError},
};
use pleach_layout::TermId;

/// What a policy gradient needs to know of each loss term, in the order of [`BatchTerms`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicySignal {
    /// Advantage of each term.
    pub advantages: Vec<f64>,
    /// Log-probability that the rollout recorded for each term's target, under the live view it was
    /// sampled under.
    pub recorded: Vec<f64>,
    /// Log-probability under the trainer's weights before the update, for truncated importance
    /// sampling.
    pub trainer: Option<Vec<f64>>,
    /// Log-probability under the reference model.
    pub reference: Option<Vec<f64>>,
}

/// A signal that was checked, with numbers that cannot become NaN at terms of weight 0.
pub(super) struct Plan {
    pub(super) advantages: Vec<f64>,
    /// What ratios are taken against.
    pub(super) old: Vec<f64>,
    /// Truncated importance weights.
    pub(super) importance: Vec<f64>,
    pub(super) reference: Option<Vec<f64>>,
}

impl PolicySignal {
    /// Advantages and recorded log-probabilities alone.
    pub fn new(advantages: Vec<f64>, recorded: Vec<f64>) -> Self {
        Self { advantages, recorded, trainer: None, reference: None }
    }

    pub(super) fn plan(
        &self,
        terms: &BatchTerms,
        config: &PolicyGradientConfig,
    ) -> Result<Plan, TrainError> {
        let given = |values: &Option<Vec<f64>>, wanted, what, setting| -> Result<_, TrainError> {
            match (values, wanted) {
                (Some(values), true) => Ok(Some(checked(values, terms, what)?)),
                (None, false) => Ok(None),
                _ => Err(ObjectiveError::Signal { what, setting }.into()),
            }
        };
        let reference_kl = config.reference_kl;
        if !(reference_kl.is_finite() && reference_kl >= 0.0) {
            let expected = "a finite number, 0 or above";
            return Err(ObjectiveError::Setting {
                setting: "the weight of the KL to the reference",
                value: reference_kl,
                expected,
            }
            .into());
        }
        let recorded = checked(&self.recorded, terms, "recorded log-probability")?;
        let trainer = given(
            &self.trainer,
            config.truncation.is_some(),
            "trainer log-probability",
            "truncation",
        )?;
        let reference = given(
            &self.reference,
            reference_kl > 0.0,
            "reference log-probability",
            "reference_kl",
        )?;
        let (old, importance) = match (trainer, config.truncation) {
            (Some(trainer), Some(limit)) if limit.is_finite() && limit > 0.0 => {
                let weight = |(trainer, recorded): (&f64, &f64)| {
                    (trainer - recorded).min(super::MAX_LOG_RATIO).exp().min(limit)
                };
                let importance = trainer.iter().zip(&recorded).map(weight).collect();
                (trainer, importance)
            }
            (_, Some(limit)) => {
                let expected = "a positive finite number";
                return Err(ObjectiveError::Setting {
                    setting: "the truncation of importance weights",
                    value: limit,
                    expected,
                }
                .into());
            }
            (_, None) => {
                let ones = vec![1.0; recorded.len()];
                (recorded, ones)
            }
        };
        let advantages = checked(&self.advantages, terms, "advantage")?;
        Ok(Plan { advantages, old, importance, reference })
    }
}

/// One finite number a term; 0 where the term's weight is.
pub(in crate::objective) fn checked(
    values: &[f64],
    terms: &BatchTerms,
    what: &'static str,
) -> Result<Vec<f64>, TrainError> {
    if values.len() != terms.len() {
        return Err(
            ObjectiveError::SignalLength { what, terms: terms.len(), found: values.len() }.into()
        );
    }
    let of_term =
        |((&value, &weight), &TermId { generation, offset }): ((&f64, &f64), &TermId)| match (
            weight == 0.0,
            value.is_finite(),
        ) {
            (true, _) => Ok(0.0),
            (false, true) => Ok(value),
            (false, false) => {
                Err(ObjectiveError::SignalValue { what, generation, offset, value }.into())
            }
        };
    values.iter().zip(&terms.weights).zip(&terms.ids).map(of_term).collect()
}

//! Self-distillation of search queries from hindsight (SD-Search).
mod hindsight;

pub use hindsight::{Hindsight, HindsightTemplate, Query, hindsight};

use super::{
    divergence::{DivergenceConfig, DivergenceKind, DivergenceOutput, Pairs},
    head::hidden_states,
    policy_gradient::{PolicyGradientConfig, PolicyGradientOutput, PolicySignal},
    reduction::Reduction,
};
use crate::{
    batch::Batch,
    error::{ObjectiveError, TrainError},
    model::CausalModel,
};
use burn::{config::Config, tensor::Tensor};

/// Configuration of [`SdSearch`].
#[derive(Config, Debug)]
pub struct SdSearchConfig {
    /// Weight of the divergence at query tokens beside the policy gradient.
    pub weight: f64,
    /// The divergence: Jensen-Shannon at one half, a mean over query tokens.
    #[config(
        default = "DivergenceConfig::new().with_kind(DivergenceKind::JensenShannon(0.5)).with_reduction(Reduction::WeightedMean)"
    )]
    pub divergence: DivergenceConfig,
    /// The policy gradient over every sampled token.
    #[config(default = "PolicyGradientConfig::new()")]
    pub policy: PolicyGradientConfig,
}

impl SdSearchConfig {
    /// The objective of this configuration.
    pub fn init(&self) -> SdSearch {
        SdSearch { config: self.clone() }
    }
}

/// A policy gradient, plus a divergence at search-query tokens from the same model with the group's
/// hindsight in its context.
///
/// The teacher is another branch of the same tree (see [`hindsight()`]), so one packed pass gives
/// both sides; its rows are taken without gradient, and its terms have weight 0, so the policy
/// gradient does not see them.
#[derive(Debug, Clone)]
pub struct SdSearch {
    config: SdSearchConfig,
}

/// What [`SdSearch`] computes.
#[derive(Debug, Clone)]
pub struct SdSearchOutput {
    /// The loss, `[1]`, with its gradient.
    pub loss: Tensor<1>,
    /// The policy gradient alone.
    pub policy: PolicyGradientOutput,
    /// The divergence alone, a pair a query token.
    pub queries: DivergenceOutput,
}

impl SdSearch {
    /// The loss of one batch that holds agent and teacher branches.
    ///
    /// # Errors
    /// As [`PolicyGradient`](crate::objective::PolicyGradient) and [`Divergence`](crate::objective::Divergence), a weight
    /// that is not finite and 0 or above, and what the model finds wrong.
    pub fn forward<M: CausalModel>(
        &self,
        model: &M,
        batch: &Batch,
        signal: &PolicySignal,
        queries: &Pairs,
    ) -> Result<SdSearchOutput, TrainError> {
        let weight = self.config.weight;
        if !(weight.is_finite() && weight >= 0.0) {
            let expected = "a finite number, 0 or above";
            return Err(ObjectiveError::Setting {
                setting: "the weight of the divergence at queries",
                value: weight,
                expected,
            }
            .into());
        }
        let hidden_btc = hidden_states(model, batch)?;
        let policy = self.config.policy.init().forward_hidden(
            model,
            hidden_btc.clone(),
            batch.terms(),
            signal,
        )?;
        let (student, teacher) = ((model, hidden_btc.clone()), (&model.valid(), hidden_btc));
        let queries = self.config.divergence.init().forward_hidden(student, teacher, queries)?;
        let loss = policy.loss.clone().add(queries.loss.clone().mul_scalar(weight));
        Ok(SdSearchOutput { loss, policy, queries })
    }
}

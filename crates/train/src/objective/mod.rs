//! Losses over the loss terms of a batch: each a configuration, a module and a `forward`.
mod divergence;
mod head;
mod logits;
mod nll;
mod policy_gradient;
mod presets;
mod reduction;
mod sd_search;
mod sdcc;
mod value;

pub use divergence::{
    Alignment, Divergence, DivergenceConfig, DivergenceKind, DivergenceOutput, Pairs,
    RowDivergence, Support,
};
pub(crate) use head::hidden_states;
pub(crate) use nll::DEFAULT_CHUNK;
pub use nll::{Nll, NllConfig, NllOutput};
pub use policy_gradient::{
    ClipConfig, MAX_LOG_RATIO, PolicyGradient, PolicyGradientConfig, PolicyGradientOutput,
    PolicySignal,
};
pub use presets::{Number, Preset};
pub use reduction::Reduction;
pub use sd_search::{Hindsight, HindsightTemplate, Query, SdSearch, SdSearchConfig, hindsight};
pub use sdcc::{
    JunctionCertificate, MovingAverage, Residual, Sdcc, SdccBatch, SdccCertificate, SdccConfig,
    SdccCoverage, SdccOutput, SdccPolicyOutput, Teacher, certify, gradient_bound, loss_bound,
    pinsker, residuals,
};
pub use value::{ValueHead, ValueHeadConfig, ValueOutput};

use crate::{
    error::{ObjectiveError, TrainError},
    evaluation::read,
};
use burn::tensor::Tensor;

/// Refuses a loss that would make every parameter NaN.
fn finite(loss: &Tensor<1>, what: &'static str, terms: usize) -> Result<(), TrainError> {
    match read(loss)?.iter().all(|value| value.is_finite()) {
        true => Ok(()),
        false => Err(ObjectiveError::NotFinite { what, terms }.into()),
    }
}

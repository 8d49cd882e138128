//! Training on conditioning trees: a decoder, Hugging Face checkpoints, batches, objectives and the
//! equivalence check.
//!
//! A layout's [`Sequence`](pleach_layout::Sequence)s become a [`Batch`] of device tensors; a
//! [`Decoder`] (or any burn model that implements [`CausalModel`]) turns it into hidden states; an
//! objective such as [`Nll`] turns those into a loss over the loss terms. [`compare`] checks that
//! two layouts mean the same to a model, to the last gradient.
//!
//! Every objective is a configuration, a module and a `forward`, and has a `forward_hidden` for
//! those that share a forward pass. None of them holds an array of loss terms x vocabulary, and
//! none knows how a rollout was cut:
//!
//! | objective | what it is |
//! | --- | --- |
//! | [`Nll`] | token-level negative log-likelihood |
//! | [`Sdcc`] | the loss of `compressed` plus its divergence from the live views; [`certify`] says how far it is, by junction |
//! | [`Divergence`] | forward and reverse KL, generalised Jensen-Shannon, of any two branches with aligned targets ([`Pairs`]) |
//! | [`SdSearch`] | a policy gradient plus a divergence at search queries from the group's [`hindsight()`] |
//! | [`PolicyGradient`] | clipped surrogate against recorded log-probabilities, KL to a reference, truncated importance sampling |
//! | [`ValueHead`] | a critic and its clipped loss |
//!
//! [`group_advantages`] and [`gae()`] are plain functions over outcomes and values; [`Timelines`]
//! brings what they say to the loss terms of any layout; a [`Preset`] is what a paper does with
//! them. [`Health`] is what to look at in each step.
//!
//! ```
//! # fn main() -> Result<(), pleach_train::TrainError> {
//! # #[cfg(feature = "flex")] {
//! use pleach_layout::{Sequence, Term};
//! use pleach_train::{Batch, CausalModel, Decoder, DecoderConfig, DeviceName, Family, NllConfig, Precision};
//!
//! let device = DeviceName::Flex.open()?.autodiff();
//! let config = DecoderConfig::small(Family::Llama, 64, 2);
//! let model = Decoder::seeded(config, 7, Precision::F64, &device)?;
//! let term = Term { source: 1, target: 9, generation: 0, offset: 0, weight: 1.0 };
//! let sequence = Sequence { tokens: vec![3, 5, 9], positions: vec![0, 1, 2], ends: vec![3, 3, 3], terms: vec![term] };
//! let batch = Batch::new([&sequence], &device)?;
//! let output = NllConfig::new().init().forward(&model, &batch)?;
//! let gradients = output.loss.backward();
//! # let _ = (gradients, model.logits(model.hidden(&batch)?.reshape([3, 32])));
//! # }
//! # Ok(())
//! # }
//! ```
mod advantage;
mod batch;
mod checkpoint;
mod config;
mod decoder;
mod device;
mod equivalence;
mod error;
mod evaluation;
mod gap;
mod gradients;
mod health;
mod memory;
mod model;
mod objective;
mod precision;
mod union;

pub use advantage::{
    AdvantageConfig, Baseline, GaeConfig, GaeOutput, LambdaConfig, LengthReading, Overlong,
    RolloutAdvantage, RolloutOutcome, Scale, Timeline, Timelines, Timing, gae, group_advantages,
    pad_sequences, recorded_log_probabilities, segment_mean_weights, token_level_weights,
};
pub use batch::{Batch, BatchTerms};
pub use burn::tensor::Device;
pub use checkpoint::{load_decoder, read_config};
pub use config::{DecoderConfig, Family, RopeScaling};
pub use decoder::{Decoder, RmsNorm};
pub use device::DeviceName;
pub use equivalence::{Equivalence, compare};
pub use error::{ObjectiveError, TrainError};
pub use evaluation::{Evaluation, TermLogp, evaluate, log_probabilities, replay};
pub use gap::{DistanceGap, EvictionGap, Gap, GapSummary};
pub use gradients::{Gradient, GradientMap, collect_gradients, relative_gradient_error};
pub use health::{ClipDistance, Count, Health, HealthFigure, RolloutHealth, clip_fractions};
#[cfg(feature = "metrics")]
pub use health::{HealthInput, HealthMetric};
pub use memory::{MemoryEstimate, Workload};
pub use model::CausalModel;
pub use objective::{
    Alignment, ClipConfig, Divergence, DivergenceConfig, DivergenceKind, DivergenceOutput,
    Hindsight, HindsightTemplate, JunctionCertificate, MAX_LOG_RATIO, MovingAverage, Nll,
    NllConfig, NllOutput, Number, Pairs, PolicyGradient, PolicyGradientConfig,
    PolicyGradientOutput, PolicySignal, Preset, Query, Reduction, Residual, RowDivergence,
    SdSearch, SdSearchConfig, Sdcc, SdccBatch, SdccCertificate, SdccConfig, SdccCoverage,
    SdccOutput, SdccPolicyOutput, Support, Teacher, ValueHead, ValueHeadConfig, ValueOutput,
    certify, gradient_bound, hindsight, loss_bound, pinsker, residuals,
};
pub use precision::{Precision, to_dtype};
pub use union::{Union, union_log_probabilities};

//! Training on conditioning trees: a decoder, Hugging Face checkpoints, batches, objectives and the
//! equivalence check.
//!
//! A layout's [`Sequence`](pleach_layout::Sequence)s become a [`Batch`] of device tensors; a
//! [`Decoder`](decoder::Decoder) (or any burn model that implements [`CausalModel`]) turns it into
//! hidden states; an objective such as [`Nll`](objective::Nll) turns those into a loss over the loss
//! terms. [`equivalence::compare`] checks that two layouts mean the same to a model, to the last
//! gradient.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`decoder`] | a decoder of three families, its configuration, Hugging Face checkpoints |
//! | [`objective`] | losses over the loss terms of a batch |
//! | [`advantage`] | what outcomes and values say about loss terms, as plain functions |
//! | [`evaluation`] | log-probabilities and gradients of whole layouts |
//! | [`equivalence`] | whether two layouts mean the same |
//! | [`diagnostics`] | gaps of log-probabilities, the health of a step, the union mask |
//! | [`memory`] | what a pass will take |
//!
//! Every objective is a configuration, a module and a `forward`, and has a `forward_hidden` for
//! those that share a forward pass. None of them holds an array of loss terms x vocabulary, and
//! none knows how a rollout was cut:
//!
//! | objective | what it is |
//! | --- | --- |
//! | [`Nll`](objective::Nll) | token-level negative log-likelihood |
//! | [`Sdcc`](objective::Sdcc) | the loss of `compressed` plus its divergence from the live views; [`certify`](objective::certify) says how far it is, by junction |
//! | [`Divergence`](objective::Divergence) | forward and reverse KL, generalised Jensen-Shannon, of any two branches with aligned targets ([`Pairs`](objective::Pairs)) |
//! | [`SdSearch`](objective::SdSearch) | a policy gradient plus a divergence at search queries from the group's [`hindsight`](objective::hindsight()) |
//! | [`PolicyGradient`](objective::PolicyGradient) | clipped surrogate against recorded log-probabilities, KL to a reference, truncated importance sampling |
//! | [`ValueHead`](objective::ValueHead) | a critic and its clipped loss |
//!
//! [`group_advantages`](advantage::group_advantages) and [`gae`](advantage::gae()) are plain
//! functions over outcomes and values; [`Timelines`](advantage::Timelines) brings what they say to
//! the loss terms of any layout; a [`Preset`](objective::Preset) is what a paper does with them.
//! [`Health`](diagnostics::Health) is what to look at in each step.
//!
//! ```
//! # fn main() -> Result<(), pleach_train::TrainError> {
//! # #[cfg(feature = "flex")] {
//! use burn::tensor::{DType, Device};
//! use pleach_layout::{Sequence, Term};
//! use pleach_train::decoder::{Decoder, DecoderConfig, Family};
//! use pleach_train::{Batch, CausalModel, backward, objective::NllConfig};
//!
//! let device = Device::flex().autodiff();
//! let config = DecoderConfig::small(Family::Llama, 64, 2);
//! let model = Decoder::seeded(config, 7, DType::F64, &device)?;
//! let term = Term { source: 1, target: 9, generation: 0, offset: 0, weight: 1.0 };
//! let sequence = Sequence { tokens: vec![3, 5, 9], positions: vec![0, 1, 2], ends: vec![3, 3, 3], terms: vec![term] };
//! let batch = Batch::new([&sequence], &device)?;
//! let output = NllConfig::new().init().forward(&model, &batch)?;
//! let gradients = backward(&output.loss)?;
//! # let _ = (gradients, model.logits(model.hidden(&batch)?.reshape([3, 32])));
//! # }
//! # Ok(())
//! # }
//! ```
pub mod advantage;
mod backward;
mod batch;
pub mod decoder;
pub mod diagnostics;
mod dtype;
pub mod equivalence;
mod error;
pub mod evaluation;
pub mod memory;
mod model;
pub mod objective;

pub use backward::backward;
pub use batch::{Batch, BatchTerms};
pub use dtype::to_dtype;
pub use error::{ObjectiveError, TrainError};
pub use model::CausalModel;

//! How far a student is from a teacher at the same tokens under two conditionings.
mod kind;
mod pairs;
mod support;

pub use kind::DivergenceKind;
pub use pairs::{Alignment, Pairs};
pub use support::Support;

use super::{
    head::{flat, nothing, sum_in_chunks},
    logits::{column, log_softmax, target_ids, tempered},
    nll::DEFAULT_CHUNK,
    reduction::Reduction,
};
use crate::{
    error::{ObjectiveError, TrainError},
    model::CausalModel,
};
use burn::{
    config::Config,
    tensor::{Int, Tensor, TensorData},
};
use std::ops::Range;

/// Configuration of [`Divergence`].
#[derive(Config, Debug)]
pub struct DivergenceConfig {
    /// Which divergence.
    #[config(default = "DivergenceKind::ForwardKl")]
    pub kind: DivergenceKind,
    /// What of the vocabulary it looks at.
    #[config(default = "Support::Vocabulary")]
    pub support: Support,
    /// What both sides' logits are divided by; the divergence is not scaled back.
    #[config(default = 1.0)]
    pub temperature: f64,
    /// How pairs become one number.
    #[config(default = "Reduction::Sum")]
    pub reduction: Reduction,
    /// Pairs whose logits exist at one time.
    #[config(default = "DEFAULT_CHUNK")]
    pub chunk: usize,
}

impl DivergenceConfig {
    /// The objective of this configuration.
    pub fn init(&self) -> Divergence {
        Divergence { config: self.clone() }
    }
}

/// A divergence between the predictions of a student and of a teacher without gradient, in nats.
///
/// Logits of either side exist for one chunk of pairs at a time, forward and backward, and are
/// reduced in float32 or better.
#[derive(Debug, Clone)]
pub struct Divergence {
    config: DivergenceConfig,
}

/// What [`Divergence`] computes.
#[derive(Debug, Clone)]
pub struct DivergenceOutput {
    /// The loss, `[1]`, with its gradient to the student.
    pub loss: Tensor<1>,
    /// The divergence of each pair, `[pairs]`, in the order of [`Pairs`], without weights and
    /// without gradient.
    pub divergence_n: Tensor<1>,
    /// The total variation of each pair, `[pairs]`, without gradient; none from sampled tokens.
    pub total_variation_n: Option<Tensor<1>>,
}

/// The divergence of some rows of logits.
#[derive(Debug, Clone)]
pub struct RowDivergence {
    /// The divergence, `[k, 1]`, with its gradient to the student's logits.
    pub divergence_k1: Tensor<2>,
    /// The total variation, `[k, 1]`, without gradient; none from sampled tokens.
    pub total_variation_k1: Option<Tensor<2>>,
}

impl Divergence {
    /// The divergence of rows of logits that are there already, computed in the student's dtype, or
    /// in float32 where that is less.
    ///
    /// # Shapes
    /// `teacher_kv`, `student_kv`: `[k, vocabulary]`; `targets`: `[k]`, read for
    /// [`Support::SampledToken`] only.
    ///
    /// # Errors
    /// Settings out of range; shapes that differ; targets outside the vocabulary.
    pub fn rows(
        &self,
        teacher_kv: Tensor<2>,
        student_kv: Tensor<2>,
        targets: &[u32],
    ) -> Result<RowDivergence, TrainError> {
        self.check()?;
        if teacher_kv.dims() != student_kv.dims() {
            return Err(TrainError::ModelShape {
                what: "teacher's logits",
                expected: student_kv.dims().to_vec(),
                found: teacher_kv.dims().to_vec(),
            });
        }
        let (kind, temperature) = (self.config.kind, self.config.temperature);
        let teacher_kv = tempered(teacher_kv.without_autodiff(), temperature);
        let student_kv = tempered(student_kv, temperature);
        let teacher_kv = teacher_kv.cast(student_kv.dtype());
        let (logp_kb, logq_kb) = match self.config.support {
            Support::Vocabulary => (log_softmax(teacher_kv), log_softmax(student_kv)),
            Support::TopK(top) => support::buckets(teacher_kv, student_kv, top),
            Support::SampledToken => {
                let device = student_kv.device().without_autodiff();
                let targets_k1 = target_ids(&student_kv, targets, &device)?;
                let of = |logits_kv| log_softmax(logits_kv).gather(1, targets_k1.clone());
                let divergence_k1 = kind.of_sample(of(teacher_kv), of(student_kv));
                return Ok(RowDivergence { divergence_k1, total_variation_k1: None });
            }
        };
        let plain_kb = logq_kb.clone().without_autodiff();
        let total_variation_k1 = Some(kind::total_variation(logp_kb.clone(), plain_kb));
        Ok(RowDivergence { divergence_k1: kind.of_buckets(logp_kb, logq_kb), total_variation_k1 })
    }

    /// The divergence over pairs of rows of two batches.
    ///
    /// A pair of weight 0 gives exactly zero loss and gradient; where every weight is 0, or there
    /// are no pairs, so is the loss.
    ///
    /// # Shapes
    /// `student_btc`, `teacher_btc`: `[batch, time, width]` of either batch, from
    /// [`CausalModel::hidden`]; no gradient reaches the teacher's, nor its model.
    ///
    /// # Errors
    /// Settings out of range, as [`Nll`](crate::objective::Nll) besides, and a divergence that is not finite:
    /// a student that rules out what the teacher may say. Pairs that do not fit the hidden states;
    /// a teacher on another device than the student.
    pub fn forward_hidden<S: CausalModel, T: CausalModel>(
        &self,
        (student, student_btc): (&S, Tensor<3>),
        (teacher, teacher_btc): (&T, Tensor<3>),
        pairs: &Pairs,
    ) -> Result<DivergenceOutput, TrainError> {
        self.check()?;
        let (student_nc, teacher_nc) = (flat(student_btc), flat(teacher_btc.without_autodiff()));
        let device = student_nc.device().without_autodiff();
        if teacher_nc.device().without_autodiff() != device {
            let what = "student and teacher lie on two devices: move the teacher and its batch to the student's".to_owned();
            return Err(TrainError::Unsupported { what });
        }
        pairs.check(student_nc.dims()[0], teacher_nc.dims()[0])?;
        if pairs.is_empty() {
            let none_n = Tensor::from_data(
                TensorData::new(Vec::<f64>::new(), [0]),
                (&device, student_nc.dtype()),
            );
            let total_variation_n =
                (self.config.support != Support::SampledToken).then(|| none_n.clone());
            return Ok(DivergenceOutput {
                loss: nothing(&student_nc),
                divergence_n: none_n,
                total_variation_n,
            });
        }
        let factor = 1.0 / self.config.reduction.normaliser(&pairs.weights)?;
        let (mut divergences, mut variations) = (Vec::new(), Vec::new());
        let loss_of = |range: Range<usize>, student_kv: Tensor<2>| {
            let rows_k = Tensor::<1, Int>::from_data(&pairs.teachers[range.clone()], &device);
            let teacher_kv = teacher.logits(teacher_nc.clone().select(0, rows_k));
            let rows = self.rows(teacher_kv, student_kv, &pairs.targets[range.clone()])?;
            divergences.push(rows.divergence_k1.clone().without_autodiff().flatten::<1>(0, 1));
            variations.extend(
                rows.total_variation_k1.map(|variation_k1| variation_k1.flatten::<1>(0, 1)),
            );
            let weights = pairs.weights[range].iter().map(|weight| weight * factor).collect();
            let weights_k1 = column(weights, &rows.divergence_k1, &device);
            let silent_k1 = weights_k1.clone().equal_scalar(0.0);
            Ok(rows.divergence_k1.mask_fill(silent_k1, 0.0).mul(weights_k1).sum())
        };
        let loss =
            sum_in_chunks(student, &student_nc, &pairs.students, self.config.chunk, loss_of)?;
        super::finite(&loss, "divergence", pairs.len())?;
        let total_variation_n = (!variations.is_empty()).then(|| Tensor::cat(variations, 0));
        Ok(DivergenceOutput { loss, divergence_n: Tensor::cat(divergences, 0), total_variation_n })
    }

    fn check(&self) -> Result<(), TrainError> {
        if self.config.chunk == 0 {
            return Err(TrainError::EmptyChunk);
        }
        let temperature = self.config.temperature;
        if !(temperature.is_finite() && temperature > 0.0) {
            return Err(ObjectiveError::Setting {
                setting: "the temperature of a divergence",
                value: temperature,
                expected: "a positive finite number",
            }
            .into());
        }
        self.config.kind.check()?;
        self.config.support.check()
    }
}

//! Self-distillation for conditioning consistency (SDCC; arXiv 2609.00865).
mod batch;
mod bounds;
mod certificate;
mod residual;
mod teacher;

pub use batch::SdccBatch;
pub use bounds::{gradient_bound, loss_bound, pinsker};
pub use certificate::{JunctionCertificate, Residual, SdccCertificate, SdccCoverage};
pub use residual::{certify, residuals};
pub use teacher::{MovingAverage, Teacher};

use super::{
    divergence::{DivergenceConfig, DivergenceOutput},
    head::hidden_states,
    nll::{DEFAULT_CHUNK, NllConfig, NllOutput},
    policy_gradient::{PolicyGradient, PolicyGradientOutput, PolicySignal},
    reduction::Reduction,
};
use crate::{
    batch::BatchTerms,
    error::{ObjectiveError, TrainError},
    model::CausalModel,
};
use burn::{config::Config, tensor::Tensor};

/// Configuration of [`Sdcc`].
#[derive(Config, Debug)]
pub struct SdccConfig {
    /// Weight of the residual once the ramp is over.
    #[config(default = 0.1)]
    pub lambda: f64,
    /// Fraction of the steps over which the weight rises from 0.
    #[config(default = 0.2)]
    pub ramp: f64,
    /// How the residual is measured; its reduction and chunk are not read, they are those below.
    #[config(default = "DivergenceConfig::new()")]
    pub divergence: DivergenceConfig,
    /// How terms become one number, for the task loss and the residual alike.
    #[config(default = "Reduction::Sum")]
    pub reduction: Reduction,
    /// Loss terms whose logits exist at one time, for the task loss and the residual alike.
    #[config(default = "DEFAULT_CHUNK")]
    pub chunk: usize,
}

impl SdccConfig {
    /// The objective of this configuration.
    pub fn init(&self) -> Sdcc {
        Sdcc { config: self.clone() }
    }
}

/// The loss of `compressed` plus lambda times the divergence from the live views, at diverging
/// terms and only there.
///
/// `L = L_task(compressed) + lambda * sum_p KL(sg[p(. | live view_p)] || p(. | compressed prefix_p))`,
/// arXiv 2609.00865. One backward pass, through the student alone.
#[derive(Debug, Clone)]
pub struct Sdcc {
    config: SdccConfig,
}

/// What [`Sdcc`] computes.
#[derive(Debug, Clone)]
pub struct SdccOutput {
    /// The loss, `[1]`, with its gradient to the student.
    pub loss: Tensor<1>,
    /// The task loss alone.
    pub task: NllOutput,
    /// The residual alone; none where lambda is 0 or no term diverges, and no teacher was asked.
    pub residual: Option<DivergenceOutput>,
}

/// What [`Sdcc::forward_policy`] computes.
#[derive(Debug, Clone)]
pub struct SdccPolicyOutput {
    /// The loss, `[1]`, with its gradient to the student.
    pub loss: Tensor<1>,
    /// The policy gradient alone, divided as the loss is.
    pub task: PolicyGradientOutput,
    /// The residual alone, divided as the loss is; none where lambda is 0 or no term diverges, and
    /// no teacher was asked.
    pub residual: Option<DivergenceOutput>,
}

impl Sdcc {
    /// The weight of the residual at a step, counted from 0, of so many: a line from 0, then
    /// constant.
    ///
    /// # Errors
    /// A lambda below 0 or not finite, a ramp outside 0 to 1.
    pub fn lambda(&self, step: usize, steps: usize) -> Result<f64, TrainError> {
        let SdccConfig { lambda, ramp, .. } = self.config;
        check(lambda)?;
        if !(0.0..=1.0).contains(&ramp) {
            let expected = "a fraction of the steps, 0 to 1";
            return Err(ObjectiveError::Setting {
                setting: "the ramp of the SDCC residual",
                value: ramp,
                expected,
            }
            .into());
        }
        let (step, end) = (step as f64, ramp * steps as f64);
        Ok(if step >= end { lambda } else { lambda * (step / end) })
    }

    /// The loss of one batch: a forward pass of the student over `compressed`, one of the teacher
    /// over the live views.
    ///
    /// With a lambda of 0, or where no term diverges, this is exactly the task loss and no teacher
    /// runs.
    ///
    /// # Errors
    /// As [`Nll`](crate::objective::Nll) and [`Divergence`](crate::objective::Divergence); a lambda below 0 or not
    /// finite; what a model finds wrong.
    pub fn forward<M: CausalModel>(
        &self,
        student: &M,
        teacher: &Teacher<M>,
        batch: &SdccBatch,
        lambda: f64,
    ) -> Result<SdccOutput, TrainError> {
        check(lambda)?;
        let student_btc = hidden_states(student, &batch.student)?;
        let nll = NllConfig::new()
            .with_reduction(self.config.reduction)
            .with_chunk(self.config.chunk)
            .init();
        let task = nll.forward_hidden(student, student_btc.clone(), batch.student.terms())?;
        if lambda == 0.0 || batch.pairs.is_empty() {
            return Ok(SdccOutput { loss: task.loss.clone(), task, residual: None });
        }
        let residual =
            self.residual(student, student_btc, teacher, batch, batch.student.terms())?;
        let loss = task.loss.clone().add(residual.loss.clone().mul_scalar(lambda));
        Ok(SdccOutput { loss, task, residual: Some(residual) })
    }

    /// A policy gradient over `compressed` plus lambda times the residual, both divided by one
    /// number: what this objective's reduction makes of the weights of `terms`.
    ///
    /// `L = (sum_p w_p l_p + lambda * sum_p w_p KL_p) / N`, with `l_p` the clipped surrogate of
    /// `policy`, whose own reduction is not read, and N the sum of the weights under a weighted
    /// mean. So lambda means the same however many terms there are and diverge, a masked rollout is
    /// neither rewarded nor pulled, and parts of a batch under [`Reduction::Over`] the whole
    /// batch's weights add up to it. The composition is that of arXiv 2609.00865 with the surrogate
    /// as its task loss.
    ///
    /// `terms` are those of [`SdccBatch::student`] with the weights that count now.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "flex")] {
    /// # use burn::tensor::{DType, Device};
    /// # use pleach_train::decoder::{Decoder, DecoderConfig, Family};
    /// # use pleach_tree::{BranchTree, ReadOptions};
    /// # let records = include_str!("../../../../../examples/records/group.jsonl");
    /// # let (tree, _) = BranchTree::read(records.as_bytes(), "group.jsonl", ReadOptions::STRICT)?;
    /// # let device = Device::flex().autodiff();
    /// # let config = DecoderConfig::small(Family::Llama, 258, 1);
    /// # let model = Decoder::seeded(config, 0, DType::F64, &device)?;
    /// use pleach_layout::Layouts;
    /// use pleach_train::advantage::{AdvantageConfig, Timelines, group_advantages};
    /// use pleach_train::objective::{
    ///     PolicyGradientConfig, PolicySignal, Reduction, SdccBatch, SdccConfig, Teacher,
    /// };
    ///
    /// let layouts = Layouts::new(&tree)?;
    /// let batch = SdccBatch::new(&layouts, &device)?;
    /// let timelines = Timelines::of(&layouts);
    /// let rollouts = group_advantages(&AdvantageConfig::new(), &timelines.outcomes(&layouts)?)?;
    /// let (advantages, terms) = timelines.broadcast(batch.student.terms(), &rollouts)?;
    /// # let recorded = vec![-5.0; terms.len()];
    /// let signal = PolicySignal::new(advantages, recorded);
    ///
    /// let sdcc = SdccConfig::new().with_reduction(Reduction::WeightedMean).init();
    /// let policy = PolicyGradientConfig::new().init();
    /// let parts = (&policy, &terms, &signal);
    /// let output = sdcc.forward_policy(&model, &Teacher::Live, &batch, parts, 0.3)?;
    /// let gradients = pleach_train::backward(&output.loss)?;
    /// # let _ = gradients;
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`forward`](Self::forward) and [`PolicyGradient`].
    pub fn forward_policy<M: CausalModel>(
        &self,
        student: &M,
        teacher: &Teacher<M>,
        batch: &SdccBatch,
        (policy, terms, signal): (&PolicyGradient, &BatchTerms, &PolicySignal),
        lambda: f64,
    ) -> Result<SdccPolicyOutput, TrainError> {
        check(lambda)?;
        let student_btc = hidden_states(student, &batch.student)?;
        let policy = policy.with_reduction(self.config.reduction.fixed(terms)?);
        let task = policy.forward_hidden(student, student_btc.clone(), terms, signal)?;
        if lambda == 0.0 || batch.pairs.is_empty() {
            return Ok(SdccPolicyOutput { loss: task.loss.clone(), task, residual: None });
        }
        let residual = self.residual(student, student_btc, teacher, batch, terms)?;
        let loss = task.loss.clone().add(residual.loss.clone().mul_scalar(lambda));
        Ok(SdccPolicyOutput { loss, task, residual: Some(residual) })
    }

    /// The residual of a batch whose hidden states are there already, to be added to a task loss of
    /// one's own over the same `terms`: it has their weights, and is divided by what this
    /// objective's reduction makes of them.
    ///
    /// # Shapes
    /// `student_btc`: `[batch, time, width]` of [`SdccBatch::student`].
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn residual<M: CausalModel>(
        &self,
        student: &M,
        student_btc: Tensor<3>,
        teacher: &Teacher<M>,
        batch: &SdccBatch,
        terms: &BatchTerms,
    ) -> Result<DivergenceOutput, TrainError> {
        let teacher = teacher.model(student).valid();
        let teacher_btc = hidden_states(&teacher, &batch.teacher)?;
        let reduction = self.config.reduction.fixed(terms)?;
        let pairs = batch.pairs.reweighted(terms)?;
        let divergence = self
            .config
            .divergence
            .clone()
            .with_reduction(reduction)
            .with_chunk(self.config.chunk)
            .init();
        divergence.forward_hidden((student, student_btc), (&teacher, teacher_btc), &pairs)
    }
}

/// Refuses a weight of the residual that would push the student away from its teacher, or make
/// every parameter NaN.
fn check(lambda: f64) -> Result<(), TrainError> {
    if lambda.is_finite() && lambda >= 0.0 {
        return Ok(());
    }
    let expected = "a finite number, 0 or above";
    Err(ObjectiveError::Setting {
        setting: "the weight of the SDCC residual",
        value: lambda,
        expected,
    }
    .into())
}

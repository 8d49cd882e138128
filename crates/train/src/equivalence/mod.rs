//! Whether two layouts of one tree mean the same to a model, to the last gradient.
mod gradients;

pub use gradients::{Gradient, GradientMap, collect_gradients, relative_gradient_error};
pub(crate) use gradients::{larger, zero_gradients};

use crate::{
    error::TrainError,
    evaluation::{Evaluation, Placement, TermLogp, evaluate},
    model::CausalModel,
};
use burn::tensor::DType;
use pleach_layout::{Sequence, TermId};
use std::collections::BTreeMap;

/// How far two layouts of one tree are from each other under a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Equivalence {
    /// Largest |log p - log p| over loss terms, in nats.
    pub max_logp_difference: f64,
    /// Relative error of the gradients of the summed negative log-likelihood, as
    /// [`relative_gradient_error`] defines it.
    pub relative_gradient_error: f64,
    /// The dtype that it was computed in.
    pub dtype: DType,
}

impl Equivalence {
    /// Compares what a model says about two layouts of one tree.
    ///
    /// # Errors
    /// Layouts with different loss terms.
    pub fn between(
        found: &Evaluation,
        expected: &Evaluation,
        dtype: DType,
    ) -> Result<Self, TrainError> {
        Ok(Self {
            max_logp_difference: max_difference(&found.logp, &expected.logp)?,
            relative_gradient_error: relative_gradient_error(&expected.gradients, &found.gradients),
            dtype,
        })
    }

    /// Whether the two are equal to rounding.
    ///
    /// In float64 to 1e-10 nats and 1e-9 of the gradient, which is 5e5 and 5e6 units of rounding:
    /// deep models and long rows add many. In float32 to 1e-3 and 1e-2, some 1e4 and 1e5 units,
    /// since what cancels in a gradient loses more. A layout that conditions on other tokens is off
    /// by whole fractions of a nat.
    pub fn holds(&self) -> bool {
        let (logp, gradient) = if self.dtype == DType::F64 { (1e-10, 1e-9) } else { (1e-3, 1e-2) };
        self.max_logp_difference <= logp && self.relative_gradient_error <= gradient
    }

    /// What a difference of this size most likely comes from; `None` where the two are equal to
    /// rounding.
    ///
    /// Below 1e-4 in float64, which is a thousand units of float32, it is most often an operation
    /// that computes in float32; a far token of little weight that is seen by mistake can be as
    /// small. Other conditioning is off by whole fractions of a nat as a rule.
    pub fn likely_cause(&self) -> Option<&'static str> {
        if self.holds() {
            return None;
        }
        let worst = larger(self.max_logp_difference, self.relative_gradient_error);
        Some(if !worst.is_finite() {
            "a log-probability or gradient is no number: look at the weights, and at rows that see nothing"
        } else if self.dtype == DType::F64 && worst < 1e-4 {
            "an operation of the model may compute in float32 (burn's RmsNorm does): use one that keeps float64, such as pleach_train::decoder::RmsNorm; if none does, look at mask and positions"
        } else {
            "tokens see others than they should: check that the model reads the batch's mask and positions, and that nothing mixes rows, such as dropout or statistics over the batch"
        })
    }
}

/// Compares a layout with the segments of the same tree: every log-probability and every gradient.
///
/// In float64 a correct model holds to 1e-10 nats, if every operation of it computes in float64;
/// [`Equivalence::likely_cause`] says what a failure looks like.
///
/// `progress` is called with sequences done and sequences in total.
///
/// # Errors
/// Layouts with different loss terms, and whatever the model cannot take.
pub fn compare<M: CausalModel>(
    model: &M,
    packed: &[Sequence],
    segments: &[Sequence],
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Equivalence, TrainError> {
    let total = packed.len() + segments.len();
    let found = evaluate(model, packed, &mut |done| progress(done, total))?;
    let expected = evaluate(model, segments, &mut |done| progress(packed.len() + done, total))?;
    Equivalence::between(&found, &expected, Placement::of(model)?.dtype)
}

fn max_difference(found: &[TermLogp], expected: &[TermLogp]) -> Result<f64, TrainError> {
    let mut open: BTreeMap<TermId, f64> =
        expected.iter().map(|term| (term.id(), term.logp)).collect();
    let differ = |TermId { generation, offset }| TrainError::TermsDiffer { generation, offset };
    let mut worst = 0.0;
    for term in found {
        let other = open.remove(&term.id()).ok_or(differ(term.id()))?;
        worst = larger(worst, (term.logp - other).abs());
    }
    match open.into_keys().next() {
        Some(key) => Err(differ(key)),
        None => Ok(worst),
    }
}

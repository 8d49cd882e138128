//! Which buckets a divergence looks at.
use super::super::logits::log_softmax;
use crate::error::{ObjectiveError, TrainError};
use burn::{
    config::Config,
    tensor::{IndexingUpdateOp, Tensor},
};

/// What of the vocabulary a divergence looks at.
#[derive(Config, Debug, Copy, PartialEq)]
pub enum Support {
    /// Every token.
    Vocabulary,
    /// The teacher's k likeliest tokens, and all others as one bucket: a lower bound of the
    /// divergence, exact from k = vocabulary - 1.
    TopK(usize),
    /// The sampled token alone, without a total variation: an estimate whose mean is the divergence
    /// where the teacher's distribution is what the token was sampled from.
    ///
    /// It is biased downwards where the student allows what the teacher never samples, which no
    /// sample shows, and where the ratio of the two is cut off at
    /// e^[`MAX_LOG_RATIO`](crate::objective::MAX_LOG_RATIO).
    SampledToken,
}

impl Support {
    pub(super) fn check(self) -> Result<(), TrainError> {
        match self {
            Self::TopK(0) => Err(ObjectiveError::Setting {
                setting: "the number of likeliest tokens of a divergence",
                value: 0.0,
                expected: "at least 1, or the whole vocabulary",
            }
            .into()),
            _ => Ok(()),
        }
    }
}

/// Log-probabilities of the teacher's k likeliest tokens and of all others together.
///
/// # Shapes
/// `teacher_kv`, `student_kv`: logits, `[k, vocabulary]`; returns two of `[k, top + 1]`.
pub(super) fn buckets(
    teacher_kv: Tensor<2>,
    student_kv: Tensor<2>,
    top: usize,
) -> (Tensor<2>, Tensor<2>) {
    let (logp_kv, logq_kv) = (log_softmax(teacher_kv), log_softmax(student_kv));
    if top >= logp_kv.dims()[1].saturating_sub(1) {
        return (logp_kv, logq_kv);
    }
    let (top_p_kt, top_kt) = logp_kv.clone().topk_with_indices(top, 1);
    let chosen_kv = logp_kv.zeros_like().scatter(
        1,
        top_kt.clone(),
        top_p_kt.ones_like(),
        IndexingUpdateOp::Add,
    );
    let chosen_kv = chosen_kv.greater_scalar(0.5);
    let top_q_kt = logq_kv.clone().gather(1, top_kt);
    let rest = |log_kv: Tensor<2>| {
        let rest_k1 = log_kv.exp().mask_fill(chosen_kv.clone(), 0.0).sum_dim(1);
        let nothing_k1 = rest_k1.clone().equal_scalar(0.0);
        rest_k1.mask_fill(nothing_k1.clone(), 1.0).log().mask_fill(nothing_k1, f64::NEG_INFINITY)
    };
    let (rest_p_k1, rest_q_k1) = (rest(logp_kv), rest(logq_kv));
    (Tensor::cat(vec![top_p_kt, rest_p_k1], 1), Tensor::cat(vec![top_q_kt, rest_q_k1], 1))
}

//! Divergences of distributions that are given as log-probabilities of buckets.
//!
//! Everywhere `p` is the teacher and `q` the student. A bucket of probability 0 on the side that is
//! averaged over counts nothing.
use crate::error::{ObjectiveError, TrainError};
use burn::{config::Config, tensor::Tensor};

/// Which divergence of the student q from the teacher p.
#[derive(Config, Debug, Copy, PartialEq)]
pub enum DivergenceKind {
    /// `KL(p || q)`, whose gradient to the student's logits is q - p.
    ForwardKl,
    /// `KL(q || p)`.
    ReverseKl,
    /// `beta KL(p || m) + (1 - beta) KL(q || m)` with `m = beta p + (1 - beta) q`, beta between 0
    /// and 1 (Agarwal et al., arXiv 2306.13649). Symmetric and at most log 2 at one half; never
    /// infinite.
    JensenShannon(f64),
}

impl DivergenceKind {
    pub(super) fn check(self) -> Result<(), TrainError> {
        match self {
            Self::JensenShannon(beta) if !(beta > 0.0 && beta < 1.0) => Err(ObjectiveError::Setting {
                setting: "the mixing weight of the Jensen-Shannon divergence",
                value: beta,
                expected: "a number between 0 and 1, ends excluded: at the ends use forward or reverse KL",
            }
            .into()),
            _ => Ok(()),
        }
    }

    /// The divergence of each row.
    ///
    /// # Shapes
    /// `logp_kb`, `logq_kb`: `[k, buckets]`; returns `[k, 1]`.
    pub(super) fn of_buckets(self, logp_kb: Tensor<2>, logq_kb: Tensor<2>) -> Tensor<2> {
        match self {
            Self::ForwardKl => relative_entropy(logp_kb, logq_kb),
            Self::ReverseKl => relative_entropy(logq_kb, logp_kb),
            Self::JensenShannon(beta) => {
                let (logp_kb, logq_kb) = (finite(logp_kb), finite(logq_kb));
                let logm_kb = log_mixture(beta, logp_kb.clone(), logq_kb.clone());
                let to_p_k1 = relative_entropy(logp_kb, logm_kb.clone()).mul_scalar(beta);
                to_p_k1.add(relative_entropy(logq_kb, logm_kb).mul_scalar(1.0 - beta))
            }
        }
    }

    /// An estimate of the divergence from one token that the teacher sampled: f(r) with r = q / p
    /// at that token.
    ///
    /// Each f has f(1) = f'(1) = 0 and is convex, so an estimate is never below 0: the terms that
    /// make it so have mean 0 where q has no mass outside the support of p. log r is cut off at
    /// [`MAX_LOG_RATIO`](crate::objective::MAX_LOG_RATIO), so r cannot overflow. Where both sides rule the
    /// token out, which the teacher then did not sample, they agree: r is 1.
    ///
    /// # Shapes
    /// `logp_k1`, `logq_k1` and the result: `[k, 1]`.
    pub(super) fn of_sample(self, logp_k1: Tensor<2>, logq_k1: Tensor<2>) -> Tensor<2> {
        let ruled_out = |log_k1: &Tensor<2>| log_k1.clone().equal_scalar(f64::NEG_INFINITY);
        let both_k1 = ruled_out(&logp_k1).bool_and(ruled_out(&logq_k1));
        let (logp_k1, logq_k1) =
            (logp_k1.mask_fill(both_k1.clone(), 0.0), logq_k1.mask_fill(both_k1, 0.0));
        let log_ratio_k1 = logq_k1.sub(logp_k1).clamp_max(crate::objective::MAX_LOG_RATIO);
        match self {
            Self::ForwardKl => log_ratio_k1.clone().exp().sub_scalar(1.0).sub(log_ratio_k1),
            Self::ReverseKl => {
                let ratio_k1 = log_ratio_k1.clone().exp();
                ratio_k1.clone().mul(finite(log_ratio_k1)).sub(ratio_k1).add_scalar(1.0)
            }
            Self::JensenShannon(beta) => {
                let log_ratio_k1 = finite(log_ratio_k1);
                let logm_k1 = log_mixture(beta, log_ratio_k1.zeros_like(), log_ratio_k1.clone());
                let of_q_k1 = log_ratio_k1.clone().exp().mul(log_ratio_k1.sub(logm_k1.clone()));
                of_q_k1.mul_scalar(1.0 - beta).sub(logm_k1.mul_scalar(beta))
            }
        }
    }
}

/// `sum a (log a - log b)`, where an `a` of 0 counts nothing.
fn relative_entropy(loga_kb: Tensor<2>, logb_kb: Tensor<2>) -> Tensor<2> {
    let a_kb = loga_kb.clone().exp();
    let impossible_kb = a_kb.clone().equal_scalar(0.0);
    a_kb.mul(loga_kb.sub(logb_kb).mask_fill(impossible_kb, 0.0)).sum_dim(1)
}

/// log(beta a + (1 - beta) b) of finite log a and log b.
fn log_mixture(beta: f64, loga_kb: Tensor<2>, logb_kb: Tensor<2>) -> Tensor<2> {
    let (a_kb, b_kb) = (loga_kb.add_scalar(beta.ln()), logb_kb.add_scalar((1.0 - beta).ln()));
    let larger_kb = a_kb.clone().detach();
    let smaller_kb = b_kb.clone().detach();
    let max_kb = larger_kb.clone().mask_where(larger_kb.lower(smaller_kb.clone()), smaller_kb);
    a_kb.sub(max_kb.clone()).exp().add(b_kb.sub(max_kb.clone()).exp()).log().add(max_kb)
}

/// -inf as a number whose exponential is 0 in every dtype.
fn finite(log_kb: Tensor<2>) -> Tensor<2> {
    let impossible_kb = log_kb.clone().equal_scalar(f64::NEG_INFINITY);
    log_kb.mask_fill(impossible_kb, -1e4)
}

/// Half the sum of |p - q| of each row; over buckets that merge tokens, a lower bound of it.
///
/// # Shapes
/// `logp_kb`, `logq_kb`: `[k, buckets]`; returns `[k, 1]`.
pub(super) fn total_variation(logp_kb: Tensor<2>, logq_kb: Tensor<2>) -> Tensor<2> {
    logp_kb.exp().sub(logq_kb.exp()).abs().sum_dim(1).mul_scalar(0.5)
}

use crate::sizes::AttentionSizes;
use burn::tensor::{Bool, Tensor};

/// Stands for "never the maximum" among scores; what is masked is set to 0 after the exponential,
/// so its size is free.
const MASKED_SCORE: f64 = -1e30;

/// Dense attention under an explicit mask, in plain tensor operations.
///
/// The row maximum is a constant to the gradient, and masked weights are zeroed after the
/// exponential: a row that sees nothing is then 0/1 and not NaN, in the value and in every
/// gradient.
///
/// # Shapes
/// - `q_bhtd`: `[batch, heads_q, rows, head_dim]`, `k_bgtd`, `v_bgtd`:
///   `[batch, heads_kv, time, head_dim]`
/// - `masked_b1rt`: `[batch, 1, rows, time]`, burn's polarity, true = masked
/// - returns `[batch, heads_q, rows, head_dim]`
pub(crate) fn masked_attention(
    [q_bhtd, k_bgtd, v_bgtd]: [Tensor<4>; 3],
    masked_b1rt: Tensor<4, Bool>,
    problem: AttentionSizes,
    scale: f64,
) -> Tensor<4> {
    let AttentionSizes { batch, heads_q, heads_kv, time, head_dim } = problem;
    let rows = q_bhtd.dims()[2];
    let grouped = [batch, heads_kv, heads_q / heads_kv * rows];
    let [b, g, r] = grouped;
    let square = [batch, heads_q, rows, time];
    let masked_bhrt = masked_b1rt.expand(square);

    let q_bgrd = q_bhtd.mul_scalar(scale).reshape([b, g, r, head_dim]);
    let scores_bhrt = q_bgrd.matmul(k_bgtd.swap_dims(2, 3)).reshape(square);
    let scores_bhrt = scores_bhrt.mask_fill(masked_bhrt.clone(), MASKED_SCORE);
    let max_bhr1 = scores_bhrt.clone().detach().max_dim(3);
    let weights_bhrt = scores_bhrt.sub(max_bhr1).exp().mask_fill(masked_bhrt, 0.0);
    let sum_bhr1 = weights_bhrt.clone().sum_dim(3);
    let empty_bhr1 = sum_bhr1.clone().equal_scalar(0.0);
    let weights_bhrt = weights_bhrt.div(sum_bhr1.mask_fill(empty_bhr1, 1.0));
    let o_bgrd = weights_bhrt.reshape([b, g, r, time]).matmul(v_bgtd);
    o_bgrd.reshape([batch, heads_q, rows, head_dim])
}

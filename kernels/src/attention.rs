use crate::{
    error::KernelError,
    mask::{TreeMask, dense_mask},
    problem::Problem,
    reference::masked_attention,
};
use burn::tensor::Tensor;

/// Which implementation computes attention.
///
/// The dense reference is the only one. Others are variants beside it: they mean the same, and a forced choice that the device
/// cannot run is an error, never a fallback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Execution {
    /// The fastest one that the device runs: the reference.
    #[default]
    Auto,
    /// Dense, in plain tensor operations, on any device: the definition of what is right.
    Reference,
}

/// How scores are scaled and which implementation computes them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionConfig {
    /// Factor of `q k^T`, 1/sqrt(head_dim) as a rule.
    pub scale: f64,
    /// Which implementation runs.
    pub execution: Execution,
}

impl AttentionConfig {
    /// The usual scale of heads with `head_dim` features, with the execution left to the device.
    pub fn for_head_dim(head_dim: usize) -> Self {
        Self { scale: 1.0 / (head_dim as f64).sqrt(), execution: Execution::Auto }
    }
}

/// Attention over packed trees: `softmax(q k^T * scale + mask) v`, differentiable in q, k and v.
///
/// A row that sees nothing gives exact zeros and takes and gives exactly zero gradients. Query head `h` reads key/value head
/// `h / (heads_q / heads_kv)`. Formula: scaled dot-product attention, arXiv 1706.03762, under the packed mask of
/// arXiv 2609.00865; grouped-query attention, arXiv 2305.13245.
///
/// # Shapes
/// - `q_bhtd`: `[batch, heads_q, time, head_dim]`, float32 or float64, rotated already
/// - `k_bgtd`, `v_bgtd`: `[batch, heads_kv, time, head_dim]`, of the same dtype
/// - returns `[batch, heads_q, time, head_dim]`
///
/// # Errors
/// Shapes, head counts, dtypes or devices that do not fit each other or the mask; float64 on wgpu.
pub fn tree_attention(
    q_bhtd: Tensor<4>,
    k_bgtd: Tensor<4>,
    v_bgtd: Tensor<4>,
    mask: &TreeMask,
    config: &AttentionConfig,
) -> Result<Tensor<4>, KernelError> {
    let tensors = [&q_bhtd, &k_bgtd, &v_bgtd];
    let problem = Problem::check(tensors, mask.dims(), &mask.device(), config.scale)?;
    match config.execution {
        Execution::Auto | Execution::Reference => {
            let masked_b1tt = dense_mask(mask);
            Ok(masked_attention([q_bhtd, k_bgtd, v_bgtd], masked_b1tt, problem, config.scale))
        }
    }
}

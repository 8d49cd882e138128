use crate::{
    error::KernelError,
    mask::{TreeMask, dense_mask},
    reference::masked_attention,
    sizes::AttentionSizes,
};
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
use burn::backend::DispatchDevice;
use burn::tensor::{Device, Tensor};

/// Which implementation computes attention.
///
/// All mean the same. A choice that the device cannot run is an error, never a fallback, and so is
/// a dtype or a size that the execution does not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Execution {
    /// The block-sparse kernels of the device, or the reference on a device that has none; chosen
    /// by the device alone.
    #[default]
    Auto,
    /// Dense, in plain tensor operations, on any device: the definition of what is right.
    Reference,
    /// Block-sparse on CPU devices, flex and ndarray, in float32 and float64.
    Cpu,
    /// Block-sparse on the devices of CubeCL, in float32 and, where the device has them, float16
    /// and bfloat16; heads of at most 256 features.
    Cube,
}

impl Execution {
    /// What runs on a device if `self` is asked for: never [`Execution::Auto`].
    ///
    /// # Errors
    /// A forced execution that does not run on the device or was not built in.
    pub fn on(self, device: &Device) -> Result<Self, KernelError> {
        let native = Self::native(device);
        match self {
            Self::Reference => Ok(Self::Reference),
            Self::Auto => Ok(native),
            forced if forced == native => Ok(forced),
            execution => {
                let advice = match native {
                    Self::Cpu => "Execution::Auto or Execution::Cpu",
                    Self::Cube => "Execution::Auto or Execution::Cube",
                    _ => "Execution::Auto or Execution::Reference",
                };
                Err(KernelError::Execution { execution, device: format!("{device:?}"), advice })
            }
        }
    }

    fn native(device: &Device) -> Self {
        match device.clone().without_autodiff().as_dispatch() {
            #[cfg(feature = "flex")]
            DispatchDevice::Flex(_) => Self::Cpu,
            #[cfg(feature = "ndarray")]
            DispatchDevice::NdArray(_) => Self::Cpu,
            #[cfg(feature = "cube")]
            DispatchDevice::Cube(_) => Self::Cube,
            _ => Self::Reference,
        }
    }
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
/// A row that sees nothing gives exact zeros and takes and gives exactly zero gradients. Query head
/// `h` reads key/value head `h / (heads_q / heads_kv)`. Formula: scaled dot-product attention,
/// arXiv 1706.03762, under the packed mask of arXiv 2609.00865; grouped-query attention, arXiv
/// 2305.13245.
///
/// The block-sparse executions keep q, k, v, the output and one number a row for the backward pass,
/// and compute the weights again: memory O(time x head_dim), forward and backward. Their results do
/// not depend on the number of threads, and a row's not on what else is packed beside its tree.
///
/// # Shapes
/// - `q_bhtd`: `[batch, heads_q, time, head_dim]`, rotated already, in a dtype of the execution:
///   float32; float64 on CPU devices; float16 and bfloat16, with float32 sums, on devices of CubeCL
///   that have them
/// - `k_bgtd`, `v_bgtd`: `[batch, heads_kv, time, head_dim]`, of the same dtype
/// - returns `[batch, heads_q, time, head_dim]`
///
/// # Errors
/// - shapes, head counts, dtypes or devices that do not fit each other or the mask; heads without
///   features; a scale that is not finite
/// - a forced execution that the device does not run, or a dtype that the execution does not
///   compute in: float64 on wgpu and in all kernels of CubeCL, half precision in any other
///   execution, or where the device has none
/// - more live tiles than a `u32` counts
/// - on devices of CubeCL, heads of more than 256 features and what exceeds a limit of the device
pub fn tree_attention(
    q_bhtd: Tensor<4>,
    k_bgtd: Tensor<4>,
    v_bgtd: Tensor<4>,
    mask: &TreeMask,
    config: &AttentionConfig,
) -> Result<Tensor<4>, KernelError> {
    let tensors = [&q_bhtd, &k_bgtd, &v_bgtd];
    let execution = config.execution.on(&q_bhtd.device())?;
    let problem =
        AttentionSizes::check(tensors, mask.dims(), &mask.device(), execution, config.scale)?;
    match execution {
        #[cfg(any(feature = "cpu", feature = "cube"))]
        Execution::Cpu | Execution::Cube => {
            let call = crate::call::Call::plan(problem, q_bhtd.dtype(), mask, config.scale)?;
            Ok(crate::extension::run([q_bhtd, k_bgtd, v_bgtd], call))
        }
        _ => {
            Ok(masked_attention([q_bhtd, k_bgtd, v_bgtd], dense_mask(mask), problem, config.scale))
        }
    }
}

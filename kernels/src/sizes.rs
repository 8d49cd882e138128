use crate::{attention::Execution, error::KernelError};
use burn::tensor::{DType, Device, Tensor};

/// The sizes of one attention call, checked before anything is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttentionSizes {
    /// Rows of the batch.
    pub(crate) batch: usize,
    /// Query heads.
    pub(crate) heads_q: usize,
    /// Key/value heads; a divisor of `heads_q`.
    pub(crate) heads_kv: usize,
    /// Tokens of a row.
    pub(crate) time: usize,
    /// Features of a head.
    pub(crate) head_dim: usize,
}

impl AttentionSizes {
    /// Checks tensors against each other and against the rows and tokens of their mask.
    ///
    /// # Shapes
    /// `q_bhtd`: `[batch, heads_q, time, head_dim]`; `k_bgtd`, `v_bgtd`:
    /// `[batch, heads_kv, time, head_dim]`.
    pub(crate) fn check(
        [q_bhtd, k_bgtd, v_bgtd]: [&Tensor<4>; 3],
        [batch, time]: [usize; 2],
        mask_device: &Device,
        execution: Execution,
        scale: f64,
    ) -> Result<Self, KernelError> {
        let [_, heads_q, _, head_dim] = q_bhtd.dims();
        let heads_kv = k_bgtd.dims()[1];
        same_shape("q", q_bhtd, [batch, heads_q, time, head_dim])?;
        same_shape("k", k_bgtd, [batch, heads_kv, time, head_dim])?;
        same_shape("v", v_bgtd, [batch, heads_kv, time, head_dim])?;
        if heads_kv == 0 || heads_q == 0 || !heads_q.is_multiple_of(heads_kv) {
            return Err(KernelError::Heads { heads_q, heads_kv });
        }
        if head_dim == 0 {
            return Err(KernelError::NoFeatures);
        }
        if !scale.is_finite() {
            return Err(KernelError::Scale { scale });
        }
        let dtype = q_bhtd.dtype();
        for (tensor, found) in [("k", k_bgtd.dtype()), ("v", v_bgtd.dtype())] {
            if found != dtype {
                return Err(KernelError::MixedDtypes { tensor, of: "q", expected: dtype, found });
            }
        }
        for (tensor, device) in
            [("q", q_bhtd.device()), ("k", k_bgtd.device()), ("v", v_bgtd.device())]
        {
            if device != *mask_device {
                let (expected, found) = (format!("{mask_device:?}"), format!("{device:?}"));
                return Err(KernelError::Device { tensor, of: "the mask", expected, found });
            }
        }
        check_dtype(dtype, &q_bhtd.device(), execution)?;
        Ok(Self { batch, heads_q, heads_kv, time, head_dim })
    }
}

fn same_shape(
    tensor: &'static str,
    value: &Tensor<4>,
    expected: [usize; 4],
) -> Result<(), KernelError> {
    let found = value.dims();
    if found == expected {
        return Ok(());
    }
    Err(KernelError::Shape { tensor, expected: expected.to_vec(), found: found.to_vec() })
}

/// What a device computes in; whether it has half precision at all is known when the kernels are
/// prepared.
fn check_dtype(dtype: DType, device: &Device, execution: Execution) -> Result<(), KernelError> {
    let advice = match dtype {
        DType::F32 => return Ok(()),
        DType::F16 | DType::BF16 if execution == Execution::Cube => return Ok(()),
        DType::F64 if is_wgpu(device) => {
            "float32 (float64 is advertised there and wrong), or a CPU device"
        }
        DType::F64 if execution == Execution::Cube => {
            "float32, Execution::Reference, or a CPU device"
        }
        DType::F64 => return Ok(()),
        _ => "float32 or float64",
    };
    Err(KernelError::Dtype { dtype, device: format!("{device:?}"), advice })
}

#[cfg(feature = "wgpu")]
fn is_wgpu(device: &Device) -> bool {
    use burn::backend::{CubeDevice, DispatchDevice};
    let device = device.clone().without_autodiff();
    matches!(device.as_dispatch(), DispatchDevice::Cube(CubeDevice::Wgpu(_)))
}

#[cfg(not(feature = "wgpu"))]
fn is_wgpu(_device: &Device) -> bool {
    false
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    #[test]
    fn float64_is_refused_for_the_kernels_of_cubecl_and_for_no_other_execution() {
        let on = |execution| check_dtype(DType::F64, &Device::flex(), execution);
        let refused = on(Execution::Cube);
        assert!(
            matches!(refused, Err(KernelError::Dtype { dtype: DType::F64, .. })),
            "{refused:?}"
        );
        assert_eq!([Execution::Cpu, Execution::Reference].map(on), [Ok(()), Ok(())]);
    }
}

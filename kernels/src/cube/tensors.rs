use super::{launch, plan::CubePlan, prepare::Prepared};
use crate::{error::KernelError, sizes::AttentionSizes};
use burn::{
    backend::{
        CubeDevice, DType, TensorMetadata, cubecl::dtype_to_storage_type, ops::FloatTensorOps,
    },
    tensor::{Shape, Slice},
};
use burn_cubecl::{CubeBackend, kernel::into_contiguous, tensor::CubeTensor};
use cubecl::ir::features::TypeUsage;

/// What a call needs on a device of CubeCL: the schedule there, and launches that were checked
/// against the device.
#[derive(Debug, Clone)]
pub(crate) struct CubeCall {
    plan: CubePlan,
    prepared: Prepared,
}

impl CubeCall {
    /// Checks a call against the device and its mask's plan.
    ///
    /// # Errors
    /// A dtype or a size that the device does not do, or a head beyond 256 features.
    pub(crate) fn prepare(
        problem: AttentionSizes,
        dtype: DType,
        plan: CubePlan,
        device: &CubeDevice,
    ) -> Result<Self, KernelError> {
        let client = device.client();
        let storage = dtype_to_storage_type(dtype);
        let usage = client.properties().type_usage(storage);
        let known = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
        if !known || !usage.contains(TypeUsage::Buffer) || !usage.contains(TypeUsage::Conversion) {
            return Err(KernelError::Dtype {
                dtype,
                device: format!("{device:?}"),
                advice: "float32, or Execution::Reference",
            });
        }
        let prepared = Prepared::new(problem, storage, plan.layout(), client.properties())?;
        Ok(Self { plan, prepared })
    }
}

/// Outputs and log-sum-exps of attention on a device of CubeCL.
///
/// # Shapes
/// - q: `[batch, heads_q, time, head_dim]`; k, v: `[batch, heads_kv, time, head_dim]`, of the
///   prepared sizes and dtype
/// - returns `[batch, heads_q, time, head_dim]` of that dtype and `[batch, heads_q, time]` in
///   float32, minus infinity where a row sees nothing
pub(crate) fn forward(
    inputs: [CubeTensor; 3],
    call: &CubeCall,
    scale: f64,
) -> (CubeTensor, CubeTensor) {
    let CubeCall { plan, prepared } = call;
    let head_dim = inputs[0].shape()[3];
    let [q, k, v] = inputs.map(|x| padded(x, prepared.problem.head_dim));
    let o = like(&q, q.shape(), q.dtype);
    let lse = like(&q, row_shape(&prepared.problem), DType::F32);
    let buffers = launch::Forward {
        q: &q.handle,
        k: &k.handle,
        v: &v.handle,
        o: &o.handle,
        lse: &lse.handle,
    };
    launch::forward(&q.client, prepared, plan, &buffers, scale as f32);
    (narrowed(o, head_dim), lse)
}

/// Gradients of queries, keys and values, from what the forward pass read and returned.
///
/// # Shapes
/// q, o, d_o: `[batch, heads_q, time, head_dim]`; k, v: `[batch, heads_kv, time, head_dim]`; lse:
/// `[batch, heads_q, time]` in float32; returns the gradients in the shapes of q, k and v.
pub(crate) fn backward(
    [q, k, v, o, lse, d_o]: [CubeTensor; 6],
    call: &CubeCall,
    scale: f64,
) -> [CubeTensor; 3] {
    let CubeCall { plan, prepared } = call;
    let head_dim = q.shape()[3];
    let lse = into_contiguous(lse);
    let [q, k, v, o, d_o] = [q, k, v, o, d_o].map(|x| padded(x, prepared.problem.head_dim));
    let rows = like(&q, Shape::from([2 * prepared.rows()]), DType::F32);
    let [dq, dk, dv] = [&q, &k, &v].map(|x| like(x, x.shape(), x.dtype));
    let buffers = launch::Backward {
        forward: launch::Forward {
            q: &q.handle,
            k: &k.handle,
            v: &v.handle,
            o: &o.handle,
            lse: &lse.handle,
        },
        d_o: &d_o.handle,
        rows: &rows.handle,
        dq: &dq.handle,
        dk: &dk.handle,
        dv: &dv.handle,
    };
    launch::backward(&q.client, prepared, plan, &buffers, scale as f32);
    [dq, dk, dv].map(|x| narrowed(x, head_dim))
}

fn row_shape(problem: &AttentionSizes) -> Shape {
    Shape::from([problem.batch, problem.heads_q, problem.time])
}

fn like(x: &CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
    let handle = x.client.empty(shape.num_elements() * dtype.size());
    CubeTensor::new_contiguous(x.client.clone(), x.device.clone(), shape, handle, dtype)
}

/// A contiguous tensor with heads of `head_dim` features, zeros behind the given ones.
fn padded(x_bhtd: CubeTensor, head_dim: usize) -> CubeTensor {
    let mut shape = x_bhtd.shape();
    if shape[3] == head_dim {
        return into_contiguous(x_bhtd);
    }
    let slices: Vec<Slice> = shape.iter().map(|&size| Slice::from(0..size)).collect();
    shape[3] = head_dim;
    let zeros = CubeBackend::float_zeros(shape, &x_bhtd.device, x_bhtd.dtype.into());
    into_contiguous(CubeBackend::float_slice_assign(zeros, &slices, x_bhtd))
}

/// The first `head_dim` features of every head.
fn narrowed(x_bhtd: CubeTensor, head_dim: usize) -> CubeTensor {
    let mut shape = x_bhtd.shape();
    if shape[3] == head_dim {
        return x_bhtd;
    }
    shape[3] = head_dim;
    let slices: Vec<Slice> = shape.iter().map(|&size| Slice::from(0..size)).collect();
    CubeBackend::float_slice(x_bhtd, &slices)
}

use super::backward::{Gradients, Saved, backward as add_gradients};
use super::element::{Element, lanes};
use super::forward::forward as attend;
use super::problem::CpuProblem;
use super::rows::Rows;
use crate::{call::Call, sizes::AttentionSizes};
use burn::backend::{Backend, DType, TensorMetadata, tensor::FloatTensor};
use burn::tensor::TensorData;
use pulp::{Simd, WithSimd};
use std::borrow::Cow;

/// A burn backend whose tensors lie in host memory.
pub(crate) trait HostBackend: Backend {
    /// The entries of a tensor of four dimensions, without a copy if its heads are contiguous.
    fn read<E: HostElement>(tensor: &FloatTensor<Self>) -> HostTensor<'_, E>;
}

/// What the kernels and burn both call a number.
pub(crate) trait HostElement:
    Element + std::ops::Mul<Output = Self> + burn::tensor::Element + bytemuck::Pod
{
}

impl HostElement for f32 {}
impl HostElement for f64 {}

/// A tensor of four dimensions in host memory, contiguous in its last.
pub(crate) struct HostTensor<'a, E: Clone> {
    /// Its entries, from the first.
    pub(crate) data: Cow<'a, [E]>,
    /// Sizes.
    pub(crate) shape: [usize; 4],
    /// Distances of its first three dimensions, in entries.
    pub(crate) strides: [usize; 3],
}

impl<'a, E: HostElement> HostTensor<'a, E> {
    /// A tensor whose entries follow each other.
    pub(crate) fn contiguous(data: Cow<'a, [E]>, shape: [usize; 4]) -> Self {
        let [_, heads, time, head_dim] = shape;
        Self { data, shape, strides: [heads * time * head_dim, time * head_dim, head_dim] }
    }

    /// The same strides as unsigned numbers, if no dimension runs backwards and the last is
    /// contiguous.
    pub(crate) fn forward_strides(strides: &[isize], shape: [usize; 4]) -> Option<[usize; 3]> {
        let &[batch, head, row, feature] = strides else { return None };
        let contiguous = feature == 1 || shape[3] == 1;
        let unsigned = |stride: isize| usize::try_from(stride).ok();
        contiguous.then_some([unsigned(batch)?, unsigned(head)?, unsigned(row)?])
    }

    /// The tensor with heads of `head_dim` features, zeros behind the given ones.
    fn widened(self, head_dim: usize) -> Self {
        let [batch, heads, time, found] = self.shape;
        if found == head_dim {
            return self;
        }
        let mut wide = vec![E::default(); batch * heads * time * head_dim];
        for (index, row) in wide.chunks_exact_mut(head_dim).enumerate() {
            let [b, h, t] = [index / time / heads, index / time % heads, index % time];
            let start = b * self.strides[0] + h * self.strides[1] + t * self.strides[2];
            row[..found].copy_from_slice(&self.data[start..start + found]);
        }
        Self::contiguous(Cow::Owned(wide), [batch, heads, time, head_dim])
    }

    fn rows(&self) -> Rows<'_, E> {
        // A view of a live tensor cannot reach beyond its own entries.
        Rows::new(&self.data, self.shape, self.strides)
            .unwrap_or_else(|| unreachable!("a tensor within its entries"))
    }
}

/// Output and log-sum-exp, `[batch, heads_q, time]`, of a call that was checked.
pub(crate) fn forward<B: HostBackend>(
    [q, k, v]: [&FloatTensor<B>; 3],
    call: &Call,
) -> (FloatTensor<B>, FloatTensor<B>) {
    match call.dtype {
        DType::F64 => typed_forward::<B, f64>([q, k, v], call),
        _ => typed_forward::<B, f32>([q, k, v], call),
    }
}

/// Gradients of queries, keys and values, from q, k, v, the output, the log-sum-exp and the
/// output's gradient.
pub(crate) fn backward<B: HostBackend>(
    [q, k, v, o, lse, d_o]: [&FloatTensor<B>; 6],
    call: &Call,
) -> [FloatTensor<B>; 3] {
    match call.dtype {
        DType::F64 => typed_backward::<B, f64>([q, k, v, o, d_o], lse, call),
        _ => typed_backward::<B, f32>([q, k, v, o, d_o], lse, call),
    }
}

fn typed_forward<B: HostBackend, E: HostElement>(
    inputs: [&FloatTensor<B>; 3],
    call: &Call,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let width = whole_vectors::<E>(call.problem.head_dim);
    let [q, k, v] = inputs.map(|tensor| B::read::<E>(tensor).widened(width));
    let AttentionSizes { batch, heads_q, time, .. } = call.problem;
    let mut o = vec![E::default(); batch * heads_q * time * width];
    let mut lse = vec![0.0; batch * heads_q * time];
    attend(&problem(call, width), [q.rows(), k.rows(), v.rows()], &mut o, &mut lse);
    let device = inputs[0].device();
    let lse = B::float_from_data(TensorData::new(lse, [batch, heads_q, time]), &device);
    (output::<B, E>(o, [batch, heads_q, time, width], call, &device), lse)
}

fn typed_backward<B: HostBackend, E: HostElement>(
    inputs: [&FloatTensor<B>; 5],
    lse: &FloatTensor<B>,
    call: &Call,
) -> [FloatTensor<B>; 3] {
    let width = whole_vectors::<E>(call.problem.head_dim);
    let device = inputs[0].device();
    let [q, k, v, o, d_o] = inputs.map(|tensor| B::read::<E>(tensor).widened(width));
    let AttentionSizes { batch, heads_q, heads_kv, time, .. } = call.problem;
    let shape = B::float_reshape(lse.clone(), [batch, heads_q, time, 1].into());
    let lse_bht = B::read::<f64>(&shape);
    let saved = Saved {
        q_bhtd: q.rows(),
        k_bgtd: k.rows(),
        v_bgtd: v.rows(),
        o_bhtd: o.rows(),
        lse_bht: &lse_bht.data,
    };
    let zeros = |heads: usize| vec![E::default(); batch * heads * time * width];
    let (mut dq, mut dk, mut dv) = (zeros(heads_q), zeros(heads_kv), zeros(heads_kv));
    let gradients = Gradients { dq_bhtd: &mut dq, dk_bgtd: &mut dk, dv_bgtd: &mut dv };
    add_gradients(&problem(call, width), saved, d_o.rows(), gradients);
    let tensor =
        |entries, heads| output::<B, E>(entries, [batch, heads, time, width], call, &device);
    [tensor(dq, heads_q), tensor(dk, heads_kv), tensor(dv, heads_kv)]
}

/// A result as a tensor, without the features that only fill up vectors.
fn output<B: HostBackend, E: HostElement>(
    entries: Vec<E>,
    [batch, heads, time, width]: [usize; 4],
    call: &Call,
    device: &B::Device,
) -> FloatTensor<B> {
    let head_dim = call.problem.head_dim;
    let entries = match width == head_dim {
        true => entries,
        false => entries.chunks_exact(width).flat_map(|row| &row[..head_dim]).copied().collect(),
    };
    B::float_from_data(TensorData::new(entries, [batch, heads, time, head_dim]), device)
}

fn problem(call: &Call, head_dim: usize) -> CpuProblem<'_> {
    CpuProblem {
        schedule: &call.schedule,
        rows: call.mask.rows(),
        heads_q: call.problem.heads_q,
        heads_kv: call.problem.heads_kv,
        head_dim,
        scale: call.scale,
    }
}

/// The features of a head, filled up to whole vectors.
fn whole_vectors<E: Element>(head_dim: usize) -> usize {
    struct Lanes<E>(std::marker::PhantomData<E>);
    impl<E: Element> WithSimd for Lanes<E> {
        type Output = usize;

        fn with_simd<S: Simd>(self, _simd: S) -> usize {
            lanes::<E, S>()
        }
    }
    head_dim.next_multiple_of(pulp::Arch::new().dispatch(Lanes::<E>(std::marker::PhantomData)))
}

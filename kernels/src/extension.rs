//! Tree attention as an operation of burn with a backward pass of its own.
//!
//! The forward pass keeps q, k, v, the output and one log-sum-exp a row; the backward pass computes
//! the weights again. burn's gradient checkpointing treats it as bound by computation: it is never
//! run twice, and what it needs of q, k and v is taken from, or recomputed by, the checkpointer. No
//! fusion is involved: with burn's `fusion` feature the CubeCL backend is another type, for which
//! the operation is not defined.
#![allow(deprecated, reason = "NdArray is named, the second CPU backend to check against")]
use crate::call::Call;
use burn::backend::{
    Autodiff, Backend, Dispatch,
    autodiff::{
        NodeId,
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    backend_extension,
    tensor::FloatTensor,
};
use burn::tensor::Tensor;

/// Both passes on one backend.
pub(crate) trait TreeKernels: Backend {
    /// Output, and log-sum-exp as `[batch, heads_q, time]`, in the unit that its own backward pass
    /// takes: base 2 in float64 on CPUs, natural in float32 on devices of CubeCL.
    fn forward(
        inputs: [FloatTensor<Self>; 3],
        call: &Call,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// Gradients of q, k and v, from q, k, v, the output, the log-sum-exp and the output's
    /// gradient.
    fn backward(saved: [FloatTensor<Self>; 6], call: &Call) -> [FloatTensor<Self>; 3];
}

/// The operation that burn dispatches on the backend of its tensors.
#[backend_extension(
    Cube: cfg(feature = "cube"),
    NdArray: cfg(feature = "ndarray"),
    Flex: cfg(feature = "flex"),
    Autodiff
)]
pub(crate) trait TreeAttentionExtension: Backend {
    /// Attention of a call that was checked and planned.
    fn tree_attention(
        q_bhtd: FloatTensor<Self>,
        k_bgtd: FloatTensor<Self>,
        v_bgtd: FloatTensor<Self>,
        call: Call,
    ) -> FloatTensor<Self>;
}

/// Runs the operation on tensors.
pub(crate) fn run([q_bhtd, k_bgtd, v_bgtd]: [Tensor<4>; 3], call: Call) -> Tensor<4> {
    let [q, k, v] = [q_bhtd, k_bgtd, v_bgtd].map(Tensor::into_dispatch);
    Tensor::from_dispatch(<Dispatch as TreeAttentionExtension>::tree_attention(q, k, v, call))
}

#[derive(Debug)]
struct TreeAttentionBackward;

/// What the backward pass keeps: where q, k and v are, the call, the output and the log-sum-exp.
#[derive(Debug, Clone)]
struct Kept<O> {
    inputs: [NodeId; 3],
    call: Call,
    o_bhtd: O,
    lse_bht: O,
}

impl<B: TreeKernels> Backward<B, 3> for TreeAttentionBackward {
    type State = Kept<FloatTensor<B>>;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        gradients: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let d_o = gradients.consume::<B>(&ops.node);
        let Kept { inputs, call, o_bhtd, lse_bht } = ops.state;
        let [q, k, v] =
            inputs.map(|input| checkpointer.retrieve_node_output::<FloatTensor<B>>(input));
        let found = B::backward([q, k, v, o_bhtd, lse_bht, d_o], &call);
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            if let Some(parent) = parent {
                gradients.register::<B>(parent.id, gradient);
            }
        }
    }
}

impl<B: TreeKernels + TreeAttentionExtension, C: CheckpointStrategy> TreeAttentionExtension
    for Autodiff<B, C>
{
    fn tree_attention(
        q_bhtd: FloatTensor<Self>,
        k_bgtd: FloatTensor<Self>,
        v_bgtd: FloatTensor<Self>,
        call: Call,
    ) -> FloatTensor<Self> {
        let nodes = [q_bhtd.node(), k_bgtd.node(), v_bgtd.node()];
        match TreeAttentionBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(mut prepared) => {
                let inputs = [&q_bhtd, &k_bgtd, &v_bgtd].map(|input| prepared.checkpoint(input));
                let (o_bhtd, lse_bht) =
                    B::forward([q_bhtd, k_bgtd, v_bgtd].map(|x| x.into_primitive()), &call);
                prepared.finish(Kept { inputs, call, o_bhtd: o_bhtd.clone(), lse_bht }, o_bhtd)
            }
            OpsKind::UnTracked(prepared) => prepared
                .finish(B::forward([q_bhtd, k_bgtd, v_bgtd].map(|x| x.into_primitive()), &call).0),
        }
    }
}

/// The operation on a backend without gradients is its forward pass.
#[cfg(any(feature = "cpu", feature = "cube"))]
macro_rules! without_gradients {
    ($backend:ty) => {
        impl TreeAttentionExtension for $backend {
            fn tree_attention(
                q_bhtd: FloatTensor<Self>,
                k_bgtd: FloatTensor<Self>,
                v_bgtd: FloatTensor<Self>,
                call: Call,
            ) -> FloatTensor<Self> {
                <Self as TreeKernels>::forward([q_bhtd, k_bgtd, v_bgtd], &call).0
            }
        }
    };
}

#[cfg(feature = "cube")]
mod cube;
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "ndarray")]
mod ndarray;

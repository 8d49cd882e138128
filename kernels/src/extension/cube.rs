use super::{TreeAttentionExtension, TreeKernels};
use crate::{call::Call, cube};
use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;

fn on_device(call: &Call) -> &cube::CubeCall {
    match &call.cube {
        Some(prepared) => prepared,
        None => unreachable!("a call is planned on the device of its tensors"),
    }
}

impl TreeKernels for CubeBackend {
    fn forward(
        [q, k, v]: [FloatTensor<Self>; 3],
        call: &Call,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        cube::forward([q, k, v], on_device(call), call.scale)
    }

    fn backward(saved: [FloatTensor<Self>; 6], call: &Call) -> [FloatTensor<Self>; 3] {
        cube::backward(saved, on_device(call), call.scale)
    }
}

without_gradients!(CubeBackend);

use super::{TreeAttentionExtension, TreeKernels};
use crate::{
    call::Call,
    cpu::{self, HostBackend, HostElement, HostTensor},
};
use burn::backend::{Flex, tensor::FloatTensor};
use std::borrow::Cow;

impl HostBackend for Flex {
    fn read<E: HostElement>(tensor: &FloatTensor<Self>) -> HostTensor<'_, E> {
        let layout = tensor.layout();
        let shape = layout.shape().dims::<4>();
        match HostTensor::<E>::forward_strides(layout.strides(), shape) {
            Some(strides) => HostTensor {
                data: Cow::Borrowed(&tensor.storage::<E>()[layout.start_offset()..]),
                shape,
                strides,
            },
            None => HostTensor::contiguous(
                Cow::Owned(tensor.to_contiguous().storage::<E>().to_vec()),
                shape,
            ),
        }
    }
}

impl TreeKernels for Flex {
    fn forward(
        [q, k, v]: [FloatTensor<Self>; 3],
        call: &Call,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        cpu::forward::<Self>([&q, &k, &v], call)
    }

    fn backward(saved: [FloatTensor<Self>; 6], call: &Call) -> [FloatTensor<Self>; 3] {
        cpu::backward::<Self>(saved.each_ref(), call)
    }
}

without_gradients!(Flex);

#![allow(deprecated, reason = "kept as the second CPU backend to check against")]
use super::{TreeAttentionExtension, TreeKernels};
use crate::{
    call::Call,
    cpu::{self, HostBackend, HostElement, HostTensor},
};
use burn::backend::{NdArray, tensor::FloatTensor};
use burn_ndarray::NdArrayTensor;
use std::borrow::Cow;

impl HostBackend for NdArray {
    fn read<E: HostElement>(tensor: &FloatTensor<Self>) -> HostTensor<'_, E> {
        macro_rules! read {
            ($storage:expr) => {{
                let view = $storage.view();
                let &[batch, heads, time, head_dim] = view.shape() else {
                    unreachable!("four dimensions, as was checked")
                };
                let array = Array {
                    shape: [batch, heads, time, head_dim],
                    strides: view.strides(),
                    at: view.as_ptr(),
                };
                // SAFETY: the array is borrowed from the tensor for as long as the result.
                #[allow(
                    unsafe_code,
                    reason = "an array gives no slice of its entries unless it is contiguous"
                )]
                let borrowed = unsafe { array.borrow() };
                match borrowed {
                    Some(borrowed) => borrowed,
                    None => array.collect(view.iter()),
                }
            }};
        }
        match tensor {
            NdArrayTensor::F64(storage) => read!(storage),
            NdArrayTensor::F32(storage) => read!(storage),
            _ => unreachable!("float32 or float64, as was checked"),
        }
    }
}

/// An array of `T` in four dimensions.
struct Array<'a, T> {
    shape: [usize; 4],
    strides: &'a [isize],
    at: *const T,
}

impl<T: HostElement> Array<'_, T> {
    /// Its entries without a copy, as `E`, which is `T` by another name; `None` if a dimension runs
    /// backwards.
    ///
    /// # Safety
    /// The array's entries must stay valid and unchanged for `'e`.
    #[allow(unsafe_code, reason = "an array gives no slice of its entries unless it is contiguous")]
    unsafe fn borrow<'e, E: HostElement>(&self) -> Option<HostTensor<'e, E>> {
        let strides = HostTensor::<E>::forward_strides(self.strides, self.shape)?;
        let extents = self
            .shape
            .iter()
            .zip(strides)
            .map(|(size, stride)| size.checked_sub(1).map(|last| last * stride));
        let last = extents.sum::<Option<usize>>()?;
        // SAFETY: no stride is negative, so the entries lie between the first and the last, and the
        // caller vouches for them.
        let entries = unsafe { std::slice::from_raw_parts(self.at, last + self.shape[3]) };
        Some(HostTensor {
            data: Cow::Borrowed(bytemuck::cast_slice(entries)),
            shape: self.shape,
            strides,
        })
    }

    /// Its entries in order, as `E`, which is `T` by another name.
    fn collect<'e, 't, E: HostElement>(
        &self,
        entries: impl Iterator<Item = &'t T>,
    ) -> HostTensor<'e, E>
    where
        T: 't,
    {
        let entries: Vec<T> = entries.copied().collect();
        HostTensor::contiguous(Cow::Owned(bytemuck::cast_slice(&entries).to_vec()), self.shape)
    }
}

impl TreeKernels for NdArray {
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

without_gradients!(NdArray);

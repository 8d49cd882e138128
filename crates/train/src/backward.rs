use crate::error::TrainError;
use burn::tensor::{Gradients, Tensor};

/// The gradients of a loss: `loss.backward()`, with an error where that would panic.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use pleach_train::{TrainError, backward};
///
/// let loss = |device: Device| Tensor::<1>::ones([1], &device).require_grad().sum();
/// assert!(backward(&loss(Device::flex().autodiff())).is_ok());
/// // A loss made of constants is refused, and so is one on a device without autodiff.
/// let constant = Tensor::<1>::ones([1], &Device::flex().autodiff());
/// assert!(matches!(backward(&constant), Err(TrainError::Untracked)));
/// let plain = Tensor::<1>::ones([1], &Device::flex());
/// assert!(matches!(backward(&plain), Err(TrainError::NoAutodiff { .. })));
/// # }
/// ```
///
/// # Errors
/// A device without autodiff, and a loss that depends on no trainable parameter.
pub fn backward(loss: &Tensor<1>) -> Result<Gradients, TrainError> {
    let device = loss.device();
    if !device.is_autodiff() {
        return Err(TrainError::NoAutodiff { device: format!("{device:?}") });
    }
    if !loss.is_tracked() {
        return Err(TrainError::Untracked);
    }
    Ok(loss.backward())
}

use crate::schedule::Schedule;
use crate::{error::KernelError, mask::TreeMask, sizes::AttentionSizes};
use burn::tensor::DType;
use std::sync::Arc;

/// An attention call without its tensors: checked and planned, so that nothing after it can fail.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Sizes.
    pub(crate) problem: AttentionSizes,
    /// Dtype of the tensors.
    pub(crate) dtype: DType,
    /// Visibility.
    pub(crate) mask: TreeMask,
    /// Live tiles of the mask.
    pub(crate) schedule: Arc<Schedule>,
    /// Factor of the scores.
    pub(crate) scale: f64,
    /// Where the device is one of CubeCL, what the kernels need there.
    #[cfg(feature = "cube")]
    pub(crate) cube: Option<crate::cube::CubeCall>,
}

impl Call {
    /// Plans a call whose sizes were checked.
    ///
    /// # Errors
    /// A mask whose live tiles cannot be planned, or what the device cannot do.
    pub(crate) fn plan(
        problem: AttentionSizes,
        dtype: DType,
        mask: &TreeMask,
        scale: f64,
    ) -> Result<Self, KernelError> {
        Ok(Self {
            problem,
            dtype,
            mask: mask.clone(),
            schedule: mask.schedule()?,
            scale,
            #[cfg(feature = "cube")]
            cube: on_cube(problem, dtype, mask)?,
        })
    }
}

#[cfg(feature = "cube")]
fn on_cube(
    problem: AttentionSizes,
    dtype: DType,
    mask: &TreeMask,
) -> Result<Option<crate::cube::CubeCall>, KernelError> {
    use burn::backend::DispatchDevice;
    let device = mask.device().without_autodiff();
    let DispatchDevice::Cube(device) = device.as_dispatch() else { return Ok(None) };
    let plan = mask.cube_plan(&device.client())?;
    crate::cube::CubeCall::prepare(problem, dtype, plan, device).map(Some)
}

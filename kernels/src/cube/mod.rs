//! Tree attention on the devices of CubeCL, one source for all of them; the features `wgpu` and
//! `cuda` build it in for theirs.
//!
//! `kernel` knows CubeCL only; `routine` says how a kernel cuts its work, `plan` holds a schedule
//! on a device, `prepare` checks a problem without data, `launch` starts kernels on buffers,
//! `tensors` does so on burn's tensors.

mod kernel;
mod launch;
mod plan;
mod prepare;
mod routine;
mod tensors;

pub(crate) use plan::CubePlan;
pub(crate) use tensors::{CubeCall, backward, forward};

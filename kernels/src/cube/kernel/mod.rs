//! The kernels themselves: they know CubeCL and nothing of tensors, schedules or devices.
#![allow(clippy::too_many_arguments, reason = "a kernel takes each of its buffers as an argument")]
#![allow(clippy::needless_range_loop, reason = "device arrays are indexed, not iterated")]
#![allow(
    clippy::assign_op_pattern,
    reason = "kept in the form whose generated code was checked for spills"
)]
#![allow(clippy::manual_is_multiple_of, reason = "the language of kernels has no such method")]

mod blocking;
mod forward;
mod key_gradient;
pub(crate) mod mask;
mod product;
mod query_gradient;
mod row_terms;
mod stage;

pub(crate) use blocking::{Blocking, LANES};
pub(crate) use forward::tree_attention_forward;
pub(crate) use key_gradient::tree_attention_key_gradient;
pub(crate) use mask::SizesLaunch;
pub(crate) use query_gradient::tree_attention_query_gradient;
pub(crate) use row_terms::{ROWS, UNITS, tree_attention_row_terms};

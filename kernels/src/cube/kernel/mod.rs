//! The kernels themselves: they know CubeCL and nothing of tensors, schedules or devices.

mod blocking;
mod forward;
mod key_gradient;
mod plan;
mod product;
mod query_gradient;
mod row_terms;
mod stage;

pub(crate) use blocking::Blocking;
pub(crate) use forward::tree_attention_forward;
pub(crate) use key_gradient::tree_attention_key_gradient;
pub(crate) use plan::SizesLaunch;
pub(crate) use query_gradient::tree_attention_query_gradient;
pub(crate) use row_terms::{ROWS, UNITS, tree_attention_row_terms};

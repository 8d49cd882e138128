//! Tree attention for burn: attention over the packed conditioning tree, behind one function.
//!
//! A model calls [`tree_attention`] with a [`TreeMask`] that was validated and planned once per
//! batch. The mask holds one int32 per key: row `i` may attend to key `j` if and only if
//! `j <= i < ends[j]` (and, with a window, `positions[i] - positions[j] < window`). Nothing of size
//! T x T exists outside the dense reference.
//!
//! Three executions mean the same ([`Execution`]): the dense *reference*, in plain tensor
//! operations on every burn device, which defines what is right; *cpu*, block-sparse on all cores
//! for flex and ndarray; *cube*, block-sparse CubeCL kernels for wgpu and CUDA. The block-sparse
//! ones compute only tiles that hold a visible pair, never import the reference, and have a
//! backward pass of their own, which computes the weights again from one log-sum-exp a row.
//!
//! ```
//! use burn::tensor::{DType, Device, Tensor};
//! use pleach_kernels::{AttentionConfig, TreeMask, tree_attention};
//!
//! # fn main() -> Result<(), pleach_kernels::KernelError> {
//! # #[cfg(feature = "flex")] {
//! let device = Device::flex();
//! // Token 0 is the prompt; tokens 1 and 2 are two branches that cannot see each other.
//! let mask = TreeMask::new(&[[3, 2, 3]], &device)?;
//! let q_bhtd = Tensor::<4>::ones([1, 4, 3, 8], (&device, DType::F64));
//! let k_bgtd = Tensor::<4>::ones([1, 2, 3, 8], (&device, DType::F64));
//! let o_bhtd = tree_attention(q_bhtd, k_bgtd.clone(), k_bgtd, &mask, &AttentionConfig::for_head_dim(8))?;
//! assert_eq!(o_bhtd.dims(), [1, 4, 3, 8]);
//! # }
//! # Ok(())
//! # }
//! ```
mod attention;
#[cfg(any(feature = "cpu", feature = "cube"))]
mod call;
#[cfg(feature = "cpu")]
mod cpu;
#[cfg(feature = "cube")]
mod cube;
mod error;
#[cfg(any(feature = "cpu", feature = "cube"))]
mod extension;
mod mask;
pub mod problem;
mod reference;
mod rotary;
pub mod schedule;
mod sizes;
mod views;

pub use attention::{AttentionConfig, Execution, tree_attention};
pub use error::KernelError;
pub use mask::{TreeMask, dense_mask, to_masked};
pub use rotary::{Rotary, RotaryPairs};
pub use views::{ViewMask, view_attention};

//! Tree attention for burn: attention over the packed conditioning tree, behind one function.
//!
//! A model calls [`tree_attention`] with a [`TreeMask`] that was validated and planned once per batch. The mask holds one
//! int32 per key: row `i` may attend to key `j` if and only if `j <= i < ends[j]` (and, with a window,
//! `positions[i] - positions[j] < window`). Nothing of size T x T exists outside the dense reference.
//!
//! The dense reference runs on every burn device in float32 and float64 and defines what is right. It is the only execution;
//! a faster one goes behind the same function, as a variant of [`Execution`], and never imports the reference.
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
mod error;
mod mask;
mod problem;
mod reference;
mod rotary;
mod union;

pub use attention::{AttentionConfig, Execution, tree_attention};
pub use error::KernelError;
pub use mask::{TreeMask, dense_mask, to_masked};
pub use rotary::Rotary;
pub use union::{UnionMask, union_attention};

//! Tree attention on CPUs: block-sparse, in float32 and float64, on all cores, with memory O(tokens
//! x head_dim).
//!
//! Query rows run along vectors: a tile of scores is a product of keys with a panel of queries that
//! was laid out as columns once, so that maxima, sums and masks are vector operations and neither
//! keys nor values are ever packed. `product` is the one micro-kernel under all products; `tile`
//! says which parts of a partial tile are visible at all; `forward` and `backward` go through the
//! schedule.
#![allow(
    unsafe_code,
    reason = "operands are addresses with strides, and threads write disjoint rows"
)]
mod backward;
mod element;
mod float;
mod forward;
mod host;
mod problem;
mod product;
mod rows;
mod tile;

pub(crate) use host::{HostBackend, HostElement, HostTensor, backward, forward};

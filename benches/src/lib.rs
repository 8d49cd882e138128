//! What the table program and the criterion benches share: rollouts on which layouts are compared.
//!
//! The named masks are the kernels' own, [`pleach_kernels::problem`].
mod regime;

pub use regime::Regime;

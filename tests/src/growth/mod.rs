//! Trees drawn as what a harness did: steps with small numbers in them, carried out on the records
//! so far.
//!
//! Any list of steps is a sound file: a number that points at nothing is taken modulo what there
//! is, and a step that cannot be carried out is left out. So a failing case shrinks by dropping
//! steps and lowering numbers.
mod draw;
mod grow;
mod pick;
mod step;
mod write;

pub use draw::{Drawn, Trees, steps, trees};
pub use grow::grow;
pub use step::{Cut, Pick, Step, Text};

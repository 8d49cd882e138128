//! Devices and executions to test on, problems, and attention as plain float64 loops: the
//! definition read literally, with its gradient.
#![allow(dead_code, unused_imports, reason = "each test binary uses its own part")]
mod answer;
mod naive;
mod random;
mod runner;
mod target;
mod trees;

pub(crate) use answer::{Answer, Part, assert_close, differentiate, values};
pub(crate) use naive::Naive;
pub(crate) use random::Random;
pub(crate) use runner::{Runner, kernels, runners};
pub(crate) use target::{Target, cuda, targets, wgpu};
pub(crate) use trees::{binary, caterpillar, chain, depths, star};

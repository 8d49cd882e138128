mod head;
mod nll;

pub(crate) use nll::DEFAULT_CHUNK;
pub use nll::{Nll, NllConfig, NllOutput, Reduction};

//! What is counted of a tree and its layouts without a model.
mod account;
mod certificate;
mod conditioning;
mod era;
mod places;

pub use account::{Account, Eviction, LayoutStats, PackedStats, Stats};
pub use certificate::Certificate;
pub use conditioning::{Conditioning, ConditioningSummary};
pub use era::Era;
pub use places::{EvictionPlace, GenerationPlace};

//! What to look at beside the loss: gaps of log-probabilities, the health of a step, and the union
//! mask as a counter-example.
mod gap;
mod health;
mod union;

pub use gap::{DistanceGap, EvictionGap, Gap, GapSummary};
pub use health::{ClipDistance, Count, Health, HealthFigure, RolloutHealth, clip_fractions};
#[cfg(feature = "metrics")]
pub use health::{HealthInput, HealthMetric};
pub use union::{Union, union_log_probabilities};

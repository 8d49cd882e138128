//! Advantages of compacted rollouts, as plain functions over outcomes, values and token counts.
mod gae;
mod group;
mod lambda;
mod timeline;
mod weights;

pub use gae::{GaeConfig, GaeOutput, Timing, gae};
pub use group::{
    AdvantageConfig, Baseline, Overlong, RolloutAdvantage, RolloutOutcome, Scale, group_advantages,
};
pub use lambda::{LambdaConfig, LengthReading};
pub use timeline::{Timeline, Timelines, recorded_log_probabilities};
pub use weights::{pad_sequences, segment_mean_weights, token_level_weights};

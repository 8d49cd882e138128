//! Block schedule of attention: which tiles of the mask hold a visible pair, both ways round.
mod lists;
mod plan;
mod sparse_minimum;
mod stats;

pub use lists::TileLists;
pub use plan::{IntervalRow, Schedule, TileSize, Window};
pub use stats::ScheduleStats;

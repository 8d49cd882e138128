//! Block schedule of attention: which tiles of the mask hold a visible pair, both ways round.
mod intervals;
mod lists;
mod plan;
mod sparse_minimum;
mod stats;

pub use intervals::{IntervalRow, IntervalRows, Window};
pub use lists::TileLists;
pub use plan::{Schedule, TileSize};
pub use stats::ScheduleStats;

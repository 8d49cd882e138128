use super::{IntervalRow, IntervalRows, Schedule};
use serde::Serialize;

/// What a schedule computes, beside what the mask needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScheduleStats {
    /// Tiles that are listed: all that hold a visible pair, and under a window, or where tiles have
    /// fewer rows than keys, some that hold none.
    pub live_tiles: u64,
    /// Live tiles where the rule has to be applied pair by pair.
    pub partial_tiles: u64,
    /// (row, key) pairs of the live tiles that lie inside the rows.
    pub computed_pairs: u64,
    /// Visible (row, key) pairs.
    pub needed_pairs: u64,
    /// All (row, key) pairs, time^2 a batch row.
    pub dense_pairs: u64,
}

impl ScheduleStats {
    /// Computed / needed pairs, 1 at best; 1 for a mask that shows nothing.
    pub fn block_overhead(&self) -> f64 {
        if self.needed_pairs == 0 {
            1.0
        } else {
            self.computed_pairs as f64 / self.needed_pairs as f64
        }
    }

    /// Computed pairs as a fraction of the dense square.
    pub fn computed_fraction(&self) -> f64 {
        if self.dense_pairs == 0 {
            0.0
        } else {
            self.computed_pairs as f64 / self.dense_pairs as f64
        }
    }
}

impl Schedule {
    /// Counts tiles and pairs; `rows` are those that were planned.
    ///
    /// Counting is no part of planning, for under a window the pairs of partial tiles are looked at
    /// one by one.
    pub fn stats(&self, rows: &IntervalRows) -> ScheduleStats {
        let time = self.time() as u64;
        let mut stats = ScheduleStats {
            live_tiles: 0,
            partial_tiles: 0,
            computed_pairs: 0,
            needed_pairs: 0,
            dense_pairs: self.batch() as u64 * time * time,
        };
        for (batch, row) in rows.rows().enumerate().take(self.batch()) {
            if row.window.is_none() {
                stats.needed_pairs += row.interval_pairs();
            }
            for query in 0..self.query_tiles() {
                for (key, full) in self.by_query().live(batch * self.query_tiles() + query) {
                    self.count(&row, query, key, full, &mut stats);
                }
            }
        }
        stats
    }

    fn count(
        &self,
        row: &IntervalRow<'_>,
        query: usize,
        key: usize,
        full: bool,
        stats: &mut ScheduleStats,
    ) {
        let span = |tile: usize, side: usize| tile * side..self.time().min((tile + 1) * side);
        let (queries, keys) = (span(query, self.tile().rows), span(key, self.tile().keys));
        let computed = (queries.len() * keys.len()) as u64;
        stats.live_tiles += 1;
        stats.partial_tiles += u64::from(!full);
        stats.computed_pairs += computed;
        if row.window.is_some() {
            let visible = || {
                queries
                    .flat_map(|i| keys.clone().map(move |j| (i, j)))
                    .filter(|&(i, j)| row.sees(i, j))
                    .count()
            };
            stats.needed_pairs += if full { computed } else { visible() as u64 };
        }
    }
}

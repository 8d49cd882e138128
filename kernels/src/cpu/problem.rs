use crate::schedule::{IntervalRows, Schedule};

/// One attention call without its tensors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuProblem<'a> {
    /// Live tiles of the batch, in tiles of this kernel's size.
    pub(crate) schedule: &'a Schedule,
    /// The mask that it was planned from.
    pub(crate) rows: &'a IntervalRows,
    /// Query heads.
    pub(crate) heads_q: usize,
    /// Key/value heads, a divisor of `heads_q`.
    pub(crate) heads_kv: usize,
    /// Features of a head, a multiple of the entries of a vector.
    pub(crate) head_dim: usize,
    /// Factor of the scores.
    pub(crate) scale: f64,
}

impl<'a> CpuProblem<'a> {
    /// Tokens of a row.
    pub(crate) fn time(&self) -> usize {
        self.schedule.time()
    }

    /// The key/value head that a query head reads.
    pub(crate) fn key_head(&self, head: usize) -> usize {
        head / (self.heads_q / self.heads_kv)
    }

    /// Live key tiles of a query tile, ascending, and whether each is full.
    pub(crate) fn key_tiles(
        &self,
        batch: usize,
        query_tile: usize,
    ) -> impl Iterator<Item = (usize, bool)> + 'a {
        self.schedule.by_query().live(batch * self.schedule.query_tiles() + query_tile)
    }

    /// Live query tiles of a key tile among `tiles`, ascending, and whether each is full.
    pub(crate) fn query_tiles(
        &self,
        batch: usize,
        key_tile: usize,
        tiles: std::ops::Range<usize>,
    ) -> impl Iterator<Item = (usize, bool)> + 'a {
        self.schedule.by_key().live_within(batch * self.schedule.key_tiles() + key_tile, tiles)
    }
}

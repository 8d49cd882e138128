use crate::cpu::problem::CpuProblem;

/// Tiles along a side of a block.
pub(super) const BLOCK: usize = 4;

/// A block of tile pairs of one key/value head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileBlock {
    /// Row of the batch.
    pub(super) batch: usize,
    /// Key/value head.
    pub(super) key_head: usize,
    /// Block of query tiles.
    pub(super) queries: usize,
    /// Block of key tiles.
    pub(super) keys: usize,
}

/// The live blocks of a batch by the sum of their two indices.
///
/// Two blocks of one wave share neither queries nor keys. For each block of queries the waves go
/// through its key blocks in order, and for each block of keys through its query blocks.
pub(super) struct Waves {
    waves: Vec<Vec<TileBlock>>,
}

impl Waves {
    /// All blocks with a live tile pair, in O(live tiles).
    pub(super) fn new(problem: &CpuProblem<'_>) -> Self {
        let schedule = problem.schedule;
        let blocks = |tiles: usize| tiles.div_ceil(BLOCK);
        let mut waves =
            vec![Vec::new(); blocks(schedule.query_tiles()) + blocks(schedule.key_tiles())];
        for batch in 0..schedule.batch() {
            for keys in 0..blocks(schedule.key_tiles()) {
                let tiles = keys * BLOCK..schedule.key_tiles().min((keys + 1) * BLOCK);
                let lists =
                    tiles.map(|tile| schedule.by_key().live(batch * schedule.key_tiles() + tile));
                let mut queries: Vec<_> = lists.flatten().map(|(tile, _)| tile / BLOCK).collect();
                queries.sort_unstable();
                queries.dedup();
                for queries in queries {
                    let place = |key_head| TileBlock { batch, key_head, queries, keys };
                    waves[queries + keys].extend((0..problem.heads_kv).map(place));
                }
            }
        }
        Self { waves }
    }

    /// The waves in the order in which they have to run.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[TileBlock]> {
        self.waves.iter().map(Vec::as_slice)
    }
}

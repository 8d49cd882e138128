use super::{IntervalRow, IntervalRows, Window, lists::TileLists, sparse_minimum::SparseMinimum};
use crate::error::KernelError;

/// Sides of a tile of the mask, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileSize {
    /// Query rows of a tile.
    pub rows: usize,
    /// Keys of a tile.
    pub keys: usize,
}

/// Which tiles of a batch are live, from the side of the queries and from the side of the keys.
///
/// It is planned once per batch on the host and shared by all layers and heads, in time and memory
/// O(tokens + live tiles) (times a logarithm of the number of tiles for windows), never
/// O(tokens^2). In a full tile every key lies inside the batch row and is seen by every query row
/// of the tile that does; the last of these may lie beyond the end. In a partial tile the rule has
/// to be applied pair by pair. A tile that is listed nowhere holds no visible pair; one that is
/// listed may hold none either, under a window or where tiles have fewer rows than keys.
///
/// ```
/// use pleach_kernels::schedule::{IntervalRows, Schedule, TileSize};
///
/// // Two branches of two tokens behind a prompt of four, in tiles of 2 x 2.
/// let rows = IntervalRows::new(&[[8, 8, 8, 8, 6, 6, 8, 8]])?;
/// let schedule = Schedule::plan(&rows, TileSize { rows: 2, keys: 2 })?;
/// assert_eq!(schedule.by_query().full(3), [0, 1]); // the second branch sees the prompt,
/// assert_eq!(schedule.by_query().partial(3), [3]); // itself up to the diagonal,
/// assert_eq!(schedule.by_key().partial(2), [2]); // and never the first branch.
/// # Ok::<(), pleach_kernels::KernelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    batch: usize,
    time: usize,
    tile: TileSize,
    by_query: TileLists,
    by_key: TileLists,
}

impl Schedule {
    /// Plans the tiles of a batch.
    ///
    /// # Errors
    /// A tile without sides, or more live tiles than a `u32` counts.
    pub fn plan(rows: &IntervalRows, tile: TileSize) -> Result<Self, KernelError> {
        if tile.rows == 0 || tile.keys == 0 {
            return Err(KernelError::EmptyTile);
        }
        let [batch, time] = rows.dims();
        let key_tiles = time.div_ceil(tile.keys);
        let mut by_key = TileLists::with_capacity(batch * key_tiles);
        for row in rows.rows() {
            plan_row(&row, tile, &mut by_key)
                .ok_or(KernelError::TooManyTiles { rows: tile.rows, keys: tile.keys })?;
        }
        let by_query = by_key.transposed(key_tiles, time.div_ceil(tile.rows), batch);
        Ok(Self { batch, time, tile, by_query, by_key })
    }

    /// Rows of the batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Tokens of a row.
    pub fn time(&self) -> usize {
        self.time
    }

    /// Sides of a tile.
    pub fn tile(&self) -> TileSize {
        self.tile
    }

    /// Query tiles of one batch row.
    pub fn query_tiles(&self) -> usize {
        self.time.div_ceil(self.tile.rows)
    }

    /// Key tiles of one batch row.
    pub fn key_tiles(&self) -> usize {
        self.time.div_ceil(self.tile.keys)
    }

    /// The key tiles of every query tile: forward and the gradient of queries.
    pub fn by_query(&self) -> &TileLists {
        &self.by_query
    }

    /// The query tiles of every key tile: the gradients of keys and values.
    pub fn by_key(&self) -> &TileLists {
        &self.by_key
    }
}

/// Smallest and greatest value of a tile.
#[derive(Clone, Copy)]
struct Bounds {
    least: i32,
    greatest: i32,
}

impl Bounds {
    fn of(values: impl Iterator<Item = i32>) -> Option<Self> {
        values.fold(None, |bounds, value| {
            let Self { least, greatest } = bounds.unwrap_or(Self { least: value, greatest: value });
            Some(Self { least: least.min(value), greatest: greatest.max(value) })
        })
    }
}

/// The window rule on whole tiles.
struct WindowedTiles<'a> {
    window: Window<'a>,
    queries: Vec<Bounds>,
    least_query: SparseMinimum,
}

impl<'a> WindowedTiles<'a> {
    fn new(window: Window<'a>, rows: usize) -> Self {
        let queries: Vec<_> = window
            .positions
            .chunks(rows)
            .filter_map(|tile| Bounds::of(tile.iter().copied()))
            .collect();
        let least_query = SparseMinimum::new(queries.iter().map(|tile| tile.least).collect());
        Self { window, queries, least_query }
    }
}

/// Adds the lists of one row's key tiles; `None` if there are too many tiles.
fn plan_row(row: &IntervalRow<'_>, tile: TileSize, by_key: &mut TileLists) -> Option<()> {
    let windowed = row.window.map(|window| WindowedTiles::new(window, tile.rows));
    let (mut full, mut partial) = (Vec::new(), Vec::new());
    for first in (0..row.ends.len()).step_by(tile.keys) {
        full.clear();
        partial.clear();
        let keys = first..row.ends.len().min(first + tile.keys);
        let candidates = candidates(row, keys.clone(), tile);
        match &windowed {
            None => {
                partial.extend(candidates.live.start..candidates.full.start);
                full.extend(candidates.full.clone());
                partial.extend(candidates.full.end..candidates.live.end);
            }
            Some(windowed) => narrow(windowed, candidates, keys, [&mut full, &mut partial]),
        }
        by_key.push(&full, &partial)?;
    }
    Some(())
}

/// Query tiles of one key tile under the interval rule: a range, and the range in it that is full.
struct Candidates {
    live: std::ops::Range<u32>,
    full: std::ops::Range<u32>,
}

fn candidates(row: &IntervalRow<'_>, keys: std::ops::Range<usize>, tile: TileSize) -> Candidates {
    let open = |token: &usize| usize::try_from(row.ends[*token]).is_ok_and(|end| end > *token);
    let Some(ends) = Bounds::of(keys.clone().filter(open).map(|token| row.ends[token])) else {
        return Candidates { live: 0..0, full: 0..0 };
    };
    let first_open = keys.clone().find(open).unwrap_or(keys.start);
    let live = first_open / tile.rows..(ends.greatest as usize).div_ceil(tile.rows);
    let whole = keys.len() == tile.keys && keys.clone().all(|token| open(&token));
    let least = ends.least as usize;
    let stop = if least == row.ends.len() { live.end } else { least / tile.rows };
    let start = (keys.end - 1).div_ceil(tile.rows);
    let full = if whole && start < stop { start..stop } else { live.start..live.start };
    Candidates {
        live: live.start as u32..live.end as u32,
        full: full.start as u32..full.end as u32,
    }
}

/// Keeps what the window leaves of `candidates`.
fn narrow(
    windowed: &WindowedTiles<'_>,
    candidates: Candidates,
    keys: std::ops::Range<usize>,
    [full, partial]: [&mut Vec<u32>; 2],
) {
    let Some(key) = Bounds::of(windowed.window.positions[keys].iter().copied()) else { return };
    let length = i64::from(windowed.window.length);
    let Candidates { live, full: throughout } = candidates;
    windowed.least_query.below(
        live.start as usize,
        live.end as usize,
        i64::from(key.greatest) + length,
        partial,
    );
    partial.retain(|&tile| {
        let query = windowed.queries[tile as usize];
        let is_full =
            throughout.contains(&tile) && i64::from(query.greatest) - i64::from(key.least) < length;
        if is_full {
            full.push(tile);
        }
        !is_full
    });
}

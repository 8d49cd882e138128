use std::ops::Range;

/// The live tiles of every tile of one side, full and partial apart, as compressed rows.
///
/// List `n` belongs to tile `n % tiles_per_row` of batch row `n / tiles_per_row`. `u32` because
/// devices index in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TileLists {
    /// Two bounds a list: the full tiles of list `n` are `tiles[offsets[2 n]..offsets[2 n + 1]]`,
    /// its partial tiles `tiles[offsets[2 n + 1]..offsets[2 n + 2]]`.
    offsets: Vec<u32>,
    /// Tile indices within their batch row, ascending in each part of a list.
    tiles: Vec<u32>,
}

impl TileLists {
    /// Number of lists.
    pub fn len(&self) -> usize {
        self.offsets.len() / 2
    }

    /// Whether there is no list.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tiles of list `n` of which every pair inside the batch row is visible, and every key lies
    /// inside it.
    pub fn full(&self, n: usize) -> &[u32] {
        self.part(2 * n)
    }

    /// Tiles of list `n` where the rule has to be applied pair by pair.
    pub fn partial(&self, n: usize) -> &[u32] {
        self.part(2 * n + 1)
    }

    /// All live tiles of list `n` in ascending order, each with whether it is full.
    ///
    /// An order that does not depend on which tiles are full keeps sums the same to the bit when
    /// only the neighbours in a packed row change.
    pub fn live(&self, n: usize) -> impl Iterator<Item = (usize, bool)> + '_ {
        merge(self.full(n), self.partial(n))
    }

    /// What [`TileLists::live`] gives of the tiles in `tiles`, found by bisection.
    pub fn live_within(
        &self,
        n: usize,
        tiles: Range<usize>,
    ) -> impl Iterator<Item = (usize, bool)> + '_ {
        let within = |list: &'_ [u32]| {
            let before = |bound: usize| list.partition_point(|&tile| (tile as usize) < bound);
            before(tiles.start)..before(tiles.end).max(before(tiles.start))
        };
        let (full, partial) = (self.full(n), self.partial(n));
        merge(&full[within(full)], &partial[within(partial)])
    }

    fn part(&self, part: usize) -> &[u32] {
        match self.offsets.get(part..part + 2) {
            Some(&[from, to]) => &self.tiles[from as usize..to as usize],
            _ => &[],
        }
    }

    /// Starts with no list; [`TileLists::push`] adds them in order.
    pub(super) fn with_capacity(lists: usize) -> Self {
        let mut offsets = Vec::with_capacity(2 * lists + 1);
        offsets.push(0);
        Self { offsets, tiles: Vec::new() }
    }

    /// Adds the next list, full and partial tiles ascending; `None` if an offset no longer fits.
    pub(super) fn push(&mut self, full: &[u32], partial: &[u32]) -> Option<()> {
        for part in [full, partial] {
            self.tiles.extend_from_slice(part);
            self.offsets.push(u32::try_from(self.tiles.len()).ok()?);
        }
        Some(())
    }

    /// The same tiles seen from the other side: list `n` of the result holds the lists here that
    /// name `n`.
    ///
    /// `from` and `to` are the numbers of tiles per batch row on this side and on the other.
    pub(super) fn transposed(&self, from: usize, to: usize, batch: usize) -> Self {
        let part_of =
            |list: usize, part: usize, tile: u32| 2 * (list / from * to + tile as usize) + part;
        let mut offsets = vec![0u32; 2 * to * batch + 1];
        self.each(|list, part, tile| offsets[part_of(list, part, tile) + 1] += 1);
        let mut sum = 0;
        for offset in &mut offsets {
            sum += *offset;
            *offset = sum;
        }
        let mut next = offsets.clone();
        let mut tiles = vec![0; self.tiles.len()];
        self.each(|list, part, tile| {
            let at = &mut next[part_of(list, part, tile)];
            tiles[*at as usize] = (list % from) as u32;
            *at += 1;
        });
        Self { offsets, tiles }
    }

    fn each(&self, mut visit: impl FnMut(usize, usize, u32)) {
        for list in 0..self.len() {
            for part in 0..2 {
                for &tile in self.part(2 * list + part) {
                    visit(list, part, tile);
                }
            }
        }
    }
}

/// Two ascending lists as one, each entry with whether it came from the first.
fn merge<'a>(full: &'a [u32], partial: &'a [u32]) -> impl Iterator<Item = (usize, bool)> + 'a {
    let (mut full, mut partial) = (full.iter().peekable(), partial.iter().peekable());
    std::iter::from_fn(move || {
        let take_full = match (full.peek(), partial.peek()) {
            (Some(full), Some(partial)) => full < partial,
            (full, _) => full.is_some(),
        };
        let tile = if take_full { full.next() } else { partial.next() };
        tile.map(|&tile| (tile as usize, take_full))
    })
}

/// A cut of the tokens into consecutive cells, along both axes of a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bins {
    tokens: usize,
    cells: usize,
    tile: Option<usize>,
}

impl Bins {
    /// At most `cells` cells whose sizes differ by at most one token; none is empty.
    pub fn even(tokens: usize, cells: usize) -> Self {
        Self { tokens, cells: cells.min(tokens), tile: None }
    }

    /// Cells of `size` tokens, at least one; the last one may be shorter.
    pub fn tiles(tokens: usize, size: usize) -> Self {
        let size = size.max(1);
        Self { tokens, cells: tokens.div_ceil(size), tile: Some(size) }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// First token of a cell; the number of tokens for the cell behind the last.
    pub fn edge(&self, cell: usize) -> usize {
        match self.tile {
            Some(size) => (cell * size).min(self.tokens),
            None if self.cells == 0 => 0,
            None => cell * self.tokens / self.cells,
        }
    }

    /// Number of tokens in a cell.
    pub fn size(&self, cell: usize) -> usize {
        self.edge(cell + 1) - self.edge(cell)
    }

    /// The cell of a token.
    pub fn of(&self, token: usize) -> usize {
        match self.tile {
            Some(size) => token / size,
            None => ((token + 1) * self.cells - 1) / self.tokens,
        }
    }
}

/// How much of a square of pairs is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tile {
    /// Nothing.
    Empty,
    /// Some pairs.
    Partial,
    /// Every pair.
    Full,
}

/// The number of visible pairs in every square of a grid over a mask, counted exactly.
///
/// ```
/// use pleach_picture::{Bins, Coverage, Tile};
///
/// // Two keys that all see, then two branches of two tokens.
/// let coverage = Coverage::of(&[6, 6, 4, 4, 6, 6], Bins::tiles(6, 2));
/// let row: Vec<Tile> = (0..3).map(|key| coverage.tile(2, key)).collect();
/// assert_eq!(row, [Tile::Full, Tile::Empty, Tile::Partial]);
/// assert_eq!((coverage.pairs(2, 2), coverage.area(2, 2)), (3, 4));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    bins: Bins,
    pairs: Vec<u64>,
}

impl Coverage {
    /// Counts the pairs `j <= i < ends[j]` in time linear in tokens and squares.
    pub fn of(ends: &[i32], bins: Bins) -> Self {
        let cells = bins.len();
        let mut pairs = vec![0; cells * cells];
        columns::<1>(
            ends,
            bins,
            |_| 0,
            |key, column| {
                for (row, count) in column.iter().enumerate() {
                    pairs[row * cells + key] = count[0];
                }
            },
        );
        Self { bins, pairs }
    }

    /// The cells along both axes.
    pub fn bins(&self) -> Bins {
        self.bins
    }

    /// Visible pairs of the rows of one cell and the keys of another.
    pub fn pairs(&self, row: usize, key: usize) -> u64 {
        self.pairs[row * self.bins.len() + key]
    }

    /// All pairs of that square.
    pub fn area(&self, row: usize, key: usize) -> u64 {
        self.bins.size(row) as u64 * self.bins.size(key) as u64
    }

    /// How much of that square is visible.
    pub fn tile(&self, row: usize, key: usize) -> Tile {
        match self.pairs(row, key) {
            0 => Tile::Empty,
            pairs if pairs == self.area(row, key) => Tile::Full,
            _ => Tile::Partial,
        }
    }
}

/// Hands out the cells of keys from left to right, each with its visible pairs by cell of rows and
/// class of key.
///
/// Only one column of cells is held at a time.
pub(crate) fn columns<const CLASSES: usize>(
    ends: &[i32],
    bins: Bins,
    class: impl Fn(usize) -> usize,
    mut take: impl FnMut(usize, &[[u64; CLASSES]]),
) {
    let mut part = vec![[0_u64; CLASSES]; bins.len()];
    let mut opens = vec![[0_i64; CLASSES]; bins.len() + 1];
    for key in 0..bins.len() {
        part.fill([0; CLASSES]);
        opens.fill([0; CLASSES]);
        for token in bins.edge(key)..bins.edge(key + 1) {
            let end = usize::try_from(ends[token]).unwrap_or(0).min(ends.len());
            if end <= token {
                continue;
            }
            let (class, first, last) = (class(token), bins.of(token), bins.of(end - 1));
            if first == last {
                part[first][class] += (end - token) as u64;
                continue;
            }
            part[first][class] += (bins.edge(first + 1) - token) as u64;
            part[last][class] += (end - bins.edge(last)) as u64;
            opens[first + 1][class] += 1;
            opens[last][class] -= 1;
        }
        let mut open = [0_i64; CLASSES];
        for (row, part) in part.iter_mut().enumerate() {
            let size = bins.size(row) as u64;
            for class in 0..CLASSES {
                open[class] += opens[row][class];
                part[class] += open[class].unsigned_abs() * size;
            }
        }
        take(key, &part);
    }
}

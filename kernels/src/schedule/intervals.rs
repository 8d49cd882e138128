use crate::error::KernelError;
use std::sync::Arc;

/// A sliding window over positions, beside the interval rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window<'a> {
    /// Position of each token of the row.
    pub positions: &'a [i32],
    /// A row sees a key only while the difference of their positions is smaller.
    pub length: u32,
}

/// The mask of one packed row: row `i` sees key `j` if and only if `j <= i < ends[j]`, and the
/// window allows it.
///
/// Intervals need not nest. A padding token has `ends[j] == j`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalRow<'a> {
    /// First index that does not see each key any more.
    pub ends: &'a [i32],
    /// The window of windowed heads.
    pub window: Option<Window<'a>>,
}

impl IntervalRow<'_> {
    /// (row, key) pairs that the intervals leave visible; a window, which hides some of them, is
    /// left aside.
    pub fn interval_pairs(&self) -> u64 {
        (0..)
            .zip(self.ends)
            .map(|(token, &end): (i64, _)| u64::try_from(i64::from(end) - token).unwrap_or(0))
            .sum()
    }

    /// Whether row `i` may attend to key `j`: the rule itself, pair by pair.
    ///
    /// # Panics
    /// If `i` or `j` is not a token of the row.
    pub fn sees(&self, i: usize, j: usize) -> bool {
        let near = |window: &Window<'_>| {
            i64::from(window.positions[i]) - i64::from(window.positions[j])
                < i64::from(window.length)
        };
        j <= i
            && i64::try_from(i).is_ok_and(|i| i < i64::from(self.ends[j]))
            && self.window.as_ref().is_none_or(near)
    }
}

/// The visibility of a batch of packed rows, on the host: checked here and nowhere else, and padded
/// to the longest row.
///
/// A [`TreeMask`](crate::TreeMask) is this on a device; a [`Schedule`](super::Schedule) is planned
/// from it. Clones share their arrays.
///
/// ```
/// use pleach_kernels::schedule::IntervalRows;
///
/// let rows = IntervalRows::new(&[&[3, 2, 3][..], &[2, 2]])?;
/// assert_eq!(rows.dims(), [2, 3]);
/// // The third token of the second row is padding.
/// assert_eq!(rows.row(1).map(|row| row.ends), Some(&[2, 2, 2][..]));
/// # Ok::<(), pleach_kernels::KernelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntervalRows {
    lengths: Arc<[usize]>,
    time: usize,
    ends: Arc<[i32]>,
    window: Option<(Arc<[i32]>, u32)>,
}

impl IntervalRows {
    /// The rows given by the `ends` of their tokens.
    ///
    /// Shorter rows are padded: a padding token `j` has `ends[j] == j`, so that nobody sees it and
    /// it sees nothing. Rows that are padded already may hold such tokens themselves.
    ///
    /// # Shapes
    /// `ends`: `[batch][time of the row]`, indices into the row.
    ///
    /// # Errors
    /// No rows, a row without tokens, an end before its token or beyond its own row.
    pub fn new<R: AsRef<[i32]>>(ends: &[R]) -> Result<Self, KernelError> {
        let lengths: Arc<[usize]> = ends.iter().map(|row| row.as_ref().len()).collect();
        let time = lengths.iter().copied().max().ok_or(KernelError::EmptyMask)?;
        let width = i32::try_from(time).map_err(|_| KernelError::TooLong { time })?;
        let mut flat = Vec::with_capacity(ends.len() * time);
        for (row, ends) in ends.iter().map(AsRef::as_ref).enumerate() {
            check_ends(row, ends)?;
            flat.extend_from_slice(ends);
            flat.extend((0..width).skip(ends.len()));
        }
        Ok(Self { lengths, time, ends: flat.into(), window: None })
    }

    /// The same rows for windowed heads, which see a key only while
    /// `position_i - position_j < window`.
    ///
    /// # Shapes
    /// `positions`: `[batch][time of the row]`, tokens from the start of the conversation.
    ///
    /// # Errors
    /// Positions that do not match the ends token for token, a negative one, or a window of 0.
    pub fn with_window<R: AsRef<[i32]>>(
        &self,
        positions: &[R],
        window: u32,
    ) -> Result<Self, KernelError> {
        if window == 0 {
            return Err(KernelError::EmptyWindow);
        }
        let [batch, time] = self.dims();
        if positions.len() != batch {
            let (expected, found) = (batch, positions.len());
            return Err(KernelError::Rows { array: "positions", expected, found });
        }
        let mut flat = Vec::with_capacity(batch * time);
        for (row, (positions, &expected)) in positions.iter().zip(&*self.lengths).enumerate() {
            let (positions, found) = (positions.as_ref(), positions.as_ref().len());
            if found != expected {
                return Err(KernelError::RowLength { array: "positions", row, expected, found });
            }
            check_positions(row, positions)?;
            flat.extend_from_slice(positions);
            flat.resize((row + 1) * time, 0);
        }
        Ok(Self { window: Some((flat.into(), window)), ..self.clone() })
    }

    /// Rows, and tokens per row with padding.
    pub fn dims(&self) -> [usize; 2] {
        [self.lengths.len(), self.time]
    }

    /// Tokens of each row as it was given, without the padding that was added.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// One row, with padding.
    pub fn row(&self, row: usize) -> Option<IntervalRow<'_>> {
        (row < self.lengths.len()).then(|| self.at(row))
    }

    /// All rows in order, with padding.
    pub fn rows(&self) -> impl Iterator<Item = IntervalRow<'_>> {
        (0..self.lengths.len()).map(|row| self.at(row))
    }

    /// A row that is there.
    pub(crate) fn at(&self, row: usize) -> IntervalRow<'_> {
        let span = row * self.time..(row + 1) * self.time;
        let window = self.flat_window();
        let window = window
            .map(|(positions, length)| Window { positions: &positions[span.clone()], length });
        IntervalRow { ends: &self.ends[span], window }
    }

    /// The ends of all rows, `[batch, time]`.
    pub(crate) fn flat_ends(&self) -> &[i32] {
        &self.ends
    }

    /// Positions of all rows, `[batch, time]`, and the length of the window in them.
    pub(crate) fn flat_window(&self) -> Option<(&[i32], u32)> {
        self.window.as_ref().map(|(positions, length)| (&**positions, *length))
    }
}

fn check_ends(row: usize, ends: &[i32]) -> Result<(), KernelError> {
    let time = ends.len();
    if time == 0 {
        return Err(KernelError::EmptyRow { row });
    }
    for (token, &end) in ends.iter().enumerate() {
        match usize::try_from(end) {
            Ok(end_index) if end_index > time => {
                return Err(KernelError::EndBeyondRow { row, token, end, time });
            }
            Ok(end_index) if end_index >= token => {}
            _ => return Err(KernelError::EndBeforeToken { row, token, end }),
        }
    }
    Ok(())
}

fn check_positions(row: usize, positions: &[i32]) -> Result<(), KernelError> {
    match positions.iter().position(|&position| position < 0) {
        None => Ok(()),
        Some(token) => Err(KernelError::NegativePosition {
            array: "positions",
            row,
            token,
            position: positions[token],
        }),
    }
}

use super::element::Element;
use crate::mask::TILE;
use crate::schedule::IntervalRow;
use std::ops::Range;

/// Query rows of a tile.
pub(crate) const ROWS: usize = TILE.rows;
/// Keys of a tile.
pub(crate) const KEYS: usize = TILE.keys;
/// Keys whose visible rows are looked at together.
pub(crate) const GROUP: usize = 8;

/// Which rows of a tile see each group of keys, so that the hidden parts of a partial tile are not
/// computed either.
#[derive(Debug, Clone)]
pub(crate) struct TileShape {
    /// Keys of the tile inside the row.
    keys: usize,
    /// For each group of keys, the rows between the first and the last that sees one of them; empty
    /// if none does.
    seen: [Range<usize>; KEYS / GROUP],
}

impl TileShape {
    /// A tile that is visible throughout.
    pub(crate) fn full() -> Self {
        Self { keys: KEYS, seen: std::array::from_fn(|_| 0..ROWS) }
    }

    /// The tile of the rows from `first_row` and the keys from `first_key` under the interval rule.
    pub(crate) fn partial(mask: &IntervalRow<'_>, first_row: usize, first_key: usize) -> Self {
        let keys = KEYS.min(mask.ends.len() - first_key);
        let seen = std::array::from_fn(|group| {
            let keys = (group * GROUP).min(keys)..((group + 1) * GROUP).min(keys);
            let rows = keys
                .map(|key| seeing_rows(mask, first_row, first_key + key))
                .filter(|rows| !rows.is_empty());
            rows.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
        });
        Self { keys, seen }
    }

    /// Rows of the tile that may see a key of the group, all between the first and the last.
    pub(crate) fn seen(&self, group: usize) -> Range<usize> {
        self.seen[group].clone()
    }

    /// Keys of a group that lie inside the row.
    pub(crate) fn group_keys(&self, group: usize) -> Range<usize> {
        (group * GROUP).min(self.keys)..((group + 1) * GROUP).min(self.keys)
    }

    /// Ranges of keys that a row of `rows` may see, ascending, as few as can be.
    pub(crate) fn runs(&self, rows: Range<usize>) -> Runs {
        let mut runs = Runs::default();
        for group in 0..KEYS / GROUP {
            let seen = &self.seen[group];
            if seen.start.max(rows.start) < seen.end.min(rows.end) {
                runs.add(self.group_keys(group));
            }
        }
        runs
    }
}

/// A few ranges of keys in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    ranges: [Range<usize>; KEYS / GROUP],
    len: usize,
}

impl Runs {
    /// The ranges.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<usize>> + Clone {
        self.ranges[..self.len].iter().cloned()
    }

    fn add(&mut self, keys: Range<usize>) {
        match self.ranges[..self.len].last_mut() {
            Some(last) if last.end == keys.start => last.end = keys.end,
            _ => {
                self.ranges[self.len] = keys;
                self.len += 1;
            }
        }
    }
}

/// Rows of the tile from `first_row` that see `key` by its interval, counted from `first_row`.
fn seeing_rows(mask: &IntervalRow<'_>, first_row: usize, key: usize) -> Range<usize> {
    let end = usize::try_from(mask.ends[key]).unwrap_or(0);
    key.saturating_sub(first_row).min(ROWS)..end.saturating_sub(first_row).min(ROWS)
}

/// Sets the scores of hidden pairs in `keys` x `rows` of a tile, `scores[key][row]`.
pub(crate) fn hide<E: Element>(
    mask: &IntervalRow<'_>,
    [first_row, first_key]: [usize; 2],
    keys: Range<usize>,
    rows: Range<usize>,
    scores: &mut [E],
) {
    for key in keys {
        let scores = &mut scores[key * ROWS..][..ROWS];
        let seen = seeing_rows(mask, first_row, first_key + key);
        let (start, end) =
            (seen.start.clamp(rows.start, rows.end), seen.end.clamp(rows.start, rows.end));
        scores[rows.start..start].fill(E::HIDDEN);
        scores[end.max(start)..rows.end].fill(E::HIDDEN);
        if let Some(window) = &mask.window {
            let oldest = i64::from(window.positions[first_key + key]) + i64::from(window.length);
            let positions =
                window.positions[first_row..].iter().chain(std::iter::repeat(&i32::MAX));
            for (score, &position) in scores.iter_mut().zip(positions).take(end).skip(start) {
                if i64::from(position) >= oldest {
                    *score = E::HIDDEN;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::NamedProblem;

    #[test]
    fn runs_hold_every_key_that_a_row_sees_and_hidden_pairs_are_hidden() {
        for problem in NamedProblem::ALL {
            let time = 300;
            let tree = problem.tree(time);
            for window in [None, Some(40)] {
                let window = window
                    .map(|length| crate::schedule::Window { positions: &tree.positions, length });
                let mask = IntervalRow { ends: &tree.ends, window };
                for first_row in (0..time).step_by(ROWS) {
                    for first_key in (0..=first_row).step_by(KEYS) {
                        check(&mask, first_row, first_key);
                    }
                }
            }
        }
    }

    fn check(mask: &IntervalRow<'_>, first_row: usize, first_key: usize) {
        let shape = TileShape::partial(mask, first_row, first_key);
        let time = mask.ends.len();
        for rows in [0..16, 16..32, 32..64] {
            let listed: Vec<usize> = shape.runs(rows.clone()).iter().flatten().collect();
            let mut scores = vec![1.0f32; KEYS * ROWS];
            hide(
                mask,
                [first_row, first_key],
                0..KEYS.min(time - first_key),
                rows.clone(),
                &mut scores,
            );
            for key in 0..KEYS {
                for row in rows.clone() {
                    let (i, j) = (first_row + row, first_key + key);
                    let sees = i < time && j < time && mask.sees(i, j);
                    assert!(!sees || listed.contains(&key), "row {i} sees key {j}");
                    assert!(
                        !sees || shape.seen(key / GROUP).contains(&row),
                        "row {i} sees key {j}"
                    );
                    if j < time {
                        let hidden = scores[key * ROWS + row] == f32::NEG_INFINITY;
                        assert!(i >= time || hidden != sees, "row {i}, key {j}");
                    }
                }
            }
        }
    }
}

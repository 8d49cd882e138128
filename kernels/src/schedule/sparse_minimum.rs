/// Minima over all ranges of a power of two, so that the least value of any range is two look-ups
/// away.
///
/// Positions restart at every branch of a tree, so the tiles that a window leaves visible are no
/// range; asking for the next value below a bound finds each of them without passing over the
/// others.
pub(super) struct SparseMinimum {
    levels: Vec<Vec<i32>>,
}

impl SparseMinimum {
    /// Prepares `values` in O(n log n).
    pub(super) fn new(values: Vec<i32>) -> Self {
        let mut levels = vec![values];
        let mut half = 1;
        while let Some(last) = levels.last().filter(|last| last.len() > half) {
            levels.push(last.iter().zip(&last[half..]).map(|(&a, &b)| a.min(b)).collect());
            half *= 2;
        }
        Self { levels }
    }

    /// Appends the indices in `from..to` whose value is below `bound`, ascending, in O(their number
    /// x log n).
    pub(super) fn below(&self, from: usize, to: usize, bound: i64, found: &mut Vec<u32>) {
        if from >= to || self.minimum(from, to) >= bound {
            return;
        }
        if to - from == 1 {
            found.push(from as u32);
            return;
        }
        let middle = from.midpoint(to);
        self.below(from, middle, bound, found);
        self.below(middle, to, bound, found);
    }

    fn minimum(&self, from: usize, to: usize) -> i64 {
        let level = (to - from).ilog2();
        let values = &self.levels[level as usize];
        i64::from(values[from].min(values[to - (1 << level)]))
    }
}

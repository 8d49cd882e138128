use super::element::{Element, lanes};
use pulp::Simd;

/// A matrix in memory by the address of its first entry and the distances of its rows and columns,
/// in entries.
#[derive(Clone, Copy)]
pub(crate) struct Left<E> {
    /// Entry (0, 0).
    pub(crate) at: *const E,
    /// From one row of the result to the next.
    pub(crate) row: usize,
    /// From one summand to the next.
    pub(crate) inner: usize,
}

/// A matrix whose rows are contiguous.
#[derive(Clone, Copy)]
pub(crate) struct Right<E> {
    /// Entry (0, 0).
    pub(crate) at: *const E,
    /// From one summand to the next.
    pub(crate) inner: usize,
}

/// A result whose rows are contiguous.
#[derive(Clone, Copy)]
pub(crate) struct Out<E> {
    /// Entry (0, 0).
    pub(crate) at: *mut E,
    /// From one row to the next.
    pub(crate) row: usize,
}

/// Sizes of a product: `out[rows, columns] = left[rows, inner] right[inner, columns]`.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// Rows of the result.
    pub(crate) rows: usize,
    /// Columns of the result, a multiple of the entries of a vector.
    pub(crate) columns: usize,
    /// Summands.
    pub(crate) inner: usize,
}

/// Vectors of a register tile.
pub(crate) const WIDTH: usize = 2;

/// How a product meets what `out` holds.
pub(crate) type Onto = u8;

/// It replaces it.
pub(crate) const WRITE: Onto = 0;

/// It continues it: each entry stays one chain of multiply-adds, however the summands are cut into
/// products.
pub(crate) const CONTINUE: Onto = 1;

/// It is summed apart and then added, so that an entry of many products does not inherit the
/// rounding of one long chain.
pub(crate) const ADD: Onto = 2;

/// Writes, continues or adds a product; each entry is one chain of fused multiply-adds in the order
/// of the summands, whatever its place in a register tile, so that results do not depend on how a
/// product is cut into rows and columns.
///
/// # Safety
/// All entries that `sizes` spans must be valid to read and, of `out`, to write, and `out` must not
/// overlap the operands.
#[inline(always)]
pub(crate) unsafe fn product<E: Element, S: Simd, const ONTO: Onto>(
    simd: S,
    sizes: Sizes,
    left: Left<E>,
    right: Right<E>,
    out: Out<E>,
) {
    let width = WIDTH * lanes::<E, S>();
    let mut column = 0;
    while column < sizes.columns {
        // SAFETY: `column` is below `sizes.columns`, inside both matrices.
        let (right, out) = unsafe { (right.column(column), out.column(column)) };
        let sizes = Sizes { columns: sizes.columns - column, ..sizes };
        // SAFETY: what this function asks of its caller, for the columns that are left.
        unsafe {
            if sizes.columns >= width {
                columns::<E, S, WIDTH, ONTO>(simd, sizes, left, right, out);
            } else {
                columns::<E, S, 1, ONTO>(simd, sizes, left, right, out);
            }
        }
        column += if sizes.columns >= width { width } else { lanes::<E, S>() };
    }
}

/// All rows of `W` vectors of columns, as many at once as leave registers for the operands.
///
/// # Safety
/// As for [`product`], with `W` vectors of columns.
#[inline(always)]
unsafe fn columns<E: Element, S: Simd, const W: usize, const ONTO: Onto>(
    simd: S,
    sizes: Sizes,
    left: Left<E>,
    right: Right<E>,
    out: Out<E>,
) {
    let mut row = 0;
    while row < sizes.rows {
        let rows = sizes.rows - row;
        // SAFETY: `row` is below `sizes.rows`, and a register tile has no more rows than are left.
        unsafe {
            let (left, out) = (left.at_row(row), out.at_row(row));
            if S::REGISTER_COUNT >= 32 && rows >= 8 {
                register_tile::<E, S, 8, W, ONTO>(simd, sizes.inner, left, right, out);
                row += 8;
            } else if rows >= 4 {
                register_tile::<E, S, 4, W, ONTO>(simd, sizes.inner, left, right, out);
                row += 4;
            } else {
                register_tile::<E, S, 1, W, ONTO>(simd, sizes.inner, left, right, out);
                row += 1;
            }
        }
    }
}

/// `H` rows of `W` vectors, held in registers over all summands.
///
/// # Safety
/// As for [`product`], with `H` rows and `W` vectors of columns.
#[inline(always)]
unsafe fn register_tile<E: Element, S: Simd, const H: usize, const W: usize, const ONTO: Onto>(
    simd: S,
    inner: usize,
    left: Left<E>,
    right: Right<E>,
    out: Out<E>,
) {
    let zero = E::splat(simd, E::default());
    let mut sums = [[zero; W]; H];
    // SAFETY: the caller vouches for H x inner entries of `left`, inner x W vectors of `right`, H x
    // W vectors of `out`.
    unsafe {
        if ONTO == CONTINUE {
            for (h, sums) in sums.iter_mut().enumerate() {
                for (w, sum) in sums.iter_mut().enumerate() {
                    *sum = load::<E, S>(out.at.add(h * out.row + w * lanes::<E, S>()));
                }
            }
        }
        // Addresses of their own, so that a distance known only at run time costs no arithmetic in
        // the loop.
        let mut factors: [*const E; H] =
            std::array::from_fn(|h| left.at.wrapping_add(h * left.row));
        for i in 0..inner {
            let mut row = [zero; W];
            for (w, vector) in row.iter_mut().enumerate() {
                *vector = load::<E, S>(right.at.add(i * right.inner + w * lanes::<E, S>()));
            }
            for (factors, sums) in factors.iter_mut().zip(&mut sums) {
                let factor = E::splat(simd, **factors);
                *factors = factors.wrapping_add(left.inner);
                for (sum, &vector) in sums.iter_mut().zip(&row) {
                    *sum = E::mul_add(simd, factor, vector, *sum);
                }
            }
        }
        for (h, sums) in sums.iter().enumerate() {
            for (w, &sum) in sums.iter().enumerate() {
                let at = out.at.add(h * out.row + w * lanes::<E, S>());
                let sum = if ONTO == ADD { E::add(simd, load::<E, S>(at), sum) } else { sum };
                store::<E, S>(at, sum);
            }
        }
    }
}

/// One vector from memory.
///
/// # Safety
/// A vector's entries must be valid to read at `at`.
#[inline(always)]
pub(crate) unsafe fn load<E: Element, S: Simd>(at: *const E) -> E::Lanes<S> {
    // SAFETY: a vector is plain entries side by side, and the caller vouches for them.
    unsafe { at.cast::<E::Lanes<S>>().read_unaligned() }
}

/// One vector to memory.
///
/// # Safety
/// A vector's entries must be valid to write at `at`.
#[inline(always)]
pub(crate) unsafe fn store<E: Element, S: Simd>(at: *mut E, x: E::Lanes<S>) {
    // SAFETY: a vector is plain entries side by side, and the caller vouches for them.
    unsafe { at.cast::<E::Lanes<S>>().write_unaligned(x) }
}

impl<E> Left<E> {
    /// The matrix without its first `rows` rows.
    ///
    /// # Safety
    /// The row must be inside the matrix.
    #[inline(always)]
    unsafe fn at_row(self, rows: usize) -> Self {
        // SAFETY: the caller vouches for the row.
        Self { at: unsafe { self.at.add(rows * self.row) }, ..self }
    }
}

impl<E> Right<E> {
    /// The matrix without its first `columns` columns.
    ///
    /// # Safety
    /// The column must be inside the matrix.
    #[inline(always)]
    unsafe fn column(self, columns: usize) -> Self {
        // SAFETY: the caller vouches for the column.
        Self { at: unsafe { self.at.add(columns) }, ..self }
    }
}

impl<E> Out<E> {
    /// The matrix without its first `rows` rows.
    ///
    /// # Safety
    /// The row must be inside the matrix.
    #[inline(always)]
    unsafe fn at_row(self, rows: usize) -> Self {
        // SAFETY: the caller vouches for the row.
        Self { at: unsafe { self.at.add(rows * self.row) }, ..self }
    }

    /// The matrix without its first `columns` columns.
    ///
    /// # Safety
    /// The column must be inside the matrix.
    #[inline(always)]
    unsafe fn column(self, columns: usize) -> Self {
        // SAFETY: the caller vouches for the column.
        Self { at: unsafe { self.at.add(columns) }, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::WithSimd;

    struct Product<'a> {
        sizes: Sizes,
        left: &'a [f64],
        strides: [usize; 2],
        right: &'a [f64],
        out: &'a mut [f64],
        onto: Onto,
    }

    impl WithSimd for Product<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Self { sizes, left, strides: [row, inner], right, out, onto } = self;
            let left = Left { at: left.as_ptr(), row, inner };
            let right = Right { at: right.as_ptr(), inner: sizes.columns };
            let out = Out { at: out.as_mut_ptr(), row: sizes.columns };
            // SAFETY: the test's buffers hold all that the sizes span.
            unsafe {
                match onto {
                    WRITE => product::<f64, S, WRITE>(simd, sizes, left, right, out),
                    CONTINUE => product::<f64, S, CONTINUE>(simd, sizes, left, right, out),
                    _ => product::<f64, S, ADD>(simd, sizes, left, right, out),
                }
            }
        }
    }

    #[test]
    fn every_cut_of_a_product_gives_the_plain_sums() {
        for rows in [0, 1, 3, 4, 7, 8, 13, 64] {
            for columns in [8, 16, 24, 40, 64] {
                for inner in [0, 1, 2, 17, 64] {
                    let left: Vec<f64> =
                        (0..rows * inner).map(|at| ((at * 37 + 11) % 101) as f64 - 50.0).collect();
                    let right: Vec<f64> =
                        (0..inner * columns).map(|at| ((at * 53 + 7) % 89) as f64 - 44.0).collect();
                    for (strides, onto) in
                        [([inner, 1], WRITE), ([1, rows], CONTINUE), ([inner, 1], ADD)]
                    {
                        let mut out = vec![1.0; rows * columns];
                        let sizes = Sizes { rows, columns, inner };
                        let op = Product {
                            sizes,
                            left: &left,
                            strides,
                            right: &right,
                            out: &mut out,
                            onto,
                        };
                        pulp::Arch::new().dispatch(op);
                        for (at, &found) in out.iter().enumerate() {
                            let [r, c] = [at / columns, at % columns];
                            let entry =
                                |i| left[r * strides[0] + i * strides[1]] * right[i * columns + c];
                            let expected = f64::from(u8::from(onto != WRITE))
                                + (0..inner).map(entry).sum::<f64>();
                            assert_eq!(
                                found, expected,
                                "{rows} x {columns} x {inner}, entry {r}, {c}"
                            );
                        }
                    }
                }
            }
        }
    }
}

use super::element::Element;
use super::product::Right;
use std::ops::Range;

/// The rows of a `[batch, heads, time, head_dim]` tensor in memory, whatever the strides of its
/// first three dimensions.
///
/// A model that splits its heads by a transpose need not copy them for attention.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, E> {
    data: &'a [E],
    batch: usize,
    head: usize,
    row: usize,
    head_dim: usize,
}

impl<'a, E: Element> Rows<'a, E> {
    /// The rows of `data` at the given strides, in entries; `None` if an entry would lie outside of
    /// `data`.
    pub(crate) fn new(data: &'a [E], shape: [usize; 4], strides: [usize; 3]) -> Option<Self> {
        let [batch, heads, time, head_dim] = shape;
        let extents = [batch, heads, time].into_iter().zip(strides);
        let last = extents
            .map(|(size, stride)| size.checked_sub(1)?.checked_mul(stride))
            .sum::<Option<usize>>()?;
        let [batch, head, row] = strides;
        (last.checked_add(head_dim)? <= data.len()).then_some(Self {
            data,
            batch,
            head,
            row,
            head_dim,
        })
    }

    /// The entries of some tokens of a head, one after another.
    pub(crate) fn tokens(
        self,
        batch: usize,
        head: usize,
        tokens: Range<usize>,
    ) -> impl Iterator<Item = &'a [E]> {
        tokens.map(move |token| self.row(batch, head, token))
    }

    /// The rows of a head from a token on, as a product reads them.
    pub(crate) fn operand(&self, batch: usize, head: usize, token: usize) -> Right<E> {
        // From a slice to the end of the tensor, for the address must be good for the rows behind
        // this one too.
        Right { at: self.data[self.start(batch, head, token)..].as_ptr(), inner: self.row }
    }

    /// The entries of one token.
    pub(crate) fn row(&self, batch: usize, head: usize, token: usize) -> &'a [E] {
        let start = self.start(batch, head, token);
        &self.data[start..start + self.head_dim]
    }

    fn start(&self, batch: usize, head: usize, token: usize) -> usize {
        batch * self.batch + head * self.head + token * self.row
    }
}

/// Writes rows of `rows` side by side as columns, times `factor`: `panel[c][r]`, `width` columns of
/// which those without a row are 0.
///
/// A product whose vectors run over queries then reads them in order.
pub(crate) fn transpose<'a, E: Element + std::ops::Mul<Output = E>>(
    rows: impl Iterator<Item = &'a [E]>,
    width: usize,
    factor: E,
    panel: &mut [E],
) {
    panel.fill(E::default());
    for (column, row) in rows.enumerate() {
        for (entry, &x) in panel[column..].iter_mut().step_by(width).zip(row) {
            *entry = x * factor;
        }
    }
}

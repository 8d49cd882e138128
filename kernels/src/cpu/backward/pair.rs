use super::block::QueryPanel;
use crate::cpu::element::{Element, lanes};
use crate::cpu::product::{
    ADD, CONTINUE, Left, Out, Right, Sizes, WIDTH, WRITE, load, product, store,
};
use crate::cpu::tile::{GROUP, KEYS, ROWS, TileShape, hide};
use crate::schedule::IntervalRow;
use pulp::Simd;
use std::ops::Range;

/// One query tile against one key tile.
pub(super) struct Pair<'a, E> {
    pub(super) mask: &'a IntervalRow<'a>,
    pub(super) shape: TileShape,
    pub(super) full: bool,
    /// First row and first key.
    pub(super) first: [usize; 2],
    /// Rows inside the batch row.
    pub(super) rows: usize,
    pub(super) head_dim: usize,
    pub(super) q: Right<E>,
    pub(super) d_o: Right<E>,
    pub(super) k: Right<E>,
    pub(super) v: Right<E>,
}

impl<E: Element> Pair<'_, E> {
    /// Adds the pair's share to the gradients of its queries, keys and values.
    ///
    /// # Safety
    /// The operands must hold the rows and keys of the pair that lie inside the row of the batch.
    #[inline(always)]
    pub(super) unsafe fn add<S: Simd>(
        &self,
        simd: S,
        queries: &QueryPanel<E>,
        [p_kr, ds_kr]: [&mut Vec<E>; 2],
        [dq_rd, dk_kd, dv_kd]: [&mut [E]; 3],
    ) {
        let lane_group = WIDTH * lanes::<E, S>();
        for first in (0..ROWS).step_by(lane_group) {
            let lanes = first..ROWS.min(first + lane_group);
            // SAFETY: as this function.
            unsafe {
                self.weights(simd, queries, lanes.clone(), [p_kr, ds_kr]);
                self.queries(simd, lanes, ds_kr, dq_rd);
            }
        }
        // SAFETY: as this function.
        unsafe {
            self.keys(simd, p_kr, self.d_o, dv_kd);
            self.keys(simd, ds_kr, self.q, dk_kd);
        }
    }

    /// Weights and gradients of the scores of some rows.
    #[inline(always)]
    unsafe fn weights<S: Simd>(
        &self,
        simd: S,
        queries: &QueryPanel<E>,
        rows: Range<usize>,
        [p_kr, ds_kr]: [&mut Vec<E>; 2],
    ) {
        for keys in self.shape.runs(rows.clone()).iter() {
            let sizes = Sizes { rows: keys.len(), columns: rows.len(), inner: self.head_dim };
            let start = keys.start * ROWS + rows.start;
            for (keys_of, panel, scores) in
                [(self.k, &queries.q_dr, &mut *p_kr), (self.v, &queries.do_dr, &mut *ds_kr)]
            {
                let left = Left {
                    at: keys_of.at.wrapping_add(keys.start * keys_of.inner),
                    row: keys_of.inner,
                    inner: 1,
                };
                let right = Right { at: panel[rows.start..].as_ptr(), inner: ROWS };
                let out = Out { at: scores[start..].as_mut_ptr(), row: ROWS };
                // SAFETY: the caller vouches for the keys; panels and scores hold ROWS entries for
                // each feature and key.
                unsafe { product::<E, S, WRITE>(simd, sizes, left, right, out) };
            }
            if !self.full {
                hide(self.mask, self.first, keys.clone(), rows.clone(), p_kr);
            }
            for lane in rows.clone().step_by(lanes::<E, S>()) {
                let column = |values: &[E]| values[lane..lane + lanes::<E, S>()].as_ptr();
                let (lse, rest, delta) =
                    (column(&queries.lse_r), column(&queries.rest_r), column(&queries.delta_r));
                let end = (KEYS - 1) * ROWS + lane + lanes::<E, S>();
                let (p, ds) = (p_kr[lane..end].as_mut_ptr(), ds_kr[lane..end].as_mut_ptr());
                // SAFETY: the slices above hold a vector for each key below KEYS, and one of each
                // row's figures.
                unsafe {
                    let (lse, rest, delta) =
                        (load::<E, S>(lse), load::<E, S>(rest), load::<E, S>(delta));
                    for key in keys.clone() {
                        let score = E::sub(simd, load::<E, S>(p.add(key * ROWS)), lse);
                        let weight = E::exp2(simd, E::sub(simd, score, rest));
                        let gradient = E::sub(simd, load::<E, S>(ds.add(key * ROWS)), delta);
                        store::<E, S>(p.add(key * ROWS), weight);
                        store::<E, S>(ds.add(key * ROWS), E::mul(simd, weight, gradient));
                    }
                }
            }
        }
    }

    /// Adds `ds k` to the gradients of some queries.
    #[inline(always)]
    unsafe fn queries<S: Simd>(&self, simd: S, rows: Range<usize>, ds_kr: &[E], dq_rd: &mut [E]) {
        let count = self.rows.min(rows.end).saturating_sub(rows.start);
        for keys in self.shape.runs(rows.clone()).iter() {
            if count == 0 {
                break;
            }
            let sizes = Sizes { rows: count, columns: self.head_dim, inner: keys.len() };
            let left =
                Left { at: ds_kr[keys.start * ROWS + rows.start..].as_ptr(), row: 1, inner: ROWS };
            let right = Right { at: self.k.at.wrapping_add(keys.start * self.k.inner), ..self.k };
            let out = Out {
                at: dq_rd[rows.start * self.head_dim..][..count * self.head_dim].as_mut_ptr(),
                row: self.head_dim,
            };
            // SAFETY: the caller vouches for the keys; the gradients hold `count` rows from the
            // first.
            unsafe { product::<E, S, CONTINUE>(simd, sizes, left, right, out) };
        }
    }

    /// Adds `weights queries` to the gradients of the keys, each group of keys over the rows that
    /// see it.
    #[inline(always)]
    unsafe fn keys<S: Simd>(&self, simd: S, weights_kr: &[E], of_rows: Right<E>, out_kd: &mut [E]) {
        for group in 0..KEYS / GROUP {
            let (keys, seen) = (self.shape.group_keys(group), self.shape.seen(group));
            let rows = seen.start..seen.end.min(self.rows);
            if rows.is_empty() {
                continue;
            }
            let sizes = Sizes { rows: keys.len(), columns: self.head_dim, inner: rows.len() };
            let left = Left {
                at: weights_kr[keys.start * ROWS + rows.start..].as_ptr(),
                row: ROWS,
                inner: 1,
            };
            let right =
                Right { at: of_rows.at.wrapping_add(rows.start * of_rows.inner), ..of_rows };
            let out = &mut out_kd[keys.start * self.head_dim..keys.end * self.head_dim];
            // SAFETY: the caller vouches for the rows; the gradients hold the keys of the group.
            unsafe {
                product::<E, S, ADD>(
                    simd,
                    sizes,
                    left,
                    right,
                    Out { at: out.as_mut_ptr(), row: self.head_dim },
                )
            };
        }
    }
}

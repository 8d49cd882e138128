use super::element::{Element, lanes};
use super::problem::CpuProblem;
use super::product::{CONTINUE, Left, Out, Right, Sizes, WIDTH, WRITE, load, product, store};
use super::rows::{Rows, transpose};
use super::tile::{KEYS, ROWS, TileShape, hide};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// What a worker keeps from tile to tile.
struct Scratch<E> {
    /// Queries as columns, `[head_dim][ROWS]`, times the scale and log2 e.
    q_dr: Vec<E>,
    /// Scores, then weights, `[KEYS][ROWS]`.
    p_kr: Vec<E>,
    /// Output before the division by the sum of weights, `[ROWS][head_dim]`.
    o_rd: Vec<E>,
    /// Greatest score of each row.
    max_r: Vec<E>,
    /// Sum of weights of each row.
    sum_r: Vec<E>,
    /// What the old maximum's weights are worth under the new one.
    rescale_r: Vec<E>,
}

impl<E: Element> Scratch<E> {
    fn new(head_dim: usize) -> Self {
        let zeros = |len| vec![E::default(); len];
        Self {
            q_dr: zeros(head_dim * ROWS),
            p_kr: zeros(KEYS * ROWS),
            o_rd: zeros(ROWS * head_dim),
            max_r: zeros(ROWS),
            sum_r: zeros(ROWS),
            rescale_r: zeros(ROWS),
        }
    }
}

/// Attention of every query tile over its live key tiles; writes the output and, per row, the
/// log-sum-exp of the scores in base 2.
///
/// Online softmax, arXiv 1805.02867, in the tiling of FlashAttention, arXiv 2205.14135: nothing of
/// size tokens x tokens exists.
///
/// # Shapes
/// - `q_bhtd`: `[batch, heads_q, time, head_dim]`, `k_bgtd`, `v_bgtd`:
///   `[batch, heads_kv, time, head_dim]`
/// - `o_bhtd`: `[batch, heads_q, time, head_dim]`, contiguous; `lse_bht`: `[batch, heads_q, time]`,
///   contiguous, in float64 because every weight of the backward pass inherits its rounding
pub(crate) fn forward<E: Element + std::ops::Mul<Output = E>>(
    problem: &CpuProblem<'_>,
    [q_bhtd, k_bgtd, v_bgtd]: [Rows<'_, E>; 3],
    o_bhtd: &mut [E],
    lse_bht: &mut [f64],
) {
    let (time, head_dim) = (problem.time(), problem.head_dim);
    let arch = pulp::Arch::new();
    let heads =
        o_bhtd.par_chunks_mut(time * head_dim).zip(lse_bht.par_chunks_mut(time)).enumerate();
    let tiles = heads.flat_map(|(head, (o_td, lse_t))| {
        let tiles =
            o_td.par_chunks_mut(ROWS * head_dim).zip(lse_t.par_chunks_mut(ROWS)).enumerate();
        tiles.map(move |(tile, (o_rd, lse_r))| (head, tile, o_rd, lse_r))
    });
    tiles.for_each_init(
        || Scratch::new(head_dim),
        |scratch, (head, tile, o_rd, lse_r)| {
            let [batch, head] = [head / problem.heads_q, head % problem.heads_q];
            arch.dispatch(QueryTile {
                problem,
                q_bhtd,
                k_bgtd,
                v_bgtd,
                batch,
                head,
                tile,
                scratch,
                o_rd,
                lse_r,
            });
        },
    );
}

/// One query tile of one head.
struct QueryTile<'a, E> {
    problem: &'a CpuProblem<'a>,
    q_bhtd: Rows<'a, E>,
    k_bgtd: Rows<'a, E>,
    v_bgtd: Rows<'a, E>,
    batch: usize,
    head: usize,
    tile: usize,
    scratch: &'a mut Scratch<E>,
    o_rd: &'a mut [E],
    lse_r: &'a mut [f64],
}

impl<E: Element + std::ops::Mul<Output = E>> WithSimd for QueryTile<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { problem, q_bhtd, k_bgtd, v_bgtd, batch, head, tile, scratch, o_rd, lse_r } =
            self;
        let first_row = tile * ROWS;
        let group = problem.key_head(head);
        let rows = q_bhtd.tokens(batch, head, first_row..first_row + lse_r.len());
        transpose(rows, ROWS, E::of(problem.scale * std::f64::consts::LOG2_E), &mut scratch.q_dr);
        scratch.o_rd.fill(E::default());
        scratch.sum_r.fill(E::default());
        scratch.max_r.fill(E::HIDDEN);
        let mask = problem.rows.at(batch);
        for (key_tile, full) in problem.key_tiles(batch, tile) {
            let first_key = key_tile * KEYS;
            let shape = if full {
                TileShape::full()
            } else {
                TileShape::partial(&mask, first_row, first_key)
            };
            let step = KeyTile {
                k: k_bgtd.operand(batch, group, first_key),
                v: v_bgtd.operand(batch, group, first_key),
                head_dim: problem.head_dim,
                hide: |keys, rows, scores: &mut [E]| {
                    if !full {
                        hide(&mask, [first_row, first_key], keys, rows, scores);
                    }
                },
            };
            let lane_group = WIDTH * lanes::<E, S>();
            for first in (0..ROWS).step_by(lane_group) {
                let rows = first..ROWS.min(first + lane_group);
                // SAFETY: the shape names keys inside the row only, and operands reach to the end
                // of their tensors.
                unsafe { step.attend(simd, &shape, rows, scratch) };
            }
        }
        finish(scratch, o_rd, lse_r, problem.head_dim);
    }
}

/// One key tile, as a query tile meets it.
struct KeyTile<E, H> {
    k: Right<E>,
    v: Right<E>,
    head_dim: usize,
    hide: H,
}

impl<E: Element, H: Fn(Range<usize>, Range<usize>, &mut [E])> KeyTile<E, H> {
    /// Takes the keys into the running softmax of `rows`.
    ///
    /// # Safety
    /// The keys that `shape` names must be valid to read behind `k` and `v`.
    #[inline(always)]
    unsafe fn attend<S: Simd>(
        &self,
        simd: S,
        shape: &TileShape,
        rows: Range<usize>,
        scratch: &mut Scratch<E>,
    ) {
        let runs = shape.runs(rows.clone());
        let head_dim = self.head_dim;
        for keys in runs.iter() {
            let sizes = Sizes { rows: keys.len(), columns: rows.len(), inner: head_dim };
            let left = Left {
                at: self.k.at.wrapping_add(keys.start * self.k.inner),
                row: self.k.inner,
                inner: 1,
            };
            let right = Right { at: scratch.q_dr[rows.start..].as_ptr(), inner: ROWS };
            let out =
                Out { at: scratch.p_kr[keys.start * ROWS + rows.start..].as_mut_ptr(), row: ROWS };
            // SAFETY: the caller vouches for the keys; panel and scores hold ROWS entries for each
            // feature and key.
            unsafe { product::<E, S, WRITE>(simd, sizes, left, right, out) };
            (self.hide)(keys, rows.clone(), &mut scratch.p_kr);
        }
        if !renew(simd, runs.iter(), rows.clone(), scratch) {
            for row in rows.clone() {
                rescale(
                    simd,
                    &mut scratch.o_rd[row * head_dim..][..head_dim],
                    scratch.rescale_r[row],
                );
            }
        }
        for keys in runs.iter() {
            let sizes = Sizes { rows: rows.len(), columns: head_dim, inner: keys.len() };
            let left = Left {
                at: scratch.p_kr[keys.start * ROWS + rows.start..].as_ptr(),
                row: 1,
                inner: ROWS,
            };
            let right = Right { at: self.v.at.wrapping_add(keys.start * self.v.inner), ..self.v };
            let out = Out { at: scratch.o_rd[rows.start * head_dim..].as_mut_ptr(), row: head_dim };
            // SAFETY: as above; the output holds head_dim entries for each of ROWS rows.
            unsafe { product::<E, S, CONTINUE>(simd, sizes, left, right, out) };
        }
    }
}

/// Turns the scores of `rows` into weights under the new maximum; whether no maximum changed.
#[inline(always)]
fn renew<E: Element, S: Simd>(
    simd: S,
    runs: impl Iterator<Item = Range<usize>> + Clone,
    rows: Range<usize>,
    scratch: &mut Scratch<E>,
) -> bool {
    let mut unchanged = true;
    for first in rows.step_by(lanes::<E, S>()) {
        let at = |values: &mut [E]| values[first..first + lanes::<E, S>()].as_mut_ptr();
        let (max, sum, scale) =
            (at(&mut scratch.max_r), at(&mut scratch.sum_r), at(&mut scratch.rescale_r));
        let scores = scratch.p_kr[first..(KEYS - 1) * ROWS + first + lanes::<E, S>()].as_mut_ptr();
        // SAFETY: the slices above hold a vector for each key below KEYS, and one each of maxima,
        // sums and scales.
        unsafe {
            let old = load::<E, S>(max);
            let mut new = old;
            for key in runs.clone().flatten() {
                new = E::max(simd, load::<E, S>(scores.add(key * ROWS)), new);
            }
            // A row that has seen nothing yet has no finite maximum to subtract.
            let hidden = E::splat(simd, E::HIDDEN);
            let base = E::replace(simd, new, hidden, E::splat(simd, E::default()));
            let factor = E::exp2(simd, E::sub(simd, old, base));
            let mut total = E::splat(simd, E::default());
            for key in runs.clone().flatten() {
                let score = scores.add(key * ROWS);
                let weight = E::exp2(simd, E::sub(simd, load::<E, S>(score), base));
                total = E::add(simd, total, weight);
                store::<E, S>(score, weight);
            }
            store::<E, S>(max, new);
            store::<E, S>(scale, factor);
            store::<E, S>(sum, E::mul_add(simd, load::<E, S>(sum), factor, total));
        }
        unchanged &= scratch.rescale_r[first..first + lanes::<E, S>()]
            .iter()
            .all(|&factor| factor == E::of(1.0));
    }
    unchanged
}

#[inline(always)]
fn rescale<E: Element, S: Simd>(simd: S, row: &mut [E], factor: E) {
    let factor = E::splat(simd, factor);
    for entries in row.chunks_exact_mut(lanes::<E, S>()) {
        let at = entries.as_mut_ptr();
        // SAFETY: the chunk holds one vector.
        unsafe { store::<E, S>(at, E::mul(simd, load::<E, S>(at), factor)) };
    }
}

/// Divides by the sums of weights; a row that saw nothing is 0 and its log-sum-exp -inf.
fn finish<E: Element + std::ops::Mul<Output = E>>(
    scratch: &Scratch<E>,
    o_rd: &mut [E],
    lse_r: &mut [f64],
    head_dim: usize,
) {
    for (row, lse) in lse_r.iter_mut().enumerate() {
        let (max, sum) = (scratch.max_r[row].to_f64(), scratch.sum_r[row].to_f64());
        let nothing = sum == 0.0;
        let factor = if nothing { E::default() } else { E::of(1.0 / sum) };
        let out = o_rd[row * head_dim..][..head_dim].iter_mut();
        for (out, &x) in out.zip(&scratch.o_rd[row * head_dim..]) {
            *out = x * factor;
        }
        *lse = if nothing { f64::NEG_INFINITY } else { max + sum.log2() };
    }
}

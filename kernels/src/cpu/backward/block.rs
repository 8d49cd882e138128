use super::Saved;
use super::pair::Pair;
use super::shared::SharedRows;
use super::waves::{BLOCK, TileBlock};
use crate::cpu::element::Element;
use crate::cpu::problem::CpuProblem;
use crate::cpu::rows::{Rows, transpose};
use crate::cpu::tile::{KEYS, ROWS, TileShape};
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// What a worker keeps from block to block.
pub(super) struct Scratch<E> {
    /// The query tiles of the block.
    pub(super) queries: [QueryPanel<E>; BLOCK],
    /// Weights of a tile pair, `[KEYS][ROWS]`.
    pub(super) p_kr: Vec<E>,
    /// Gradients of its scores over the scale, `[KEYS][ROWS]`.
    pub(super) ds_kr: Vec<E>,
}

/// A query tile as products want it.
pub(super) struct QueryPanel<E> {
    /// Queries as columns, `[head_dim][ROWS]`, times the scale and log2 e.
    pub(super) q_dr: Vec<E>,
    /// The output's gradients as columns, `[head_dim][ROWS]`.
    pub(super) do_dr: Vec<E>,
    /// Log-sum-exp in base 2 of each row; of a row that sees nothing, what makes every weight 0.
    pub(super) lse_r: Vec<E>,
    /// What is left of it after rounding.
    pub(super) rest_r: Vec<E>,
    /// Row sums of `do o`.
    pub(super) delta_r: Vec<E>,
}

impl<E: Element> Scratch<E> {
    /// Buffers for heads of `head_dim` features.
    pub(super) fn new(head_dim: usize) -> Self {
        let zeros = |len| vec![E::default(); len];
        let panel = |_| QueryPanel {
            q_dr: zeros(head_dim * ROWS),
            do_dr: zeros(head_dim * ROWS),
            lse_r: zeros(ROWS),
            rest_r: zeros(ROWS),
            delta_r: zeros(ROWS),
        };
        Self {
            queries: std::array::from_fn(panel),
            p_kr: zeros(KEYS * ROWS),
            ds_kr: zeros(KEYS * ROWS),
        }
    }
}

/// The gradients that one block of tile pairs adds.
pub(super) struct BlockGradients<'a, E> {
    pub(super) problem: &'a CpuProblem<'a>,
    pub(super) saved: Saved<'a, E>,
    pub(super) do_bhtd: Rows<'a, E>,
    pub(super) delta_bht: &'a [E],
    pub(super) place: TileBlock,
    pub(super) dq: &'a SharedRows<'a, E>,
    pub(super) dk: &'a SharedRows<'a, E>,
    pub(super) dv: &'a SharedRows<'a, E>,
    pub(super) scratch: &'a mut Scratch<E>,
}

impl<E: Element + std::ops::Mul<Output = E>> WithSimd for BlockGradients<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let group = self.problem.heads_q / self.problem.heads_kv;
        for head in self.place.key_head * group..(self.place.key_head + 1) * group {
            self.load(head);
            let tiles = self.problem.schedule.key_tiles();
            for key_tile in tiles_of(self.place.keys, tiles) {
                self.key_tile(simd, head, key_tile);
            }
        }
    }
}

impl<E: Element + std::ops::Mul<Output = E>> BlockGradients<'_, E> {
    /// The query tiles of the block.
    fn query_tiles(&self) -> Range<usize> {
        tiles_of(self.place.queries, self.problem.schedule.query_tiles())
    }

    /// Tokens of a tile that lie inside the row.
    fn tokens(&self, tile: usize, side: usize) -> Range<usize> {
        tile * side..self.problem.time().min((tile + 1) * side)
    }

    /// Lays the query tiles of a head out as columns.
    fn load(&mut self, head: usize) {
        let batch = self.place.batch;
        let time = self.problem.time();
        let log2_e = std::f64::consts::LOG2_E;
        for tile in self.query_tiles() {
            let tokens = self.tokens(tile, ROWS);
            let panel = &mut self.scratch.queries[tile % BLOCK];
            let (q, d_o) = (self.saved.q_bhtd, self.do_bhtd);
            transpose(
                q.tokens(batch, head, tokens.clone()),
                ROWS,
                E::of(self.problem.scale * log2_e),
                &mut panel.q_dr,
            );
            transpose(d_o.tokens(batch, head, tokens.clone()), ROWS, E::of(1.0), &mut panel.do_dr);
            panel.lse_r.fill(E::NOTHING);
            panel.rest_r.fill(E::default());
            panel.delta_r.fill(E::default());
            let first = (batch * self.problem.heads_q + head) * time;
            let of_row = first + tokens.start..first + tokens.end;
            let rows = panel.lse_r.iter_mut().zip(&mut panel.rest_r);
            for ((lse, rest), &saved) in rows.zip(&self.saved.lse_bht[of_row.clone()]) {
                if saved != f64::NEG_INFINITY {
                    *lse = E::of(saved);
                    *rest = E::of(saved - lse.to_f64());
                }
            }
            panel.delta_r[..tokens.len()].copy_from_slice(&self.delta_bht[of_row]);
        }
    }

    /// All live pairs of one key tile with the query tiles of the block.
    #[inline(always)]
    fn key_tile<S: Simd>(&mut self, simd: S, head: usize, key_tile: usize) {
        let TileBlock { batch, key_head, .. } = self.place;
        let (problem, saved, time) = (self.problem, self.saved, self.problem.time());
        let keys = self.tokens(key_tile, KEYS);
        let of_keys = (batch * problem.heads_kv + key_head) * time;
        let of_queries = (batch * problem.heads_q + head) * time;
        let mask = problem.rows.at(batch);
        for (tile, full) in problem.query_tiles(batch, key_tile, self.query_tiles()) {
            let rows = self.tokens(tile, ROWS);
            // SAFETY: blocks of one wave share neither queries nor keys, and waves run one after
            // another.
            let (dq, dk, dv) = unsafe {
                (
                    self.dq.rows_mut(of_queries + rows.start..of_queries + rows.end),
                    self.dk.rows_mut(of_keys + keys.start..of_keys + keys.end),
                    self.dv.rows_mut(of_keys + keys.start..of_keys + keys.end),
                )
            };
            let pair = Pair {
                mask: &mask,
                shape: if full {
                    TileShape::full()
                } else {
                    TileShape::partial(&mask, rows.start, keys.start)
                },
                full,
                first: [rows.start, keys.start],
                rows: rows.len(),
                head_dim: problem.head_dim,
                q: saved.q_bhtd.operand(batch, head, rows.start),
                d_o: self.do_bhtd.operand(batch, head, rows.start),
                k: saved.k_bgtd.operand(batch, key_head, keys.start),
                v: saved.v_bgtd.operand(batch, key_head, keys.start),
            };
            let Scratch { queries, p_kr, ds_kr } = &mut *self.scratch;
            // SAFETY: of the pair's operands only rows and keys inside the row of the batch are
            // read, and they reach to the end of their tensors.
            unsafe { pair.add(simd, &queries[tile % BLOCK], [p_kr, ds_kr], [dq, dk, dv]) };
        }
    }
}

/// The tiles of a block of `BLOCK`, of which the last may have fewer.
fn tiles_of(block: usize, tiles: usize) -> Range<usize> {
    block * BLOCK..tiles.min((block + 1) * BLOCK)
}

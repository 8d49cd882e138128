//! Gradients of attention from the log-sum-exp that the forward pass kept.
//!
//! The weights are computed again, tile by tile, and all three gradients of a tile pair are taken
//! from them at once: five products a pair, where separate passes for the queries and for the keys
//! would need seven. Blocks of tiles run in waves along the anti-diagonals of the mask: blocks of
//! one wave write different rows and run at the same time, and for every row the order of the sums
//! is that of the waves, whatever the number of threads. There are no atomics, and two runs agree
//! to the bit.
mod block;
mod pair;
mod shared;
mod waves;

use super::element::Element;
use super::problem::CpuProblem;
use super::rows::Rows;
use block::{BlockGradients, Scratch};
use rayon::prelude::*;
use shared::{Pool, SharedRows};
use waves::Waves;

/// What the forward pass read and wrote.
#[derive(Clone, Copy)]
pub(crate) struct Saved<'a, E> {
    /// Queries, `[batch, heads_q, time, head_dim]`.
    pub(crate) q_bhtd: Rows<'a, E>,
    /// Keys, `[batch, heads_kv, time, head_dim]`.
    pub(crate) k_bgtd: Rows<'a, E>,
    /// Values, as the keys.
    pub(crate) v_bgtd: Rows<'a, E>,
    /// Output, as the queries.
    pub(crate) o_bhtd: Rows<'a, E>,
    /// Log-sum-exp in base 2, `[batch, heads_q, time]`, contiguous.
    pub(crate) lse_bht: &'a [f64],
}

/// Contiguous gradients, zero at first.
pub(crate) struct Gradients<'a, E> {
    /// Of the queries.
    pub(crate) dq_bhtd: &'a mut [E],
    /// Of the keys.
    pub(crate) dk_bgtd: &'a mut [E],
    /// Of the values.
    pub(crate) dv_bgtd: &'a mut [E],
}

/// Adds the gradients for the output's gradient `do_bhtd` to `gradients`.
///
/// Backward of FlashAttention-2, arXiv 2307.08691, algorithm 2: with `p` the weights and `delta`
/// the row sums of `do o`, `dv = p^T do`, `ds = p (do v^T - delta)`, `dq = scale ds k`,
/// `dk = scale ds^T q`.
pub(crate) fn backward<E: Element + std::ops::Mul<Output = E>>(
    problem: &CpuProblem<'_>,
    saved: Saved<'_, E>,
    do_bhtd: Rows<'_, E>,
    gradients: Gradients<'_, E>,
) {
    let arch = pulp::Arch::new();
    let Gradients { dq_bhtd, dk_bgtd, dv_bgtd } = gradients;
    let delta_bht = delta(problem, saved.o_bhtd, do_bhtd);
    {
        let [dq, dk, dv] = [&mut *dq_bhtd, &mut *dk_bgtd, &mut *dv_bgtd]
            .map(|rows| SharedRows::new(rows, problem.head_dim));
        let scratch = Pool::new(|| Scratch::new(problem.head_dim));
        for wave in Waves::new(problem).iter() {
            wave.par_iter().for_each(|&place| {
                scratch.with(|scratch| {
                    let block = BlockGradients {
                        problem,
                        saved,
                        do_bhtd,
                        delta_bht: &delta_bht,
                        place,
                        dq: &dq,
                        dk: &dk,
                        dv: &dv,
                        scratch,
                    };
                    arch.dispatch(block);
                });
            });
        }
    }
    let scale = E::of(problem.scale);
    for gradient in [dq_bhtd, dk_bgtd] {
        gradient
            .par_chunks_mut(1 << 14)
            .for_each(|entries| entries.iter_mut().for_each(|x| *x = *x * scale));
    }
}

/// Row sums of `do o`, `[batch, heads_q, time]`.
fn delta<E: Element>(
    problem: &CpuProblem<'_>,
    o_bhtd: Rows<'_, E>,
    do_bhtd: Rows<'_, E>,
) -> Vec<E> {
    let (time, heads) = (problem.time(), problem.heads_q);
    let mut delta_bht = vec![E::default(); problem.schedule.batch() * heads * time];
    delta_bht.par_chunks_mut(time).enumerate().for_each(|(index, delta_t)| {
        for (token, delta) in delta_t.iter_mut().enumerate() {
            let [o, d_o] =
                [o_bhtd, do_bhtd].map(|rows| rows.row(index / heads, index % heads, token));
            *delta = E::of(o.iter().zip(d_o).map(|(&o, &d_o)| o.to_f64() * d_o.to_f64()).sum());
        }
    });
    delta_bht
}

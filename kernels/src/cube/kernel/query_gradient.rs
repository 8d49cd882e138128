use super::{
    blocking::{Blocking, LANES},
    mask::{Sizes, hide},
    product::{accumulate, no_results, scores, share_weights, store},
    stage::{Quad, Span},
};
use cubecl::prelude::*;

/// Gradients of a tile of queries, over the keys that they see: `dq = scale * ds k` with
/// `ds = p * (do v^T - delta)`.
///
/// Weights are computed again from the log-sum-exps instead of being kept: arXiv 2205.14135,
/// algorithm 4.
///
/// # Shapes
/// `q`, `d_o`, `dq`: `[batch, heads_q, time, head_dim]`; `k`, `v`:
/// `[batch, heads_kv, time, head_dim]`; `rows`: `[2, batch, heads_q, time]`, log-sum-exps and
/// deltas.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn tree_attention_query_gradient<F: Float>(
    q: &[Quad<F>],
    k: &[Quad<F>],
    v: &[Quad<F>],
    d_o: &[Quad<F>],
    rows: &[f32],
    plan: &[i32],
    dq: &mut [Quad<F>],
    sizes: Sizes,
    scale: f32,
    #[comptime] blocking: Blocking,
    #[define(F)] _dtype: ElemType,
) {
    let time = sizes.time as usize;
    let parts = comptime!(blocking.tile / blocking.owned);
    // The last rows see the most keys: they start first.
    let place = sizes.tiles as usize * parts - 1 - CUBE_POS_X as usize;
    let batch = CUBE_POS_Z as usize;
    let head = CUBE_POS_Y as usize;
    let head_kv = head / (sizes.heads_q / sizes.heads_kv) as usize;
    let list = sizes.offsets_at as usize + batch * sizes.tiles as usize + place / parts;
    let vectors = comptime!(blocking.vectors());
    let row_at = (batch * sizes.heads_q as usize + head) * time;
    let queries = Span { base: row_at * vectors, first: place * blocking.owned, time };
    let keys_base = (batch * sizes.heads_kv as usize + head_kv) * time * vectors;

    let mut shared = Shared::<[Quad<f32>]>::new_slice(comptime!(blocking.shared()));
    let mut results = no_results(blocking);
    for at in plan[list]..plan[list + 1] {
        let entry = plan[sizes.entries_at as usize + at as usize] as usize;
        for piece in 0..comptime!(blocking.tile / blocking.passing) {
            let first = entry / 2 * blocking.tile + piece * blocking.passing;
            let keys = Span { base: keys_base, first, time };
            let mut weights = scores::<F>(q, &queries, k, &keys, &mut shared, &sizes, blocking);
            #[unroll]
            for n in 0..comptime!(blocking.micro * LANES) {
                weights[n] = weights[n] * scale;
            }
            if entry % 2 == 1 {
                hide(&mut weights, plan, &sizes, batch, queries.first, first, false, blocking);
            }
            let inner = scores::<F>(d_o, &queries, v, &keys, &mut shared, &sizes, blocking);
            differentiate(&mut weights, &inner, rows, row_at, &queries, blocking);
            sync_cube();
            share_weights(&weights, &mut shared, blocking);
            accumulate::<F>(&mut results, k, &keys, &mut shared, &sizes, blocking);
        }
    }
    let mut factors = Array::<f32>::new(comptime!(blocking.micro));
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        factors[n] = scale;
    }
    store::<F>(&results, &factors, dq, &queries, blocking);
}

/// Turns scores into the gradients of the scaled scores.
#[cube]
fn differentiate(
    weights: &mut Array<f32>,
    inner: &Array<f32>,
    rows: &[f32],
    row_at: usize,
    queries: &Span,
    #[comptime] blocking: Blocking,
) {
    let first = queries.first + UNIT_POS_X as usize / comptime!(blocking.columns());
    let deltas_at = rows.len() / 2;
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        let row = row_at + min(first + n * comptime!(blocking.rows()), queries.time - 1);
        let lse = rows[row];
        let delta = rows[deltas_at + row];
        #[unroll]
        for lane in 0..LANES {
            let weight = (weights[n * LANES + lane] - lse).exp();
            weights[n * LANES + lane] = weight * (inner[n * LANES + lane] - delta);
        }
    }
}

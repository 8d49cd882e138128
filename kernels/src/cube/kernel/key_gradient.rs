use super::{
    blocking::{Blocking, LANES},
    mask::{FLOOR, Sizes, hide},
    product::{accumulate, no_results, scores, share_weights, store},
    stage::{Quad, Span},
};
use cubecl::prelude::*;

/// Gradients of a tile of keys and values, over the rows of all query heads of their group that see
/// them.
///
/// `dv = p^T do` and `dk = scale * ds^T q`. The cube that owns the keys adds everything up itself,
/// in one order: no atomics, and two runs agree bit for bit.
///
/// # Shapes
/// `q`, `d_o`: `[batch, heads_q, time, head_dim]`; `k`, `v`, `dk`, `dv`:
/// `[batch, heads_kv, time, head_dim]`; `rows`: `[2, batch, heads_q, time]`, log-sum-exps and
/// deltas.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn tree_attention_key_gradient<F: Float>(
    q: &[Quad<F>],
    k: &[Quad<F>],
    v: &[Quad<F>],
    d_o: &[Quad<F>],
    rows: &[f32],
    plan: &[i32],
    dk: &mut [Quad<F>],
    dv: &mut [Quad<F>],
    sizes: Sizes,
    scale: f32,
    #[comptime] blocking: Blocking,
    #[define(F)] _dtype: ElemType,
) {
    let time = sizes.time as usize;
    let parts = comptime!(blocking.tile / blocking.owned);
    // The first keys are seen by the most rows: they start first.
    let place = CUBE_POS_X as usize;
    let batch = CUBE_POS_Z as usize;
    let head_kv = CUBE_POS_Y as usize;
    let group = (sizes.heads_q / sizes.heads_kv) as usize;
    let list = sizes.offsets_at as usize + batch * sizes.tiles as usize + place / parts;
    let vectors = comptime!(blocking.vectors());
    let key_at = (batch * sizes.heads_kv as usize + head_kv) * time;
    let keys = Span { base: key_at * vectors, first: place * blocking.owned, time };

    let mut shared = Shared::<[Quad<f32>]>::new_slice(comptime!(blocking.shared()));
    let mut of_keys = no_results(blocking);
    let mut of_values = no_results(blocking);
    for member in 0..group {
        let row_at = (batch * sizes.heads_q as usize + head_kv * group + member) * time;
        for at in plan[list]..plan[list + 1] {
            let entry = plan[sizes.entries_at as usize + at as usize] as usize;
            for piece in 0..comptime!(blocking.tile / blocking.passing) {
                let first = entry / 2 * blocking.tile + piece * blocking.passing;
                let queries = Span { base: row_at * vectors, first, time };
                let mut weights = scores::<F>(k, &keys, q, &queries, &mut shared, &sizes, blocking);
                #[unroll]
                for n in 0..comptime!(blocking.micro * LANES) {
                    weights[n] = weights[n] * scale;
                }
                if entry % 2 == 1 {
                    hide(&mut weights, plan, &sizes, batch, keys.first, first, true, blocking);
                }
                let mut inner = scores::<F>(v, &keys, d_o, &queries, &mut shared, &sizes, blocking);
                differentiate(&mut weights, &mut inner, rows, row_at, &queries, blocking);
                sync_cube();
                share_weights(&weights, &mut shared, blocking);
                accumulate::<F>(&mut of_values, d_o, &queries, &mut shared, &sizes, blocking);
                sync_cube();
                share_weights(&inner, &mut shared, blocking);
                accumulate::<F>(&mut of_keys, q, &queries, &mut shared, &sizes, blocking);
            }
        }
    }
    let mut factors = Array::<f32>::new(comptime!(blocking.micro));
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        factors[n] = 1.0f32;
    }
    store::<F>(&of_values, &factors, dv, &keys, blocking);
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        factors[n] = scale;
    }
    store::<F>(&of_keys, &factors, dk, &keys, blocking);
}

/// Turns scores into weights, and the products of upstream gradients and values into gradients of
/// the scaled scores.
///
/// A full tile may reach beyond the row's end, and what lies there weighs exactly 0: its score of 0
/// can be so far above the last row's that the exponential of the difference is infinite.
#[cube]
fn differentiate(
    weights: &mut Array<f32>,
    inner: &mut Array<f32>,
    rows: &[f32],
    row_at: usize,
    queries: &Span,
    #[comptime] blocking: Blocking,
) {
    let first = queries.first + UNIT_POS_X as usize % comptime!(blocking.columns()) * LANES;
    let deltas_at = rows.len() / 2;
    #[unroll]
    for lane in 0..LANES {
        let row = row_at + min(first + lane, queries.time - 1);
        let lse = select(first + lane < queries.time, rows[row], -FLOOR);
        let delta = rows[deltas_at + row];
        #[unroll]
        for n in 0..comptime!(blocking.micro) {
            let weight = (weights[n * LANES + lane] - lse).exp();
            weights[n * LANES + lane] = weight;
            inner[n * LANES + lane] = weight * (inner[n * LANES + lane] - delta);
        }
    }
}

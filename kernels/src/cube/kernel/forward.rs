use super::{
    blocking::{Blocking, LANES},
    mask::{FLOOR, Sizes, hide},
    product::{accumulate, no_results, scores, share_weights, store},
    stage::{Quad, Span},
};
use cubecl::prelude::*;

/// Outputs and log-sum-exps of a tile of rows: softmax without ever holding a row of weights.
///
/// Online softmax, arXiv 1805.02867; tiled as in arXiv 2205.14135, algorithm 1.
///
/// # Shapes
/// `q`, `o`: `[batch, heads_q, time, head_dim]`; `k`, `v`: `[batch, heads_kv, time, head_dim]`;
/// `lse`: `[batch, heads_q, time]`.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn tree_attention_forward<F: Float>(
    q: &[Quad<F>],
    k: &[Quad<F>],
    v: &[Quad<F>],
    plan: &[i32],
    o: &mut [Quad<F>],
    lse: &mut [f32],
    sizes: Sizes,
    scale: f32,
    nothing: f32,
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
    let rows = Span { base: row_at * vectors, first: place * blocking.owned, time };
    let keys_base = (batch * sizes.heads_kv as usize + head_kv) * time * vectors;

    let mut shared = Shared::<[Quad<f32>]>::new_slice(comptime!(blocking.shared()));
    let mut results = no_results(blocking);
    let mut maxima = Array::<f32>::new(comptime!(blocking.micro));
    let mut totals = Array::<f32>::new(comptime!(blocking.micro));
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        maxima[n] = FLOOR;
        totals[n] = 0.0f32;
    }
    for at in plan[list]..plan[list + 1] {
        let entry = plan[sizes.entries_at as usize + at as usize] as usize;
        for piece in 0..comptime!(blocking.tile / blocking.passing) {
            let first = entry / 2 * blocking.tile + piece * blocking.passing;
            let keys = Span { base: keys_base, first, time };
            let mut weights = scores::<F>(q, &rows, k, &keys, &mut shared, &sizes, blocking);
            #[unroll]
            for n in 0..comptime!(blocking.micro * LANES) {
                weights[n] = weights[n] * scale;
            }
            if entry % 2 == 1 {
                hide(&mut weights, plan, &sizes, batch, rows.first, first, false, blocking);
            }
            exponentiate(
                &mut weights,
                &mut maxima,
                &mut totals,
                &mut results,
                &mut shared,
                blocking,
            );
            share_weights(&weights, &mut shared, blocking);
            accumulate::<F>(&mut results, v, &keys, &mut shared, &sizes, blocking);
        }
    }
    finish::<F>(&results, &maxima, &totals, o, lse, &rows, row_at, nothing, &mut shared, blocking);
}

/// Turns scores into weights below the new maximum of their rows, and what was summed so far into
/// its measure.
#[cube]
fn exponentiate(
    weights: &mut Array<f32>,
    maxima: &mut Array<f32>,
    totals: &mut Array<f32>,
    results: &mut Array<Quad<f32>>,
    shared: &mut Shared<[Quad<f32>]>,
    #[comptime] blocking: Blocking,
) {
    let outputs = comptime!(blocking.outputs());
    let mut found = Array::<f32>::new(comptime!(blocking.micro));
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        let one = max(weights[n * LANES], weights[n * LANES + 1]);
        found[n] = max(one, max(weights[n * LANES + 2], weights[n * LANES + 3]));
    }
    reduce(&mut found, shared, false, blocking);
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        let maximum = max(maxima[n], found[n]);
        let shrink = (maxima[n] - maximum).exp();
        maxima[n] = maximum;
        let mut total = totals[n] * shrink;
        #[unroll]
        for lane in 0..LANES {
            let weight = (weights[n * LANES + lane] - maximum).exp();
            weights[n * LANES + lane] = weight;
            total += weight;
        }
        totals[n] = total;
        #[unroll]
        for output in 0..outputs {
            results[n * outputs + output] =
                results[n * outputs + output] * Quad::<f32>::new(shrink);
        }
    }
}

/// The maximum or sum of every owned row over the units that share it, in one order for all of
/// them.
#[cube]
fn reduce(
    values: &mut Array<f32>,
    shared: &mut Shared<[Quad<f32>]>,
    #[comptime] sum: bool,
    #[comptime] blocking: Blocking,
) {
    let columns = comptime!(blocking.columns());
    let quads = comptime!(blocking.micro / LANES);
    let at =
        comptime!(blocking.heads_at()) + UNIT_POS_X as usize / columns * comptime!(quads * columns);
    let column = UNIT_POS_X as usize % columns;
    #[unroll]
    for quad in 0..quads {
        let mut value = Quad::<f32>::empty();
        #[unroll]
        for lane in 0..LANES {
            value.insert(lane, values[quad * LANES + lane]);
        }
        shared[at + quad * columns + column] = value;
    }
    sync_cube();
    #[unroll]
    for quad in 0..quads {
        let mut value = shared[at + quad * columns];
        for other in 1..columns {
            let next = shared[at + quad * columns + other];
            if comptime!(sum) {
                value += next;
            } else {
                value = max(value, next);
            }
        }
        #[unroll]
        for lane in 0..LANES {
            values[quad * LANES + lane] = value.extract(lane);
        }
    }
}

#[cube]
fn finish<F: Float>(
    results: &Array<Quad<f32>>,
    maxima: &Array<f32>,
    totals: &Array<f32>,
    o: &mut [Quad<F>],
    lse: &mut [f32],
    rows: &Span,
    row_at: usize,
    nothing: f32,
    shared: &mut Shared<[Quad<f32>]>,
    #[comptime] blocking: Blocking,
) {
    let columns = comptime!(blocking.columns());
    let mut factors = Array::<f32>::new(comptime!(blocking.micro));
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        factors[n] = totals[n];
    }
    sync_cube();
    reduce(&mut factors, shared, true, blocking);
    let first = rows.first + UNIT_POS_X as usize / columns;
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        let total = factors[n];
        let token = first + n * comptime!(blocking.rows());
        // NaN is not empty: it has to reach the output and the log-sum-exp.
        let empty = total == 0.0f32;
        let divisor = select(empty, 1.0f32, total);
        factors[n] = 1.0f32 / divisor;
        if UNIT_POS_X as usize % columns == 0 && token < rows.time {
            lse[row_at + token] = select(empty, nothing, maxima[n] + divisor.ln());
        }
    }
    store::<F>(results, &factors, o, rows, blocking);
}

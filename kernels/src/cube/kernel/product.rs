use super::{
    blocking::{Blocking, LANES},
    mask::Sizes,
    stage::{Quad, Span, stage_chunk, stage_heads},
};
use cubecl::prelude::*;

/// Dot products of this unit's owned and passing tokens: `micro` x 4 numbers, row after row.
///
/// The features come through shared memory a chunk at a time, so shared memory does not grow with
/// the head dimension.
#[cube]
pub(crate) fn scores<F: Float>(
    owned: &[Quad<F>],
    owned_span: &Span,
    passing: &[Quad<F>],
    passing_span: &Span,
    shared: &mut Shared<[Quad<f32>]>,
    sizes: &Sizes,
    #[comptime] blocking: Blocking,
) -> Array<f32> {
    let mut sums = Array::<f32>::new(comptime!(blocking.micro * LANES));
    #[unroll]
    for n in 0..comptime!(blocking.micro * LANES) {
        sums[n] = 0.0f32;
    }
    for chunk in 0..comptime!(blocking.vectors() / blocking.chunk()) {
        sync_cube();
        stage_chunk::<F>(owned, shared, owned_span, chunk, false, blocking);
        stage_chunk::<F>(passing, shared, passing_span, chunk, true, blocking);
        sync_cube();
        add_products(&mut sums, &*shared, sizes.chunk as usize, blocking);
    }
    sums
}

#[cube]
fn add_products(
    sums: &mut Array<f32>,
    shared: &Shared<[Quad<f32>]>,
    chunk: usize,
    #[comptime] blocking: Blocking,
) {
    let pitch = comptime!(blocking.pitch());
    let columns = comptime!(blocking.columns());
    let rows = comptime!(blocking.rows());
    let owned_at = UNIT_POS_X as usize / columns * pitch;
    let passing_at = comptime!(blocking.owned * pitch) + UNIT_POS_X as usize % columns * pitch;
    for feature in 0..chunk {
        let mut passing = Array::<Quad<f32>>::new(comptime!(LANES));
        #[unroll]
        for lane in 0..LANES {
            passing[lane] = shared[passing_at + lane * comptime!(columns * pitch) + feature];
        }
        #[unroll]
        for n in 0..comptime!(blocking.micro) {
            let owned = shared[owned_at + n * comptime!(rows * pitch) + feature];
            #[unroll]
            for lane in 0..LANES {
                let mut sum = sums[n * LANES + lane];
                #[unroll]
                for part in 0..LANES {
                    sum = fma(owned.extract(part), passing[lane].extract(part), sum);
                }
                sums[n * LANES + lane] = sum;
            }
        }
    }
}

/// Puts this unit's weights where all units that share an owned token can read them.
///
/// Everybody must be done with the scores' chunks, which lie in the same place.
#[cube]
pub(crate) fn share_weights(
    weights: &Array<f32>,
    shared: &mut Shared<[Quad<f32>]>,
    #[comptime] blocking: Blocking,
) {
    let columns = comptime!(blocking.columns());
    let pitch = comptime!(blocking.weight_pitch());
    let at = UNIT_POS_X as usize / columns * pitch + UNIT_POS_X as usize % columns;
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        let mut quad = Quad::<f32>::empty();
        #[unroll]
        for lane in 0..LANES {
            quad.insert(lane, weights[n * LANES + lane]);
        }
        shared[at + n * comptime!(blocking.rows() * pitch)] = quad;
    }
}

/// Adds the shared weights times the heads of the passing tokens to this unit's part of its owned
/// tokens' results.
///
/// A unit holds every `columns`-th vector of a head. Where a head has fewer, it repeats the last
/// one and the copy is not stored.
#[cube]
pub(crate) fn accumulate<F: Float>(
    results: &mut Array<Quad<f32>>,
    passing: &[Quad<F>],
    span: &Span,
    shared: &mut Shared<[Quad<f32>]>,
    sizes: &Sizes,
    #[comptime] blocking: Blocking,
) {
    let batch = comptime!(blocking.batch());
    for part in 0..comptime!(blocking.passing / batch) {
        sync_cube();
        let part_span = Span { base: span.base, first: span.first + part * batch, time: span.time };
        stage_heads::<F>(passing, shared, &part_span, blocking);
        sync_cube();
        add_weighted(
            results,
            &*shared,
            part * comptime!(batch / LANES),
            sizes.quads as usize,
            blocking,
        );
    }
}

#[cube]
fn add_weighted(
    results: &mut Array<Quad<f32>>,
    shared: &Shared<[Quad<f32>]>,
    first: usize,
    quads: usize,
    #[comptime] blocking: Blocking,
) {
    let columns = comptime!(blocking.columns());
    let outputs = comptime!(blocking.outputs());
    let vectors = comptime!(blocking.vectors());
    let pitch = comptime!(blocking.weight_pitch());
    let heads_at = comptime!(blocking.heads_at());
    let weights_at = UNIT_POS_X as usize / columns * pitch + first;
    let column = UNIT_POS_X as usize % columns;
    for quad in 0..quads {
        let mut weights = Array::<Quad<f32>>::new(comptime!(blocking.micro));
        #[unroll]
        for n in 0..comptime!(blocking.micro) {
            weights[n] = shared[weights_at + n * comptime!(blocking.rows() * pitch) + quad];
        }
        #[unroll]
        for lane in 0..LANES {
            #[unroll]
            for output in 0..outputs {
                let at = output_vector(column, output, blocking);
                let head = shared[heads_at + (quad * LANES + lane) * vectors + at];
                #[unroll]
                for n in 0..comptime!(blocking.micro) {
                    let weight = Quad::<f32>::new(weights[n].extract(lane));
                    results[n * outputs + output] =
                        fma(weight, head, results[n * outputs + output]);
                }
            }
        }
    }
}

#[cube]
fn output_vector(
    column: usize,
    #[comptime] output: usize,
    #[comptime] blocking: Blocking,
) -> usize {
    let at = column + output * comptime!(blocking.columns());
    if comptime!((output + 1) * blocking.columns() <= blocking.vectors()) {
        at
    } else {
        min(at, comptime!(blocking.vectors() - 1))
    }
}

/// Results of zero.
#[cube]
pub(crate) fn no_results(#[comptime] blocking: Blocking) -> Array<Quad<f32>> {
    let count = comptime!(blocking.micro * blocking.outputs());
    let mut results = Array::<Quad<f32>>::new(count);
    #[unroll]
    for n in 0..count {
        results[n] = Quad::<f32>::new(0.0f32);
    }
    results
}

/// Stores this unit's part of its owned tokens' results, each token's multiplied by its factor.
#[cube]
pub(crate) fn store<F: Float>(
    results: &Array<Quad<f32>>,
    factors: &Array<f32>,
    to: &mut [Quad<F>],
    span: &Span,
    #[comptime] blocking: Blocking,
) {
    let columns = comptime!(blocking.columns());
    let outputs = comptime!(blocking.outputs());
    let vectors = comptime!(blocking.vectors());
    let first = span.first + UNIT_POS_X as usize / columns;
    let column = UNIT_POS_X as usize % columns;
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        let token = first + n * comptime!(blocking.rows());
        if token < span.time {
            #[unroll]
            for output in 0..outputs {
                let at = column + output * columns;
                if comptime!((output + 1) * columns <= vectors) || at < vectors {
                    let value = results[n * outputs + output] * Quad::<f32>::new(factors[n]);
                    to[span.base + token * vectors + at] = Vector::cast_from(value);
                }
            }
        }
    }
}

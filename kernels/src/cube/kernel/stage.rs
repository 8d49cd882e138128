use super::blocking::{Blocking, LANES};
use cubecl::prelude::*;

/// Four neighbouring features, or the weights of four neighbouring tokens.
pub(crate) type Quad<F> = Vector<F, Const<4>>;

/// Which tokens of a tensor are copied, and where they end.
#[derive(CubeType, Clone, Copy)]
pub(crate) struct Span {
    /// Vector index of the head's first feature of its first token.
    pub(crate) base: usize,
    /// First token.
    pub(crate) first: usize,
    /// Tokens of the row: those behind it read as zeros.
    pub(crate) time: usize,
}

/// Copies one side's chunk of features for scores, in float32.
///
/// The passing side is interleaved so that the four tokens of a unit lie in four places a whole
/// lane apart: neighbouring units then read neighbouring places.
#[cube]
pub(crate) fn stage_chunk<F: Float>(
    from: &[Quad<F>],
    to: &mut Shared<[Quad<f32>]>,
    span: &Span,
    chunk: usize,
    #[comptime] passing: bool,
    #[comptime] blocking: Blocking,
) {
    let width = comptime!(blocking.chunk());
    let pitch = comptime!(blocking.pitch());
    let vectors = comptime!(blocking.vectors());
    let columns = comptime!(blocking.columns());
    let units = comptime!(blocking.units());
    let tokens = comptime!(if passing { blocking.passing } else { blocking.owned });
    let start = comptime!(if passing { blocking.owned * pitch } else { 0 });
    let count = comptime!(tokens * width);
    let steps = comptime!(count.div_ceil(units));
    #[unroll]
    for step in 0..steps {
        let at = UNIT_POS_X as usize + step * units;
        if comptime!((step + 1) * units <= count) || at < count {
            let token = at / width;
            let column = at % width;
            let mut value = Quad::<f32>::new(0.0f32);
            if span.first + token < span.time {
                value = Vector::cast_from(
                    from[span.base + (span.first + token) * vectors + chunk * width + column],
                );
            }
            let slot =
                if comptime!(passing) { (token % LANES) * columns + token / LANES } else { token };
            to[start + slot * pitch + column] = value;
        }
    }
}

/// Copies whole heads of passing tokens for sums over them, in float32.
#[cube]
pub(crate) fn stage_heads<F: Float>(
    from: &[Quad<F>],
    to: &mut Shared<[Quad<f32>]>,
    span: &Span,
    #[comptime] blocking: Blocking,
) {
    let vectors = comptime!(blocking.vectors());
    let units = comptime!(blocking.units());
    let start = comptime!(blocking.heads_at());
    let count = comptime!(blocking.batch() * vectors);
    let steps = comptime!(count.div_ceil(units));
    #[unroll]
    for step in 0..steps {
        let at = UNIT_POS_X as usize + step * units;
        if comptime!((step + 1) * units <= count) || at < count {
            let mut value = Quad::<f32>::new(0.0f32);
            if span.first + at / vectors < span.time {
                value = Vector::cast_from(from[span.base + span.first * vectors + at]);
            }
            to[start + at] = value;
        }
    }
}

use super::blocking::{Blocking, LANES};
use cubecl::prelude::*;

/// Score of a key that a row does not see: below every floor, and finite because WGSL knows no
/// infinity.
pub(crate) const HIDDEN: f32 = -3.0e38;

/// Floor of a row's running maximum, so far above [`HIDDEN`] that the exponential of a hidden score
/// is exactly 0 even in a row that sees nothing.
pub(crate) const FLOOR: f32 = -1.0e38;

/// Run-time sizes of a launch, and where the parts of the plan's one buffer begin.
///
/// One buffer holds tile lists, ends and positions because portable WebGPU binds eight storage
/// buffers to a kernel.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Sizes {
    /// Tokens of a row.
    pub(crate) time: u32,
    /// Query heads.
    pub(crate) heads_q: u32,
    /// Key/value heads.
    pub(crate) heads_kv: u32,
    /// Tiles of a row on the owned side.
    pub(crate) tiles: u32,
    /// Start of the offsets of the owned side's lists.
    pub(crate) offsets_at: u32,
    /// Start of the entries of the owned side's lists: twice a tile of the passing side, plus one
    /// if it is partial.
    pub(crate) entries_at: u32,
    /// Start of the ends of all rows of the batch.
    pub(crate) ends_at: u32,
    /// Start of the positions of all rows of the batch.
    pub(crate) positions_at: u32,
    /// Length of the sliding window.
    pub(crate) window: i32,
    /// [`Blocking::chunk`], and [`Blocking::batch`] in quads of tokens.
    ///
    /// Known at compile time, and given at run time all the same: a compiler that sees the bounds
    /// unrolls the innermost loops and then spills registers.
    pub(crate) chunk: u32,
    /// See `chunk`.
    pub(crate) quads: u32,
}

/// Replaces the scores of pairs that do not see each other, and of tokens behind the row's end.
///
/// The rule of a pair: row `i` sees key `j` if and only if `j <= i < ends[j]`, in a window also
/// `positions[i] - positions[j] < window`.
#[cube]
pub(crate) fn hide(
    scores: &mut Array<f32>,
    plan: &[i32],
    sizes: &Sizes,
    batch: usize,
    owned_first: usize,
    passing_first: usize,
    #[comptime] owns_keys: bool,
    #[comptime] blocking: Blocking,
) {
    let columns = comptime!(blocking.columns());
    let owned_first = owned_first + UNIT_POS_X as usize / columns;
    let passing_first = passing_first + UNIT_POS_X as usize % columns * LANES;
    #[unroll]
    for n in 0..comptime!(blocking.micro) {
        let owned = owned_first + n * comptime!(blocking.rows());
        #[unroll]
        for lane in 0..LANES {
            let passing = passing_first + lane;
            let seen = if comptime!(owns_keys) {
                sees(plan, sizes, batch, passing, owned, blocking.window)
            } else {
                sees(plan, sizes, batch, owned, passing, blocking.window)
            };
            scores[n * LANES + lane] = select(seen, scores[n * LANES + lane], HIDDEN);
        }
    }
}

#[cube]
fn sees(
    plan: &[i32],
    sizes: &Sizes,
    batch: usize,
    row: usize,
    key: usize,
    #[comptime] window: bool,
) -> bool {
    let time = sizes.time as usize;
    let inside = min(key, time - 1);
    let end = plan[sizes.ends_at as usize + batch * time + inside];
    let mut seen = key <= row && (row as i32) < end;
    if comptime!(window) {
        let positions = sizes.positions_at as usize + batch * time;
        let distance = plan[positions + min(row, time - 1)] - plan[positions + inside];
        seen = seen && distance < sizes.window;
    }
    seen
}

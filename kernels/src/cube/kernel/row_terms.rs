use super::{blocking::LANES, mask::FLOOR, stage::Quad};
use cubecl::prelude::*;

/// Units of a cube, and those of them that share a row.
pub(crate) const UNITS: usize = 256;
const SHARERS: usize = 8;
/// Rows of a cube.
pub(crate) const ROWS: usize = UNITS / SHARERS;

/// What both gradients need of every row: its log-sum-exp and `delta = rowsum(do * o)`.
///
/// Both lie in one buffer because portable WebGPU binds eight of them. A row that sees nothing has
/// a log-sum-exp of minus infinity; here it becomes so large that every weight of the row is
/// exactly 0.
///
/// # Shapes
/// `o`, `d_o`: `[rows, head_dim]`; `lse`: `[rows]`; `rows`: `[2, rows]`.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn tree_attention_row_terms<F: Float>(
    o: &[Quad<F>],
    d_o: &[Quad<F>],
    lse: &[f32],
    rows: &mut [f32],
    #[comptime] head_dim: usize,
    #[define(F)] _dtype: ElemType,
) {
    let vectors = comptime!(head_dim / LANES);
    let count = rows.len() / 2;
    let sharer = UNIT_POS_X as usize % SHARERS;
    let row = (CUBE_POS_Y as usize * CUBE_COUNT_X as usize + CUBE_POS_X as usize) * ROWS
        + UNIT_POS_X as usize / SHARERS;
    let mut shared = Shared::<[f32]>::new_slice(UNITS);
    let mut sum = 0.0f32;
    if row < count {
        let mut vector = sharer;
        while vector < vectors {
            let one = Quad::<f32>::cast_from(o[row * vectors + vector]);
            let other = Quad::<f32>::cast_from(d_o[row * vectors + vector]);
            #[unroll]
            for lane in 0..LANES {
                sum = fma(one.extract(lane), other.extract(lane), sum);
            }
            vector += SHARERS;
        }
    }
    shared[UNIT_POS_X as usize] = sum;
    sync_cube();
    if sharer == 0 && row < count {
        let mut delta = 0.0f32;
        for other in 0..SHARERS {
            delta += shared[UNIT_POS_X as usize + other];
        }
        rows[count + row] = delta;
        let own = lse[row];
        // In this form NaN stays NaN.
        rows[row] = select(own <= FLOOR, -FLOOR, own);
    }
}

use crate::{
    attention::Execution, error::KernelError, mask::to_masked, reference::masked_attention,
    rotary::Rotary, sizes::AttentionSizes,
};
use burn::tensor::{Bool, Device, Tensor, TensorData};

/// A mask in which every row names the keys that it sees, and in which order.
///
/// No interval mask says that: a key's position in row `i` is its index in the view of `i`, so
/// positions belong to (row, key) pairs. Neighbouring rows mostly agree on them; they are cut into
/// blocks of rows that do. It is what a mask of another kind than the tree's is compared with.
#[derive(Debug, Clone)]
pub struct ViewMask {
    time: usize,
    blocks: Vec<RowBlock>,
    device: Device,
}

/// Consecutive rows that agree on the position of every key that they see.
#[derive(Debug, Clone)]
struct RowBlock {
    start: usize,
    row_positions: Vec<i32>,
    key_positions: Vec<i32>,
    masked_11rt: Tensor<4, Bool>,
}

impl ViewMask {
    /// The mask of one row of tokens, from the view of each token.
    ///
    /// # Shapes
    /// `views`: per row the keys that it sees in the order of its live view, itself last. A key may
    /// stand after the row on the tape: text that was inserted before a survivor.
    ///
    /// # Errors
    /// No rows, or a view that names a key twice or one that is not there, or does not end with its
    /// row.
    pub fn new<V: AsRef<[u32]>>(views: &[V], device: &Device) -> Result<Self, KernelError> {
        let time = views.len();
        if time == 0 {
            return Err(KernelError::EmptyMask);
        }
        if i32::try_from(time).is_err() {
            return Err(KernelError::TooLong { time });
        }
        let device = device.clone().without_autodiff();
        let mut blocks = Vec::new();
        let mut open = OpenBlock::new(0, time);
        let mut seen = vec![usize::MAX; time];
        for (row, view) in views.iter().enumerate() {
            check_view(row, view.as_ref(), &mut seen)?;
            if !open.admits(view.as_ref()) {
                blocks.push(open.close(&device));
                open = OpenBlock::new(row, time);
            }
            open.push(view.as_ref());
        }
        blocks.push(open.close(&device));
        Ok(Self { time, blocks, device })
    }

    /// Tokens of the row.
    pub fn time(&self) -> usize {
        self.time
    }
}

struct OpenBlock {
    start: usize,
    row_positions: Vec<i32>,
    key_positions: Vec<Option<i32>>,
    visible: Vec<bool>,
}

impl OpenBlock {
    fn new(start: usize, time: usize) -> Self {
        Self {
            start,
            row_positions: Vec::new(),
            key_positions: vec![None; time],
            visible: Vec::new(),
        }
    }

    fn admits(&self, view: &[u32]) -> bool {
        view.iter().zip(0..).all(|(&key, position)| {
            self.key_positions[key as usize].is_none_or(|known| known == position)
        })
    }

    fn push(&mut self, view: &[u32]) {
        let mut visible = vec![false; self.key_positions.len()];
        for (&key, position) in view.iter().zip(0..) {
            self.key_positions[key as usize] = Some(position);
            visible[key as usize] = true;
        }
        self.visible.append(&mut visible);
        self.row_positions.push(view.len() as i32 - 1);
    }

    fn close(self, device: &Device) -> RowBlock {
        let shape = [1, 1, self.row_positions.len(), self.key_positions.len()];
        let visible = Tensor::<4, Bool>::from_data(TensorData::new(self.visible, shape), device);
        RowBlock {
            start: self.start,
            row_positions: self.row_positions,
            key_positions: self.key_positions.into_iter().map(Option::unwrap_or_default).collect(),
            masked_11rt: to_masked(visible),
        }
    }
}

/// `seen` holds, per key, the last row whose view named it.
fn check_view(row: usize, view: &[u32], seen: &mut [usize]) -> Result<(), KernelError> {
    for (entry, &key) in view.iter().enumerate() {
        let last_seen = seen.get_mut(key as usize).map(|seen| std::mem::replace(seen, row));
        let fresh = last_seen.is_some_and(|seen| seen != row);
        let last = entry + 1 == view.len();
        if !fresh || last != (key as usize == row) {
            return Err(KernelError::InvalidView { row, entry, key });
        }
    }
    match view.is_empty() {
        true => Err(KernelError::InvalidView { row, entry: 0, key: row as u32 }),
        false => Ok(()),
    }
}

/// Attention in which every row has its own view, on queries and keys that are not rotated yet.
///
/// The score of row `i` and key `j` is that of `q_i` rotated to `i`'s own position and `k_j`
/// rotated to `j`'s position in the view of `i`. Dense, as a reference; formula: RoFormer, arXiv
/// 2104.09864, with positions by row.
///
/// # Shapes
/// - `q_bhtd`: `[1, heads_q, time, head_dim]`; `k_bgtd`, `v_bgtd`: `[1, heads_kv, time, head_dim]`
/// - `inverse_frequencies`: `[head_dim / 2]`, radians per token
/// - returns `[1, heads_q, time, head_dim]`
///
/// # Errors
/// As [`tree_attention`](crate::tree_attention), and a head dimension that is not twice the number
/// of frequencies.
pub fn view_attention(
    q_bhtd: Tensor<4>,
    k_bgtd: Tensor<4>,
    v_bgtd: Tensor<4>,
    mask: &ViewMask,
    inverse_frequencies: &[f64],
    scale: f64,
) -> Result<Tensor<4>, KernelError> {
    let tensors = [&q_bhtd, &k_bgtd, &v_bgtd];
    let problem =
        AttentionSizes::check(tensors, [1, mask.time], &mask.device, Execution::Reference, scale)?;
    let dtype = q_bhtd.dtype();
    let table =
        |positions: &Vec<i32>| Rotary::new(&[positions], inverse_frequencies, dtype, &mask.device);
    let mut outputs = Vec::with_capacity(mask.blocks.len());
    for block in &mask.blocks {
        let rows = block.row_positions.len();
        let q_bhrd = q_bhtd.clone().narrow(2, block.start, rows);
        let q_bhrd = table(&block.row_positions)?.rotate(q_bhrd)?;
        let rotated_bgtd = table(&block.key_positions)?.rotate(k_bgtd.clone())?;
        outputs.push(masked_attention(
            [q_bhrd, rotated_bgtd, v_bgtd.clone()],
            block.masked_11rt.clone(),
            problem,
            scale,
        ));
    }
    Ok(Tensor::cat(outputs, 2))
}

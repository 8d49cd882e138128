use crate::error::KernelError;
use crate::schedule::{IntervalRow, Schedule, ScheduleStats, TileSize, Window as RowWindow};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use std::sync::{Arc, OnceLock};

/// Sides of the tiles that are planned: both kernels cut the mask the same way, so that one
/// schedule serves either.
pub(crate) const TILE: TileSize = TileSize { rows: 64, keys: 64 };

/// The visibility of a batch of packed rows, validated once and shared by all layers and heads.
///
/// One int32 per key is the whole 4D mask: row `i` sees key `j` if and only if `j <= i < ends[j]`.
/// Intervals need not nest. Whatever an execution has to plan is planned once per mask, so that
/// layers and heads plan nothing.
#[derive(Debug, Clone)]
pub struct TreeMask {
    batch: usize,
    time: usize,
    ends: Arc<[i32]>,
    ends_bt: Tensor<2, Int>,
    window: Option<Window>,
    plans: Arc<Plans>,
}

/// What executions derive from a mask, each on first use.
#[derive(Debug, Default)]
struct Plans {
    masked_b1tt: OnceLock<Tensor<4, Bool>>,
    schedule: OnceLock<Arc<Schedule>>,
    #[cfg(feature = "cube")]
    cube: OnceLock<crate::cube::CubePlan>,
}

/// A sliding window over positions, beside the interval rule.
#[derive(Debug, Clone)]
struct Window {
    length: u32,
    positions: Arc<[i32]>,
    positions_bt: Tensor<2, Int>,
}

impl TreeMask {
    /// The mask of rows given by the `ends` of their tokens, on the device of the model.
    ///
    /// A padding token `j` has `ends[j] == j`: nobody sees it, and its own row is empty unless real
    /// tokens are still open.
    ///
    /// # Shapes
    /// `ends`: `[batch][time]`, indices into the row.
    ///
    /// # Errors
    /// An empty batch, rows of different lengths, an end before its token or beyond its row.
    pub fn new<R: AsRef<[i32]>>(ends: &[R], device: &Device) -> Result<Self, KernelError> {
        let batch = ends.len();
        let time = ends.first().map_or(0, |row| row.as_ref().len());
        if batch == 0 || time == 0 {
            return Err(KernelError::EmptyMask);
        }
        if i32::try_from(time).is_err() {
            return Err(KernelError::TooLong { time });
        }
        let flat = flatten("ends", ends, time)?;
        for (index, &end) in flat.iter().enumerate() {
            let (row, token) = (index / time, index % time);
            match usize::try_from(end) {
                Ok(end_index) if end_index > time => {
                    return Err(KernelError::EndBeyondRow { row, token, end, time });
                }
                Ok(end_index) if end_index >= token => {}
                _ => return Err(KernelError::EndBeforeToken { row, token, end }),
            }
        }
        Ok(Self {
            batch,
            time,
            ends_bt: upload(&flat, batch, time, device),
            ends: flat.into(),
            window: None,
            plans: Arc::default(),
        })
    }

    /// The same rows for windowed heads, which see a key only while
    /// `position_i - position_j < window`.
    ///
    /// # Shapes
    /// `positions`: `[batch][time]`, tokens from the start of the conversation.
    ///
    /// # Errors
    /// Positions that do not match the mask row for row, a negative one, or a window of 0.
    pub fn with_window<R: AsRef<[i32]>>(
        &self,
        positions: &[R],
        window: u32,
    ) -> Result<Self, KernelError> {
        if window == 0 {
            return Err(KernelError::EmptyWindow);
        }
        if positions.len() != self.batch {
            return Err(KernelError::Rows {
                array: "positions",
                expected: self.batch,
                found: positions.len(),
            });
        }
        let flat = flatten("positions", positions, self.time)?;
        if let Some((index, &position)) =
            flat.iter().enumerate().find(|&(_, &position)| position < 0)
        {
            let (row, token) = (index / self.time, index % self.time);
            return Err(KernelError::NegativePosition { array: "positions", row, token, position });
        }
        let positions_bt = upload(&flat, self.batch, self.time, &self.device());
        Ok(Self {
            window: Some(Window { length: window, positions: flat.into(), positions_bt }),
            plans: Arc::default(),
            ..self.clone()
        })
    }

    /// Rows and tokens per row.
    pub fn dims(&self) -> [usize; 2] {
        [self.batch, self.time]
    }

    /// First index that does not see each key any more, `[batch, time]`, on the device.
    pub fn ends_bt(&self) -> Tensor<2, Int> {
        self.ends_bt.clone()
    }

    /// The ends of one row, on the host, for schedules.
    pub fn row_ends(&self, row: usize) -> Option<&[i32]> {
        self.ends.chunks_exact(self.time).nth(row)
    }

    /// Length of the sliding window in tokens, if there is one.
    pub fn window(&self) -> Option<u32> {
        self.window.as_ref().map(|window| window.length)
    }

    /// The positions that the window counts in, of one row, on the host.
    pub fn row_positions(&self, row: usize) -> Option<&[i32]> {
        self.window.as_ref().and_then(|window| window.positions.chunks_exact(self.time).nth(row))
    }

    /// The mask row by row, as a schedule is planned from it.
    pub fn interval_rows(&self) -> Vec<IntervalRow<'_>> {
        let ends = self.ends.chunks_exact(self.time);
        let window_of = |row: usize| {
            let window = self.window.as_ref()?;
            Some(RowWindow {
                positions: &window.positions[row * self.time..][..self.time],
                length: window.length,
            })
        };
        ends.enumerate().map(|(row, ends)| IntervalRow { ends, window: window_of(row) }).collect()
    }

    /// The live tiles of the mask, planned on first use and shared by layers, heads and clones.
    ///
    /// # Errors
    /// More live tiles than a `u32` counts.
    pub fn schedule(&self) -> Result<Arc<Schedule>, KernelError> {
        let planned = &self.plans.schedule;
        if let Some(schedule) = planned.get() {
            return Ok(Arc::clone(schedule));
        }
        let schedule = Schedule::plan(&self.interval_rows(), TILE)?;
        Ok(Arc::clone(planned.get_or_init(|| Arc::new(schedule))))
    }

    /// Tiles and pairs that the block-sparse executions compute, beside what the mask needs.
    ///
    /// # Errors
    /// As [`TreeMask::schedule`].
    pub fn schedule_stats(&self) -> Result<ScheduleStats, KernelError> {
        Ok(self.schedule()?.stats(&self.interval_rows()))
    }

    /// The schedule on the device of the mask, uploaded on first use.
    #[cfg(feature = "cube")]
    pub(crate) fn cube_plan(
        &self,
        client: &cubecl::client::Client,
    ) -> Result<crate::cube::CubePlan, KernelError> {
        let uploaded = &self.plans.cube;
        if let Some(plan) = uploaded.get() {
            return Ok(plan.clone());
        }
        let schedule = self.schedule()?;
        let plan =
            crate::cube::CubePlan::upload(&schedule, self.flat_ends(), self.flat_window(), client)?;
        Ok(uploaded.get_or_init(|| plan).clone())
    }

    /// The ends of all rows, `[batch, time]`.
    #[cfg(any(feature = "cpu", feature = "cube"))]
    pub(crate) fn flat_ends(&self) -> &[i32] {
        &self.ends
    }

    /// Positions of all rows, `[batch, time]`, and the length of the window in them.
    #[cfg(any(feature = "cpu", feature = "cube"))]
    pub(crate) fn flat_window(&self) -> Option<(&[i32], u32)> {
        self.window.as_ref().map(|window| (&*window.positions, window.length))
    }

    /// The device that the mask lies on.
    pub fn device(&self) -> Device {
        self.ends_bt.device()
    }

    /// Visibility of every key to every row, `[batch, 1, time, time]`, true = may attend.
    fn visible_b1tt(&self) -> Tensor<4, Bool> {
        let (b, t) = (self.batch, self.time);
        let square = [b, 1, t, t];
        let index_t = Tensor::<1, Int>::arange(0..t as i64, &self.device());
        let row = index_t.clone().reshape([1, 1, t, 1]).expand(square);
        let key = index_t.reshape([1, 1, 1, t]).expand(square);
        let end = self.ends_bt().reshape([b, 1, 1, t]).expand(square);
        let visible = key.lower_equal(row.clone()).bool_and(row.lower(end));
        // Positions count from 0, so that a window beyond int32 reaches over all of them.
        let Some(window) =
            self.window.as_ref().filter(|window| i32::try_from(window.length).is_ok())
        else {
            return visible;
        };
        let row = window.positions_bt.clone().reshape([b, 1, t, 1]);
        let key = window.positions_bt.clone().reshape([b, 1, 1, t]);
        let distance = row.expand(square).sub(key.expand(square));
        visible.bool_and(distance.lower_elem(i64::from(window.length)))
    }
}

/// The dense 4D mask of a tree in burn's polarity, for models that take a mask tensor.
///
/// It is the one thing of size T x T outside the reference; it is made on first use and shared by
/// later ones. A row that sees nothing is masked throughout: a softmax without a guard makes NaN of
/// it, so batch rows of one length, or use [`tree_attention`](crate::tree_attention).
///
/// # Shapes
/// Returns `[batch, 1, time, time]`, true = masked; the second dimension broadcasts over heads.
pub fn dense_mask(mask: &TreeMask) -> Tensor<4, Bool> {
    mask.plans.masked_b1tt.get_or_init(|| to_masked(mask.visible_b1tt())).clone()
}

/// Turns a mask of true = may attend into burn's true = masked.
///
/// Everything in this project is written in the first polarity; this is the only place where it is
/// turned round.
///
/// # Shapes
/// `visible`: `[batch, head, query, key]`; the result has the same shape.
pub fn to_masked(visible: Tensor<4, Bool>) -> Tensor<4, Bool> {
    visible.bool_not()
}

fn flatten<R: AsRef<[i32]>>(
    array: &'static str,
    rows: &[R],
    expected: usize,
) -> Result<Vec<i32>, KernelError> {
    let mut flat = Vec::with_capacity(rows.len() * expected);
    for (row, values) in rows.iter().enumerate() {
        let values = values.as_ref();
        if values.len() != expected {
            return Err(KernelError::RowLength { array, row, expected, found: values.len() });
        }
        flat.extend_from_slice(values);
    }
    Ok(flat)
}

fn upload(flat: &[i32], batch: usize, time: usize, device: &Device) -> Tensor<2, Int> {
    let device = device.clone().without_autodiff();
    Tensor::from_data(TensorData::new(flat.to_vec(), [batch, time]), &device)
}

use crate::error::KernelError;
use crate::schedule::{IntervalRows, Schedule, ScheduleStats, TileSize};
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
    rows: IntervalRows,
    ends_bt: Tensor<2, Int>,
    positions_bt: Option<Tensor<2, Int>>,
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

impl TreeMask {
    /// The mask of rows given by the `ends` of their tokens, on the device of the model.
    ///
    /// Shorter rows are padded to the longest, as [`IntervalRows::new`] says. A padding token `j`
    /// has `ends[j] == j`: nobody sees it, and its own row is empty unless real tokens are still
    /// open.
    ///
    /// # Shapes
    /// `ends`: `[batch][time of the row]`, indices into the row.
    ///
    /// # Errors
    /// As [`IntervalRows::new`].
    pub fn new<R: AsRef<[i32]>>(ends: &[R], device: &Device) -> Result<Self, KernelError> {
        IntervalRows::new(ends).map(|rows| Self::of(rows, device))
    }

    /// The mask of rows that were checked before, on the device of the model.
    pub fn of(rows: IntervalRows, device: &Device) -> Self {
        let dims = rows.dims();
        Self {
            ends_bt: upload(rows.flat_ends(), dims, device),
            positions_bt: rows.flat_window().map(|(positions, _)| upload(positions, dims, device)),
            rows,
            plans: Arc::default(),
        }
    }

    /// The same rows for windowed heads, which see a key only while
    /// `position_i - position_j < window`.
    ///
    /// # Shapes
    /// `positions`: `[batch][time of the row]`, tokens from the start of the conversation.
    ///
    /// # Errors
    /// As [`IntervalRows::with_window`].
    pub fn with_window<R: AsRef<[i32]>>(
        &self,
        positions: &[R],
        window: u32,
    ) -> Result<Self, KernelError> {
        Ok(Self::of(self.rows.with_window(positions, window)?, &self.device()))
    }

    /// Rows, and tokens per row with padding.
    pub fn dims(&self) -> [usize; 2] {
        self.rows.dims()
    }

    /// First index that does not see each key any more, `[batch, time]`, on the device.
    pub fn ends_bt(&self) -> Tensor<2, Int> {
        self.ends_bt.clone()
    }

    /// The mask on the host, as a schedule is planned from it.
    pub fn rows(&self) -> &IntervalRows {
        &self.rows
    }

    /// Length of the sliding window in tokens, if there is one.
    pub fn window(&self) -> Option<u32> {
        self.rows.flat_window().map(|(_, length)| length)
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
        let schedule = Schedule::plan(&self.rows, TILE)?;
        Ok(Arc::clone(planned.get_or_init(|| Arc::new(schedule))))
    }

    /// Tiles and pairs that the block-sparse executions compute, beside what the mask needs.
    ///
    /// # Errors
    /// As [`TreeMask::schedule`].
    pub fn schedule_stats(&self) -> Result<ScheduleStats, KernelError> {
        Ok(self.schedule()?.stats(&self.rows))
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
        let plan = crate::cube::CubePlan::upload(&schedule, &self.rows, client)?;
        Ok(uploaded.get_or_init(|| plan).clone())
    }

    /// The device that the mask lies on.
    pub fn device(&self) -> Device {
        self.ends_bt.device()
    }

    /// Visibility of every key to every row, `[batch, 1, time, time]`, true = may attend.
    fn visible_b1tt(&self) -> Tensor<4, Bool> {
        let [b, t] = self.dims();
        let square = [b, 1, t, t];
        let index_t = Tensor::<1, Int>::arange(0..t as i64, &self.device());
        let row = index_t.clone().reshape([1, 1, t, 1]).expand(square);
        let key = index_t.reshape([1, 1, 1, t]).expand(square);
        let end = self.ends_bt().reshape([b, 1, 1, t]).expand(square);
        let visible = key.lower_equal(row.clone()).bool_and(row.lower(end));
        let Some(positions_bt) = &self.positions_bt else { return visible };
        // Positions count from 0, so that a window beyond int32 reaches over all of them.
        let Some(length) = self.window().filter(|&length| i32::try_from(length).is_ok()) else {
            return visible;
        };
        let row = positions_bt.clone().reshape([b, 1, t, 1]);
        let key = positions_bt.clone().reshape([b, 1, 1, t]);
        let distance = row.expand(square).sub(key.expand(square));
        visible.bool_and(distance.lower_elem(i64::from(length)))
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

fn upload(flat: &[i32], dims: [usize; 2], device: &Device) -> Tensor<2, Int> {
    let device = device.clone().without_autodiff();
    Tensor::from_data(TensorData::new(flat.to_vec(), dims), &device)
}

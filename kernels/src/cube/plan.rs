use crate::error::KernelError;
use crate::schedule::{IntervalRows, Schedule, TileLists};
use cubecl::{CubeElement, client::Client, server::Handle};

/// A schedule and its mask on the device, in the form that the kernels read.
///
/// It is uploaded once per mask and shared by all layers and heads. Everything lies in one buffer
/// because portable WebGPU binds eight to a kernel.
#[derive(Debug, Clone)]
pub(crate) struct CubePlan {
    handle: Handle,
    layout: PlanLayout,
}

/// Where the parts of a plan begin in its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlanLayout {
    /// Rows of the batch.
    pub(crate) batch: usize,
    /// Tokens of a row.
    pub(crate) time: usize,
    /// The lists of key tiles of every query tile.
    pub(crate) by_query: ListLayout,
    /// The lists of query tiles of every key tile.
    pub(crate) by_key: ListLayout,
    /// First index that does not see each key any more.
    pub(crate) ends_at: usize,
    /// Positions, where there is a window.
    pub(crate) positions_at: usize,
    /// Length of the window, where there is one that hides anything.
    pub(crate) window: Option<i32>,
    /// Numbers in the buffer.
    pub(crate) length: usize,
}

/// Where one side's lists begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListLayout {
    /// Lists of one row of the batch.
    pub(crate) tiles: usize,
    /// Offsets, one more than there are lists.
    pub(crate) offsets_at: usize,
    /// Entries: twice a tile, plus one if the rule has to be applied in it.
    pub(crate) entries_at: usize,
}

impl CubePlan {
    /// Writes a schedule, and the rows that it was planned from, to a device.
    ///
    /// # Errors
    /// More than 2^31 numbers in all.
    pub(crate) fn upload(
        schedule: &Schedule,
        rows: &IntervalRows,
        client: &Client,
    ) -> Result<Self, KernelError> {
        // Positions count from 0, so that a window beyond int32 reaches over all of them.
        let windowed = rows
            .flat_window()
            .and_then(|(positions, window)| Some((positions, i32::try_from(window).ok()?)));
        let mut numbers = Vec::new();
        let by_query = append(&mut numbers, schedule.by_query(), schedule.query_tiles());
        let by_key = append(&mut numbers, schedule.by_key(), schedule.key_tiles());
        let ends_at = numbers.len();
        numbers.extend_from_slice(rows.flat_ends());
        let positions_at = numbers.len();
        numbers.extend_from_slice(windowed.map_or(&[], |(positions, _)| positions));
        let length = numbers.len();
        if i32::try_from(length).is_err() {
            let (limit, advice) =
                (i32::MAX as usize, "split the batch, or use Execution::Reference");
            return Err(KernelError::DeviceLimit {
                what: "numbers in its schedule",
                needed: length,
                limit,
                advice,
            });
        }
        let layout = PlanLayout {
            batch: schedule.batch(),
            time: schedule.time(),
            by_query,
            by_key,
            ends_at,
            positions_at,
            window: windowed.map(|(_, window)| window),
            length,
        };
        Ok(Self { handle: client.create_from_slice(i32::as_bytes(&numbers)), layout })
    }

    /// The buffer.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// What lies where in it.
    pub(crate) fn layout(&self) -> PlanLayout {
        self.layout
    }
}

/// Appends lists in ascending order of their tiles, full or not, so that sums do not depend on
/// which tiles are full.
fn append(numbers: &mut Vec<i32>, lists: &TileLists, tiles: usize) -> ListLayout {
    let offsets_at = numbers.len();
    let mut count = 0usize;
    numbers.push(0);
    for list in 0..lists.len() {
        count += lists.full(list).len() + lists.partial(list).len();
        // Cannot wrap in a plan that is kept: its whole length is checked.
        numbers.push(count as i32);
    }
    let entries_at = numbers.len();
    for list in 0..lists.len() {
        numbers.extend(lists.live(list).map(|(tile, full)| 2 * tile as i32 + i32::from(!full)));
    }
    ListLayout { tiles, offsets_at, entries_at }
}

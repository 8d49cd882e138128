use super::{
    kernel::{Blocking, ROWS, SizesLaunch},
    plan::{ListLayout, PlanLayout},
    routine::{Blockings, HEAD_STEP, MAX_HEAD_DIM, Routine},
};
use crate::{error::KernelError, problem::Problem};
use cubecl::{
    CubeCount,
    ir::{AddressType, DeviceProperties, ElemType},
};

/// Everything about a launch that is known without data: validated here, so that a kernel never sees a problem that it cannot do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prepared {
    /// The sizes of the call, the head dimension padded to whole vectors.
    pub(crate) problem: Problem,
    /// What lies where in the plan.
    pub(crate) plan: PlanLayout,
    /// How the kernels cut the work.
    pub(crate) blockings: Blockings,
    /// Width of an index: 64 bits where 32 do not reach.
    pub(crate) address: AddressType,
    /// Type of q, k, v and the results.
    pub(crate) dtype: ElemType,
}

impl Prepared {
    /// Checks a problem against the plan of its mask and the limits of a device.
    ///
    /// # Errors
    /// A head that is too large, a plan for another batch, or a problem beyond a limit of the device.
    pub(crate) fn new(
        problem: Problem,
        dtype: ElemType,
        plan: PlanLayout,
        device: &DeviceProperties,
    ) -> Result<Self, KernelError> {
        if problem.head_dim == 0 || problem.head_dim > MAX_HEAD_DIM {
            return Err(KernelError::HeadDim { head_dim: problem.head_dim, largest: MAX_HEAD_DIM });
        }
        if [plan.batch, plan.time] != [problem.batch, problem.time] {
            let expected = vec![problem.batch, problem.time];
            return Err(KernelError::Shape { tensor: "mask", expected, found: vec![plan.batch, plan.time] });
        }
        let head_dim = problem.head_dim.next_multiple_of(HEAD_STEP);
        let problem = Problem { head_dim, ..problem };
        let limits = &device.hardware;
        let blockings = Routine::for_device().blockings(head_dim, plan.window.is_some(), limits.max_shared_memory_size);
        within("bytes of shared memory", blockings.shared_bytes(), limits.max_shared_memory_size)?;
        within("units in a cube", blockings.units(), limits.max_units_per_cube as usize)?;
        let prepared = Self { problem, plan, blockings, address: address(&problem, device)?, dtype };
        let (x, y, z) = limits.max_cube_count;
        for [cubes_x, cubes_y, cubes_z] in prepared.counts() {
            within("cubes along tokens", cubes_x, x as usize)?;
            within("cubes along heads", cubes_y, y as usize)?;
            within("cubes along rows of the batch", cubes_z, z as usize)?;
        }
        Ok(prepared)
    }

    /// Cubes of the forward pass and the gradients of queries, of keys and values, and of the row terms.
    fn counts(&self) -> [[usize; 3]; 4] {
        let Problem { batch, heads_q, heads_kv, .. } = self.problem;
        let (by_query, by_key) = (self.plan.by_query.tiles, self.plan.by_key.tiles);
        let cubes = |tiles: usize, blocking: Blocking| tiles * (blocking.tile / blocking.owned);
        let groups = self.rows().div_ceil(ROWS);
        let across = groups.clamp(1, 32_768);
        [
            [cubes(by_query, self.blockings.forward), heads_q, batch],
            [cubes(by_query, self.blockings.query_gradient), heads_q, batch],
            [cubes(by_key, self.blockings.key_gradient), heads_kv, batch],
            [across, groups.div_ceil(across), 1],
        ]
    }

    /// Cubes of each kernel: forward, gradients of queries, gradients of keys and values, row terms.
    pub(crate) fn cubes(&self) -> [CubeCount; 4] {
        // Within u32: `new` compared them with the device's u32 limits.
        self.counts().map(|[x, y, z]| CubeCount::Static(x as u32, y as u32, z as u32))
    }

    /// Rows of all query heads.
    pub(crate) fn rows(&self) -> usize {
        self.problem.batch * self.problem.heads_q * self.problem.time
    }

    /// Run-time sizes of a kernel that owns queries.
    pub(crate) fn query_sizes(&self) -> SizesLaunch {
        self.sizes(self.plan.by_query)
    }

    /// Run-time sizes of a kernel that owns keys.
    pub(crate) fn key_sizes(&self) -> SizesLaunch {
        self.sizes(self.plan.by_key)
    }

    fn sizes(&self, list: ListLayout) -> SizesLaunch {
        // All below 2^31: the plan's length is, and head counts are cube counts.
        SizesLaunch::new(
            self.problem.time as u32,
            self.problem.heads_q as u32,
            self.problem.heads_kv as u32,
            list.tiles as u32,
            list.offsets_at as u32,
            list.entries_at as u32,
            self.plan.ends_at as u32,
            self.plan.positions_at as u32,
            self.plan.window.unwrap_or(0),
        )
    }
}

fn within(what: &'static str, needed: usize, limit: usize) -> Result<(), KernelError> {
    if needed <= limit { Ok(()) } else { Err(KernelError::DeviceLimit { what, needed, limit }) }
}

/// The narrowest index that reaches every element, with room for the tokens of one tile behind the last.
fn address(problem: &Problem, device: &DeviceProperties) -> Result<AddressType, KernelError> {
    let Problem { batch, heads_q, time, head_dim, .. } = *problem;
    let sizes = [heads_q, time.saturating_add(2 * crate::mask::TILE.rows), head_dim];
    let elements = sizes.iter().fold(batch, |product, &size| product.saturating_mul(size));
    let reach = i32::MAX as usize;
    if elements <= reach {
        Ok(AddressType::U32)
    } else if device.supports_address(AddressType::U64) {
        Ok(AddressType::U64)
    } else {
        Err(KernelError::DeviceLimit { what: "elements in a tensor", needed: elements, limit: reach })
    }
}

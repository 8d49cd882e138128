use super::{
    kernel::{Blocking, LANES, ROWS, SizesLaunch, UNITS},
    plan::{ListLayout, PlanLayout},
    routine::{Blockings, HEAD_STEP, MAX_HEAD_DIM, Routine},
};
use crate::{error::KernelError, mask::TILE, sizes::AttentionSizes};
use cubecl::{
    CubeCount,
    ir::{AddressType, DeviceProperties, ElemType},
};

/// Every cut divides a tile, which is why a tile cannot have just any side.
const _: () = assert!(TILE.rows == TILE.keys && TILE.rows.is_multiple_of(64));

/// Everything about a launch that is known without data: validated here, so that a kernel never
/// sees a problem that it cannot do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prepared {
    /// The sizes of the call, the head dimension padded to whole vectors.
    pub(crate) problem: AttentionSizes,
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
    /// A head that is too large, a plan for another batch, or a problem beyond a limit of the
    /// device.
    pub(crate) fn new(
        problem: AttentionSizes,
        dtype: ElemType,
        plan: PlanLayout,
        device: &DeviceProperties,
    ) -> Result<Self, KernelError> {
        if problem.head_dim == 0 || problem.head_dim > MAX_HEAD_DIM {
            return Err(KernelError::HeadDim { head_dim: problem.head_dim, largest: MAX_HEAD_DIM });
        }
        if [plan.batch, plan.time] != [problem.batch, problem.time] {
            let expected = vec![problem.batch, problem.time];
            return Err(KernelError::Shape {
                tensor: "mask",
                expected,
                found: vec![plan.batch, plan.time],
            });
        }
        let head_dim = problem.head_dim.next_multiple_of(HEAD_STEP);
        let problem = AttentionSizes { head_dim, ..problem };
        let limits = &device.hardware;
        let blockings = Routine::for_device().blockings(
            TILE.rows,
            head_dim,
            plan.window.is_some(),
            limits.max_shared_memory_size,
        );
        within(
            "bytes of shared memory",
            blockings.shared_bytes(),
            limits.max_shared_memory_size,
            OTHER_WAY,
        )?;
        // Cubes have one dimension.
        let units = limits.max_units_per_cube.min(limits.max_cube_dim.0) as usize;
        within("units in a cube", blockings.units().max(UNITS), units, OTHER_WAY)?;
        let prepared =
            Self { problem, plan, blockings, address: address(&problem, device)?, dtype };
        let (x, y, z) = limits.max_cube_count;
        for [cubes_x, cubes_y, cubes_z] in prepared.counts() {
            within(
                "cubes along tokens",
                cubes_x,
                x as usize,
                "give shorter rows, or use Execution::Reference",
            )?;
            within(
                "cubes along heads",
                cubes_y,
                y as usize,
                "give fewer heads at a time, or use Execution::Reference",
            )?;
            within("cubes along rows of the batch", cubes_z, z as usize, SPLIT)?;
        }
        Ok(prepared)
    }

    /// Cubes of the forward pass and the gradients of queries, of keys and values, and of the row
    /// terms.
    fn counts(&self) -> [[usize; 3]; 4] {
        let AttentionSizes { batch, heads_q, heads_kv, .. } = self.problem;
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

    /// Cubes of each kernel: forward, gradients of queries, gradients of keys and values, row
    /// terms.
    pub(crate) fn cubes(&self) -> [CubeCount; 4] {
        // Within u32: `new` compared them with the device's u32 limits.
        self.counts().map(|[x, y, z]| CubeCount::Static(x as u32, y as u32, z as u32))
    }

    /// Rows of all query heads.
    pub(crate) fn rows(&self) -> usize {
        self.problem.batch * self.problem.heads_q * self.problem.time
    }

    /// Run-time sizes of the forward pass.
    pub(crate) fn forward_sizes(&self) -> SizesLaunch {
        self.sizes(self.plan.by_query, self.blockings.forward)
    }

    /// Run-time sizes of the gradients of queries.
    pub(crate) fn query_sizes(&self) -> SizesLaunch {
        self.sizes(self.plan.by_query, self.blockings.query_gradient)
    }

    /// Run-time sizes of the gradients of keys and values.
    pub(crate) fn key_sizes(&self) -> SizesLaunch {
        self.sizes(self.plan.by_key, self.blockings.key_gradient)
    }

    fn sizes(&self, list: ListLayout, blocking: Blocking) -> SizesLaunch {
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
            blocking.chunk() as u32,
            (blocking.batch() / LANES) as u32,
        )
    }
}

/// What to do where a smaller problem would not help.
const OTHER_WAY: &str = "use Execution::Reference, or another device";

/// What to do where a batch of fewer rows helps.
const SPLIT: &str = "split the batch, or use Execution::Reference";

fn within(
    what: &'static str,
    needed: usize,
    limit: usize,
    advice: &'static str,
) -> Result<(), KernelError> {
    if needed <= limit {
        Ok(())
    } else {
        Err(KernelError::DeviceLimit { what, needed, limit, advice })
    }
}

/// The narrowest index that reaches every element, with room for the tokens of one tile behind the
/// last.
fn address(
    problem: &AttentionSizes,
    device: &DeviceProperties,
) -> Result<AddressType, KernelError> {
    let AttentionSizes { batch, heads_q, time, head_dim, .. } = *problem;
    let sizes = [heads_q, time.saturating_add(2 * TILE.rows), head_dim];
    let elements = sizes.iter().fold(batch, |product, &size| product.saturating_mul(size));
    let reach = i32::MAX as usize;
    if elements > reach && device.supports_address(AddressType::U64) {
        return Ok(AddressType::U64);
    }
    within("elements in a tensor", elements, reach, SPLIT)?;
    Ok(AddressType::U32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cubecl::{
        ir::{
            DeviceIdentity, FloatKind, HardwareProperties, MemoryDeviceProperties,
            features::Features,
        },
        profile::TimingMethod,
    };

    const GIANT: AttentionSizes =
        AttentionSizes { batch: 1, heads_q: 64, heads_kv: 8, time: 1 << 20, head_dim: 128 };

    fn device(wide: bool, cubes: u32, shared: usize) -> DeviceProperties {
        let hardware = HardwareProperties {
            load_width: 128,
            vector_register_count: None,
            plane_size_min: 32,
            plane_size_max: 32,
            max_bindings: 8,
            max_shared_memory_size: shared,
            max_cube_count: (cubes, 65_535, 65_535),
            max_units_per_cube: 256,
            max_cube_dim: (256, 256, 64),
            num_streaming_multiprocessors: None,
            num_tensor_cores: None,
            min_tensor_cores_dim: None,
            num_cpu_cores: None,
            last_level_cache_size: None,
            max_vector_size: 4,
            cube_mma_reserved_shared_memory: 0,
        };
        let memory = MemoryDeviceProperties::new(u64::MAX, 256);
        let identity =
            DeviceIdentity { name: "none".into(), fingerprint: "none".into(), physical: None };
        let mut device = DeviceProperties::new(
            Features::default(),
            memory,
            hardware,
            TimingMethod::Device,
            identity,
        );
        device.register_address_type(AddressType::U32);
        if wide {
            device.register_address_type(AddressType::U64);
        }
        device
    }

    fn prepare(
        problem: AttentionSizes,
        device: &DeviceProperties,
    ) -> Result<Prepared, KernelError> {
        let tiles = problem.time.div_ceil(TILE.rows);
        let lists = ListLayout { tiles, offsets_at: 0, entries_at: 0 };
        let plan = PlanLayout {
            batch: problem.batch,
            time: problem.time,
            by_query: lists,
            by_key: lists,
            ends_at: 0,
            positions_at: 0,
            window: None,
            length: 0,
        };
        Prepared::new(problem, ElemType::Float(FloatKind::F32), plan, device)
    }

    #[test]
    fn indices_take_64_bits_past_two_to_the_31_elements_and_only_then() {
        let device = device(true, i32::MAX as u32, 32 << 10);
        let reach = |time| {
            prepare(AttentionSizes { time, ..GIANT }, &device).map(|prepared| prepared.address)
        };
        assert_eq!(reach((1 << 18) - 129), Ok(AddressType::U32));
        assert_eq!(reach(1 << 18), Ok(AddressType::U64));
        assert_eq!(reach(GIANT.time), Ok(AddressType::U64));
    }

    #[test]
    fn a_tensor_beyond_what_a_device_can_index_is_refused() {
        let refused = prepare(GIANT, &device(false, i32::MAX as u32, 32 << 10)).err();
        let limit = i32::MAX as usize;
        let needed = 64 * ((1 << 20) + 128) * 128;
        assert_eq!(
            refused,
            Some(KernelError::DeviceLimit {
                what: "elements in a tensor",
                needed,
                limit,
                advice: SPLIT
            })
        );
    }

    #[test]
    fn more_cubes_or_heads_than_a_device_launches_are_refused() {
        let few = prepare(GIANT, &device(true, 1 << 14, 32 << 10)).err();
        assert!(
            matches!(few, Some(KernelError::DeviceLimit { what: "cubes along tokens", .. })),
            "{few:?}"
        );
        let many =
            AttentionSizes { batch: 1, heads_q: 70_000, heads_kv: 1, time: 64, head_dim: 64 };
        let many = prepare(many, &device(true, 1 << 20, 32 << 10)).err();
        assert!(
            matches!(many, Some(KernelError::DeviceLimit { what: "cubes along heads", .. })),
            "{many:?}"
        );
    }

    #[test]
    fn cubes_of_more_units_than_a_device_has_are_refused() {
        let one = AttentionSizes { batch: 1, heads_q: 1, heads_kv: 1, time: 1, head_dim: 64 };
        let few = |units, along| {
            let mut device = device(false, 65_535, 32 << 10);
            device.hardware.max_units_per_cube = units;
            device.hardware.max_cube_dim.0 = along;
            prepare(one, &device).err()
        };
        let refused = |limit| {
            Some(KernelError::DeviceLimit {
                what: "units in a cube",
                needed: UNITS,
                limit,
                advice: OTHER_WAY,
            })
        };
        // Row terms take more units than any other kernel.
        assert_eq!(
            [few(128, 256), few(256, 128), few(256, 256)],
            [refused(128), refused(128), None]
        );
    }

    #[test]
    fn every_head_dimension_fits_portable_webgpu() {
        let device = device(false, 65_535, 16 << 10);
        for head_dim in 1..=MAX_HEAD_DIM {
            let problem = AttentionSizes { batch: 1, heads_q: 1, heads_kv: 1, time: 1, head_dim };
            let prepared =
                prepare(problem, &device).map(|prepared| prepared.blockings.shared_bytes());
            assert!(prepared.is_ok_and(|bytes| bytes <= 16 << 10), "{head_dim}");
        }
        let large = AttentionSizes {
            batch: 1,
            heads_q: 1,
            heads_kv: 1,
            time: 1,
            head_dim: MAX_HEAD_DIM + 1,
        };
        assert!(matches!(prepare(large, &device), Err(KernelError::HeadDim { .. })));
    }
}

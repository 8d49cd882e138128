use super::kernel::Blocking;

/// Largest head of any kernel here.
pub(crate) const MAX_HEAD_DIM: usize = 256;

/// Heads are padded with zeros to a multiple of this: the width of a vectorised load.
pub(crate) const HEAD_STEP: usize = 4;

/// Which family of kernels computes attention on a device of CubeCL.
///
/// Families differ in the instructions that they need. One on matrix units (float16 or bfloat16
/// inputs, float32 sums) is a variant beside this one: it consumes the same plan, owns its
/// blockings, and is chosen in [`Routine::for_device`], which will then need to know what a device
/// reports. A device never falls from a forced one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub(crate) enum Routine {
    /// Plain arithmetic of single units, shared memory and barriers: no plane operations, matrix
    /// units or atomics, so it runs on every device, software Vulkan included.
    ///
    /// What bounds it: a pair takes `2 head_dim` multiply-adds forward (4 flops a feature),
    /// `3 head_dim` for dq, `4 head_dim` for dk and dv, the scores computed anew included. With `m`
    /// owned tokens a unit, four features of scores read `m + 4` vectors of shared memory for
    /// `16 m` multiply-adds: 10.7 a vector at `m = 8`, 8 at `m = 4`; sums over tokens read
    /// `m + 4 n` for `16 m n` at `n = head_dim / 64` vectors of results, 10.7 to 16 at `m = 8`. A
    /// multiprocessor of 128 lanes issues a warp's multiply-add four times a clock and one
    /// wavefront of shared memory once; a vector takes one wavefront where a half warp shares its
    /// address and two where it reads sixteen neighbours. So a vector has to feed about 6
    /// multiply-adds, and arithmetic bounds both, barely at `m = 4`. Global memory is far from
    /// either: 64 x 64 pairs read `3 x 64 head_dim` numbers for `2 x 64 x 64 head_dim`
    /// multiply-adds, 43 a number or 21 flops a byte of float32, most of it from the second-level
    /// cache.
    ///
    /// What bounds `m` are registers: results take `m head_dim / 16` of them, twice as many for
    /// keys and values together, scores `4 m`, or `8 m` in the gradients. `m` is 8 where no kernel
    /// spills on any architecture, and 4 beyond; the test of the CUDA source pins it. At most 255
    /// registers and 26 KiB let two cubes of 128 units run on a multiprocessor, 168 let three.
    Unit,
}

/// The cut of each kernel of a routine, its compile-time key beside the dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Blockings {
    /// Outputs and log-sum-exps.
    pub(crate) forward: Blocking,
    /// Gradients of queries.
    pub(crate) query_gradient: Blocking,
    /// Gradients of keys and values.
    pub(crate) key_gradient: Blocking,
}

impl Routine {
    /// The routine that runs, the same on every device so long as there is one.
    pub(crate) fn for_device() -> Self {
        Self::Unit
    }

    /// How this routine cuts tiles of `tile` tokens and heads of `head_dim` features, a multiple of
    /// [`HEAD_STEP`], where a cube has `shared` bytes of shared memory.
    pub(crate) fn blockings(
        self,
        tile: usize,
        head_dim: usize,
        window: bool,
        shared: usize,
    ) -> Blockings {
        let Self::Unit = self;
        let cut = |owned, micro, stage| {
            let blocking = Blocking { tile, owned, passing: 64, micro, head_dim, stage, window };
            Blockings { forward: blocking, query_gradient: blocking, key_gradient: blocking }
        };
        // 13 KiB at most: what portable WebGPU grants is 16.
        let small = cut(32, 4, 4);
        let large = match head_dim {
            0..=64 => cut(64, 8, 8),
            65..=128 => Blockings { forward: cut(64, 8, 8).forward, ..cut(32, 4, 8) },
            _ => small,
        };
        if large.shared_bytes() <= shared { large } else { small }
    }
}

impl Blockings {
    /// Bytes of shared memory that the largest kernel takes.
    pub(crate) fn shared_bytes(&self) -> usize {
        let kernels = [self.forward, self.query_gradient, self.key_gradient];
        kernels.iter().map(Blocking::shared_bytes).max().unwrap_or(0)
    }

    /// Units of the largest cube.
    pub(crate) fn units(&self) -> usize {
        let kernels = [self.forward, self.query_gradient, self.key_gradient];
        kernels.iter().map(Blocking::units).max().unwrap_or(0)
    }
}

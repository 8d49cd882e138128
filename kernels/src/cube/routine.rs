use super::kernel::Blocking;
use crate::mask::TILE;

/// Largest head of any kernel here.
pub(crate) const MAX_HEAD_DIM: usize = 256;

/// Heads are padded with zeros to a multiple of this: the width of a vectorised load.
pub(crate) const HEAD_STEP: usize = 4;

/// Which family of kernels computes attention on a device of CubeCL.
///
/// Families differ in the instructions that they need. One on matrix units (float16 or bfloat16 inputs, float32 sums) is a variant
/// beside this one: it consumes the same plan, owns its blockings, and is chosen in [`Routine::for_device`] by what a device
/// reports. A device never falls from a forced one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub(crate) enum Routine {
    /// Plain arithmetic of single units, shared memory and barriers: no plane operations, matrix units or atomics, so it runs on
    /// every device, software Vulkan included.
    ///
    /// What bounds it: per pair and feature, a forward pass takes 2 multiply-adds (4 flops), dq takes 3 (6), dk and dv take 4 (8,
    /// two of them for scores that were computed before). With `m` owned tokens per unit, a step over four features reads
    /// `m + 4` vectors of shared memory for `16 m` multiply-adds: 21 per vector at `m = 8`, 8 vectors per 64 at `m = 4`. A
    /// streaming multiprocessor that issues 128 multiply-adds and one 128-byte shared read a clock needs about 8 multiply-adds
    /// per vector read when half of a warp shares its addresses, so `m = 8` is bound by arithmetic and `m = 4` is at the edge.
    /// Global memory is far away from either: a tile of 64 x 64 pairs reads `3 * 64 * head_dim` numbers for `2 * 64 * 64 *
    /// head_dim` multiply-adds, 43 a number, or 10 a byte in float32. What limits `m` are registers: results take `m *
    /// head_dim / 16` of them, twice for keys and values together. `m` is therefore the largest that keeps every kernel free of
    /// spills with room for a second cube beside it, as pinned by the test of the CUDA source.
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
    /// The fastest routine that a device runs.
    pub(crate) fn for_device() -> Self {
        Self::Unit
    }

    /// How this routine cuts heads of `head_dim` features, a multiple of [`HEAD_STEP`], with `shared` bytes of shared memory.
    pub(crate) fn blockings(self, head_dim: usize, window: bool, shared: usize) -> Blockings {
        let Self::Unit = self;
        let small = Blockings::unit(head_dim, window, [32, 32], 4);
        let large = match head_dim {
            0..=64 => Blockings::unit(head_dim, window, [64, 64], 8),
            _ => small,
        };
        if large.shared_bytes() <= shared { large } else { small }
    }
}

impl Blockings {
    fn unit(head_dim: usize, window: bool, [owned, passing]: [usize; 2], micro: usize) -> Self {
        let blocking = Blocking { tile: TILE.rows, owned, passing, micro, head_dim, window };
        Self { forward: blocking, query_gradient: blocking, key_gradient: blocking }
    }

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

/// Scores of one row that a unit holds: the width of a vector.
pub(crate) const LANES: usize = 4;

/// How a cube cuts its share of the work among its units.
///
/// It is the compile-time key of a kernel beside the dtype, so it holds only what the generated
/// code depends on: a new tree, length or batch never compiles anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Blocking {
    /// Tokens of a schedule tile, on both sides.
    pub(crate) tile: usize,
    /// Tokens whose results a cube computes: a divisor of the tile.
    pub(crate) owned: usize,
    /// Tokens of the other side that it looks at together: a divisor of the tile.
    pub(crate) passing: usize,
    /// Owned tokens per unit; the passing ones are [`LANES`] per unit.
    pub(crate) micro: usize,
    /// Features of a head, a multiple of [`LANES`].
    pub(crate) head_dim: usize,
    /// Vectors of a token's head that are staged at a time for scores, at most; it also bounds the
    /// heads staged for sums.
    pub(crate) stage: usize,
    /// Whether a sliding window over positions applies.
    pub(crate) window: bool,
}

impl Blocking {
    /// Units that share an owned token.
    pub(crate) const fn columns(&self) -> usize {
        self.passing / LANES
    }

    /// Groups of such units.
    pub(crate) const fn rows(&self) -> usize {
        self.owned / self.micro
    }

    /// Units of a cube.
    pub(crate) const fn units(&self) -> usize {
        self.rows() * self.columns()
    }

    /// Vectors of a head.
    pub(crate) const fn vectors(&self) -> usize {
        self.head_dim / LANES
    }

    /// Vectors of a head that a unit accumulates.
    pub(crate) const fn outputs(&self) -> usize {
        self.vectors().div_ceil(self.columns())
    }

    /// Vectors of a head that are staged at a time for scores: the largest divisor up to the bound.
    pub(crate) const fn chunk(&self) -> usize {
        let mut chunk = self.stage;
        while !self.vectors().is_multiple_of(chunk) {
            chunk -= 1;
        }
        chunk
    }

    /// Vectors from one staged token to the next: odd, so that neighbours lie in different banks.
    pub(crate) const fn pitch(&self) -> usize {
        self.chunk() | 1
    }

    /// Vectors from one row of weights to the next: odd for the same reason.
    pub(crate) const fn weight_pitch(&self) -> usize {
        self.columns() | 1
    }

    /// Passing tokens whose whole heads are staged at a time: as many as fit 64 times the bound.
    pub(crate) const fn batch(&self) -> usize {
        let mut batch = self.passing;
        while batch > LANES && batch * self.vectors() > 64 * self.stage {
            batch /= 2;
        }
        batch
    }

    /// Where staged heads begin in shared memory, behind what scores and weights take in turn.
    pub(crate) const fn heads_at(&self) -> usize {
        let scores = (self.owned + self.passing) * self.pitch();
        let weights = self.owned * self.weight_pitch();
        if scores > weights { scores } else { weights }
    }

    /// Vectors of float32 in shared memory.
    pub(crate) const fn shared(&self) -> usize {
        let heads = self.batch() * self.vectors();
        let maxima = self.owned / LANES * self.columns();
        self.heads_at() + if heads > maxima { heads } else { maxima }
    }

    /// Bytes of shared memory.
    pub(crate) const fn shared_bytes(&self) -> usize {
        self.shared() * LANES * size_of::<f32>()
    }
}

use pulp::Simd;

/// A floating-point type with the vector operations that the kernels need, on whatever vectors the
/// processor has.
///
/// One name per operation lets a kernel be written once for float32 and float64 where the vector
/// library has one method for each.
pub(crate) trait Element: Copy + Default + Send + Sync + PartialEq + 'static {
    /// A vector of this type.
    type Lanes<S: Simd>: Copy;

    /// What a hidden pair scores, and the maximum over nothing.
    const HIDDEN: Self;
    /// What `exp2(score - NOTHING)` is 0 for, whatever the score.
    const NOTHING: Self;

    /// The value nearest to `x`.
    fn of(x: f64) -> Self;
    /// The value in float64.
    fn to_f64(self) -> f64;
    /// A vector of equal entries.
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Lanes<S>;
    /// `a + b`, entry by entry.
    fn add<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>) -> Self::Lanes<S>;
    /// `a - b`, entry by entry.
    fn sub<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>) -> Self::Lanes<S>;
    /// `a b`, entry by entry.
    fn mul<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>) -> Self::Lanes<S>;
    /// `a b + c`, entry by entry, in one rounding where the processor can.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Lanes<S>,
        b: Self::Lanes<S>,
        c: Self::Lanes<S>,
    ) -> Self::Lanes<S>;
    /// The greater of `a` and `b`, entry by entry.
    fn max<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>) -> Self::Lanes<S>;
    /// `b` where `x` equals `a`, else `x`, entry by entry.
    fn replace<S: Simd>(
        simd: S,
        x: Self::Lanes<S>,
        a: Self::Lanes<S>,
        b: Self::Lanes<S>,
    ) -> Self::Lanes<S>;
    /// `2^x` for `x` of at most a few hundred; exactly 0 where the result is no normal number any
    /// more.
    ///
    /// Rounds to the nearest integer by the addition of a number whose unit is 1, and takes a
    /// polynomial of the rest, least in its greatest relative error (Remez) on [-1/2, 1/2]: 2.0e-9
    /// for float32, 1e-17 for float64, before rounding.
    fn exp2<S: Simd>(simd: S, x: Self::Lanes<S>) -> Self::Lanes<S>;
}

/// Entries of a vector.
pub(crate) const fn lanes<E: Element, S: Simd>() -> usize {
    size_of::<E::Lanes<S>>() / size_of::<E>()
}

//! [`Element`] for float32 and float64: one list of operations, filled in with the names that the
//! vector library has for each.
use super::element::Element;
use pulp::Simd;

/// Coefficients of 2^r on [-1/2, 1/2], highest power first; the linear one rounds to ln 2.
const EXP2_F32: [f32; 7] = [
    0.000_153_458_12,
    0.001_339_993_1,
    0.009_618_489,
    0.055_503_287,
    0.240_226_47,
    std::f32::consts::LN_2,
    1.0,
];

/// Coefficients of 2^r on [-1/2, 1/2], highest power first; the linear one rounds to ln 2.
const EXP2_F64: [f64; 12] = [
    4.435_280_944_610_336e-10,
    7.074_105_626_245_66e-9,
    1.017_819_803_332_852_8e-7,
    1.321_543_308_945_963e-6,
    1.525_273_348_996_080_5e-5,
    1.540_353_046_251_461_3e-4,
    1.333_355_814_678_995e-3,
    9.618_129_107_588_335e-3,
    5.550_410_866_481_992e-2,
    2.402_265_069_591_015_6e-1,
    std::f64::consts::LN_2,
    1.0,
];

macro_rules! element {
    ($type:ident, $lanes:ident, $($operation:ident => $method:ident),*; $splat:ident, $mul_add:ident, $equal:ident,
     $less:ident, $select:ident, $exp2:expr) => {
        impl Element for $type {
            type Lanes<S: Simd> = S::$lanes;

            const HIDDEN: Self = Self::NEG_INFINITY;
            const NOTHING: Self = Self::INFINITY;

            #[inline(always)]
            fn of(x: f64) -> Self {
                x as Self
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> S::$lanes {
                simd.$splat(x)
            }

            $(#[inline(always)]
            fn $operation<S: Simd>(simd: S, a: S::$lanes, b: S::$lanes) -> S::$lanes {
                simd.$method(a, b)
            })*

            #[inline(always)]
            fn mul_add<S: Simd>(simd: S, a: S::$lanes, b: S::$lanes, c: S::$lanes) -> S::$lanes {
                simd.$mul_add(a, b, c)
            }

            #[inline(always)]
            fn replace<S: Simd>(simd: S, x: S::$lanes, a: S::$lanes, b: S::$lanes) -> S::$lanes {
                simd.$select(simd.$equal(x, a), b, x)
            }

            #[inline(always)]
            fn exp2<S: Simd>(simd: S, x: S::$lanes) -> S::$lanes {
                let least_normal = simd.$splat((Self::MIN_EXP - 1) as Self);
                let below = simd.$less(x, least_normal);
                let power = $exp2(simd, x);
                simd.$select(below, simd.$splat(0.0), power)
            }
        }
    };
}

element!(f32, f32s, add => add_f32s, sub => sub_f32s, mul => mul_f32s, max => max_f32s; splat_f32s, mul_add_e_f32s,
    equal_f32s, less_than_f32s, select_f32s, exp2_f32);
element!(f64, f64s, add => add_f64s, sub => sub_f64s, mul => mul_f64s, max => max_f64s; splat_f64s, mul_add_e_f64s,
    equal_f64s, less_than_f64s, select_f64s, exp2_f64);

#[inline(always)]
fn exp2_f32<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // With 1.5 x 2^23 added, the unit of a float32 is 1 and its low bits are the integer.
    let unit = simd.splat_f32s(12_582_912.0);
    let integer = simd.add_f32s(x, unit);
    let rest = simd.sub_f32s(x, simd.sub_f32s(integer, unit));
    let mut power = simd.splat_f32s(EXP2_F32[0]);
    for &coefficient in &EXP2_F32[1..] {
        power = simd.mul_add_e_f32s(power, rest, simd.splat_f32s(coefficient));
    }
    let exponent =
        simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(integer), simd.splat_u32s(23));
    simd.transmute_f32s_u32s(simd.add_u32s(exponent, simd.transmute_u32s_f32s(power)))
}

#[inline(always)]
fn exp2_f64<S: Simd>(simd: S, x: S::f64s) -> S::f64s {
    let unit = simd.splat_f64s(6_755_399_441_055_744.0);
    let integer = simd.sub_f64s(simd.add_f64s(x, unit), unit);
    let rest = simd.sub_f64s(x, integer);
    let mut power = simd.splat_f64s(EXP2_F64[0]);
    for &coefficient in &EXP2_F64[1..] {
        power = simd.mul_add_e_f64s(power, rest, simd.splat_f64s(coefficient));
    }
    // With 1.5 x 2^20 added, the integer stands in the low bits of the high word, and a shift of
    // 32-bit words moves it to the exponent; the low word is 0.
    let high = simd.transmute_u64s_f64s(simd.add_f64s(integer, simd.splat_f64s(1_572_864.0)));
    let words: S::u32s = bytemuck::cast(high);
    let exponent: S::u64s = bytemuck::cast(simd.wrapping_dyn_shl_u32s(words, simd.splat_u32s(20)));
    simd.transmute_f64s_u64s(simd.add_u64s(exponent, simd.transmute_u64s_f64s(power)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::element::lanes;
    use crate::cpu::product::{load, store};
    use pulp::WithSimd;

    struct Exp2<'a, E>(&'a mut [E]);

    impl<E: Element> WithSimd for Exp2<'_, E> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            for entries in self.0.chunks_exact_mut(lanes::<E, S>()) {
                let at = entries.as_mut_ptr();
                // SAFETY: the chunk holds one vector.
                unsafe { store::<E, S>(at, E::exp2(simd, load::<E, S>(at))) };
            }
        }
    }

    /// Largest relative error over 2^16 exponents from 0 down to `least`, in units of `epsilon`.
    fn largest_error<E: Element>(least: f64, epsilon: f64) -> f64 {
        let exponents: Vec<E> =
            (0..1 << 16).map(|at| E::of(least * f64::from(at) / f64::from(1 << 16))).collect();
        let mut powers = exponents.clone();
        pulp::Arch::new().dispatch(Exp2(&mut powers));
        let errors = exponents
            .iter()
            .zip(&powers)
            .map(|(x, power)| (power.to_f64() / x.to_f64().exp2() - 1.0).abs());
        errors.fold(0.0, f64::max) / epsilon
    }

    #[test]
    fn powers_of_two_are_right_to_about_one_rounding() {
        assert!(largest_error::<f32>(-126.0, f64::from(f32::EPSILON)) < 0.75);
        // The standard library's own result, which is compared with, is good to one rounding too.
        assert!(largest_error::<f64>(-1022.0, f64::EPSILON) < 1.75);
    }

    #[test]
    fn what_is_no_normal_number_any_more_is_zero_and_nan_stays() {
        let mut entries =
            [f32::NEG_INFINITY, -1e30, -126.5, -126.0, 0.0, 1.0, f32::NAN, 10.0].repeat(8);
        pulp::Arch::new().dispatch(Exp2(&mut entries));
        assert_eq!(entries[..6], [0.0, 0.0, 0.0, f32::MIN_POSITIVE, 1.0, 2.0]);
        assert!(entries[6].is_nan());
        assert_eq!(entries[7], 1024.0);
        let mut entries =
            [f64::NEG_INFINITY, -1e300, -1022.5, -1022.0, 0.0, 1.0, f64::NAN, 10.0].repeat(8);
        pulp::Arch::new().dispatch(Exp2(&mut entries));
        assert_eq!(entries[..6], [0.0, 0.0, 0.0, f64::MIN_POSITIVE, 1.0, 2.0]);
        assert!(entries[6].is_nan());
        assert_eq!(entries[7], 1024.0);
    }
}

//! What a residual of eps nats bounds (arXiv 2609.00865; Pinsker's inequality as in Tsybakov,
//! *Introduction to Nonparametric Estimation*, 2009). A residual that rounding made negative counts
//! as 0; one that is not known bounds nothing and gives NaN.

/// The largest total variation that a KL divergence of `eps` nats allows: `sqrt(eps / 2)`, and
/// never above 1.
pub fn pinsker(eps: f64) -> f64 {
    if eps.is_nan() { f64::NAN } else { (eps.max(0.0) / 2.0).sqrt().min(1.0) }
}

/// The largest `|L_SDCC - L_exact - lambda eps|` at a term whose advantages are within `a_max` of
/// 0: `a_max sqrt(2 eps)`.
///
/// `a_max` is at least 0; of any other, and of a residual that is NaN, the bound is NaN.
pub fn loss_bound(eps: f64, a_max: f64) -> f64 {
    scaled(a_max, if eps.is_nan() { eps } else { (2.0 * eps.max(0.0)).sqrt() })
}

/// The largest L1 distance of two logit-space policy gradients at such a term:
/// `6 a_max sqrt(eps / 2)`.
///
/// `a_max` is at least 0; of any other, and of a residual that is NaN, the bound is NaN.
pub fn gradient_bound(eps: f64, a_max: f64) -> f64 {
    scaled(a_max, if eps.is_nan() { eps } else { 6.0 * (eps.max(0.0) / 2.0).sqrt() })
}

/// What advantages within `a_max` of 0 make of a bound for those within 1.
pub(super) fn scaled(a_max: f64, unit: f64) -> f64 {
    match a_max >= 0.0 {
        true => a_max * unit,
        false => f64::NAN,
    }
}

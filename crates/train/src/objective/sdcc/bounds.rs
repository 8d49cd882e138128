//! What a residual of eps nats bounds (arXiv 2609.00865; Pinsker's inequality as in Tsybakov, *Introduction to Nonparametric
//! Estimation*, 2009).

/// The largest total variation that a KL divergence of `eps` nats allows: `sqrt(eps / 2)`, and never above 1.
///
/// A KL that rounding made negative counts as 0.
pub fn pinsker(eps: f64) -> f64 {
    if eps.is_nan() { f64::NAN } else { (eps.max(0.0) / 2.0).sqrt().min(1.0) }
}

/// The largest `|L_SDCC - L_exact - lambda eps|` at a term whose advantages are within `a_max` of 0: `a_max sqrt(2 eps)`.
pub fn loss_bound(eps: f64, a_max: f64) -> f64 {
    a_max * (2.0 * eps.max(0.0)).sqrt()
}

/// The largest L1 distance of two logit-space policy gradients at such a term: `6 a_max sqrt(eps / 2)`.
pub fn gradient_bound(eps: f64, a_max: f64) -> f64 {
    6.0 * a_max * (eps.max(0.0) / 2.0).sqrt()
}

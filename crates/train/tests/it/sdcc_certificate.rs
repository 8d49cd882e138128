//! Contract: the certificate of SDCC adds up by junction and says what is not trained; total
//! variation, loss and gradient stay within the bounds that the KL gives, and what is not known
//! bounds nothing.

use crate::fixtures::{
    near::{FEW, FORMULA, assert_near},
    table::{Table, log_softmax, noise},
    trees::{GROUP, read},
};
use pleach_layout::Layouts;
use pleach_train::objective::{Residual, certify, gradient_bound, loss_bound, pinsker, residuals};

#[test]
fn the_certificate_adds_up_by_junction_and_tells_what_is_not_trained() {
    let tree = read(GROUP);
    let layouts = Layouts::new(&tree).unwrap();
    let model = Table::seeded(8);
    let residuals = residuals(&model, &model, &layouts).unwrap();
    let certificate = certify(&model, &model, &layouts).unwrap();
    let all = certificate.all;
    assert_eq!((all.coverage.sampled, all.coverage.supervised, all.coverage.diverging), (7, 7, 3));
    assert_eq!((all.coverage.untrained(), all.coverage.fraction()), (0, 1.0));
    assert_eq!(
        certificate.junctions.iter().map(|one| one.junction).collect::<Vec<_>>(),
        [Some(2), None]
    );
    assert_eq!(certificate.junctions[0].coverage.diverging, 3);
    assert_eq!(certificate.junctions[1].kl_sum, 0.0);
    let sum: f64 = residuals.iter().map(|residual| residual.kl).sum();
    assert_near(all.kl_sum, sum, FEW, "sum");
    assert!(sum > 0.0);
    assert!(
        all.total_variation_max <= all.pinsker_max && all.total_variation_mean <= all.pinsker_mean
    );
    for a_max in [0.0, 1.0, 2.5] {
        let sum = |of: fn(&Residual, f64) -> f64| {
            residuals.iter().map(|residual| of(residual, a_max)).sum::<f64>()
        };
        for junction in [&all, &certificate.junctions[0]] {
            assert_near(
                junction.loss_bound(a_max),
                sum(Residual::loss_bound),
                FORMULA,
                "bound of the loss",
            );
            assert_near(
                junction.gradient_bound(a_max),
                sum(Residual::gradient_bound),
                FORMULA,
                "bound of the gradient",
            );
        }
        assert_eq!(certificate.junctions[1].loss_bound(a_max), 0.0);
    }
    let largest =
        residuals.iter().fold(0.0, |max: f64, residual| max.max(residual.loss_bound(1.0)));
    assert_eq!(all.loss_bound_max, largest);
    assert_near(all.gradient_bound_max, 3.0 * largest, FEW, "6 sqrt(eps / 2) is 3 sqrt(2 eps)");
    assert!(all.loss_bound(-1.0).is_nan());
    let folded = GROUP.replace("\"tokens\":[1,2]}]", "\"tokens\":[1,2]},{\"segment\":1}]");
    let folded = read(&folded);
    let certificate = certify(&model, &model, &Layouts::new(&folded).unwrap()).unwrap();
    assert_eq!((certificate.all.coverage.sampled, certificate.all.coverage.untrained()), (7, 3));
}

#[test]
fn the_bounds_hold_for_random_distributions_and_advantages() {
    for seed in 0..200 {
        let scale = 0.05 + seed as f64 / 50.0;
        let of =
            |seed, scale: f64| noise(seed, 5).iter().map(|value| scale * value).collect::<Vec<_>>();
        let (p, q) = (log_softmax(&of(2 * seed + 1, scale)), log_softmax(&of(2 * seed + 2, scale)));
        let advantages = of(seed + 1000, 2.0);
        let (p, q): (Vec<f64>, Vec<f64>) =
            (p.iter().map(|x| x.exp()).collect(), q.iter().map(|x| x.exp()).collect());
        let eps: f64 = p.iter().zip(&q).map(|(p, q)| p * (p / q).ln()).sum();
        let total_variation = 0.5 * p.iter().zip(&q).map(|(p, q)| (p - q).abs()).sum::<f64>();
        assert!(total_variation <= pinsker(eps), "{total_variation} {eps}");
        let value = |p: &[f64]| p.iter().zip(&advantages).map(|(p, a)| p * a).sum::<f64>();
        assert!((value(&p) - value(&q)).abs() <= loss_bound(eps, 2.0));
        let gradient = |p: &[f64]| {
            p.iter().zip(&advantages).map(|(p_y, a)| p_y * (a - value(p))).collect::<Vec<_>>()
        };
        let distance: f64 = gradient(&p).iter().zip(gradient(&q)).map(|(a, b)| (a - b).abs()).sum();
        assert!(distance <= gradient_bound(eps, 2.0));
    }
    assert_eq!((pinsker(0.0), pinsker(-1e-17), pinsker(8.0)), (0.0, 0.0, 1.0));
    assert!(pinsker(f64::NAN).is_nan());
    for bound in [loss_bound, gradient_bound] {
        assert!(
            bound(f64::NAN, 1.0).is_nan()
                && bound(0.1, -1.0).is_nan()
                && bound(0.1, f64::NAN).is_nan()
        );
        assert_eq!((bound(-1e-17, 1.0), bound(0.1, 0.0)), (0.0, 0.0));
    }
}

//! Contract: every divergence is its textbook sum, whatever the chunk, with the gradient that
//! differences give; top-k with a tail and sampled tokens are what they claim to be; -inf on either
//! side is a number, a documented zero or an error, and never NaN.

use crate::fixtures::{
    near::{self, FEW, FORMULA, assert_all_near, assert_near},
    pairs::{Two, two},
    table::{
        BANNED, Banning, Table, VOCABULARY, assert_gradient, device, gradient, log_softmax, noise,
        numbers, rows_logp, scalar,
    },
};
use burn::tensor::{DType, Tensor, TensorData};
use pleach_train::{
    CausalModel, ObjectiveError, TrainError,
    objective::{
        Divergence, DivergenceConfig, DivergenceKind, Pairs, Reduction, RowDivergence, Support,
    },
};

const KINDS: [DivergenceKind; 4] = [
    DivergenceKind::ForwardKl,
    DivergenceKind::ReverseKl,
    DivergenceKind::JensenShannon(0.5),
    DivergenceKind::JensenShannon(0.2),
];
const NONE: f64 = f64::NEG_INFINITY;

/// A sum over tokens, straight from the definition.
fn naive(kind: DivergenceKind, p: &[f64], q: &[f64]) -> f64 {
    let kl = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| if *a == 0.0 { 0.0 } else { a * (a / b).ln() }).sum()
    };
    match kind {
        DivergenceKind::ForwardKl => kl(p, q),
        DivergenceKind::ReverseKl => kl(q, p),
        DivergenceKind::JensenShannon(beta) => {
            let m: Vec<f64> = p.iter().zip(q).map(|(p, q)| beta * p + (1.0 - beta) * q).collect();
            beta * kl(p, &m) + (1.0 - beta) * kl(q, &m)
        }
    }
}

fn exp(logp: &[f64]) -> Vec<f64> {
    logp.iter().map(|logp| logp.exp()).collect()
}

fn logits(values: &[f64], rows: usize) -> Tensor<2> {
    let data = TensorData::new(values.to_vec(), [rows, values.len() / rows]);
    Tensor::from_data(data, (&device(), DType::F64)).require_grad()
}

fn rows(divergence: &Divergence, p: &[f64], q: &[f64], targets: &[u32]) -> RowDivergence {
    divergence.rows(logits(p, targets.len()), logits(q, targets.len()), targets).unwrap()
}

fn flat(tensor: Tensor<2>) -> Vec<f64> {
    numbers(&tensor.flatten::<1>(0, 1))
}

fn forward(config: &DivergenceConfig, student: &Table, teacher: &Table, two: &Two) -> Tensor<1> {
    let sides = (
        (student, student.hidden(&two.student).unwrap()),
        (teacher, teacher.hidden(&two.teacher).unwrap()),
    );
    config.init().forward_hidden(sides.0, sides.1, &two.pairs).unwrap().loss
}

#[test]
fn each_kind_is_its_definition_over_the_whole_vocabulary_and_so_is_the_total_variation() {
    for (seed, kind) in
        (0..).zip(KINDS).flat_map(|(at, kind)| (0..20).map(move |seed| (100 * at + seed, kind)))
    {
        for temperature in [1.0, 0.7, 3.0] {
            let (p, q) = (noise(seed + 1, 6), noise(seed + 51, 6));
            let found = rows(
                &DivergenceConfig::new().with_kind(kind).with_temperature(temperature).init(),
                &p,
                &q,
                &[0],
            );
            let of = |logits: &[f64]| {
                exp(&log_softmax(&logits.iter().map(|x| x / temperature).collect::<Vec<_>>()))
            };
            let (p, q) = (of(&p), of(&q));
            let context = format!("{kind:?} {temperature}");
            assert_near(flat(found.divergence_k1)[0], naive(kind, &p, &q), FEW, &context);
            let expected = 0.5 * p.iter().zip(&q).map(|(p, q)| (p - q).abs()).sum::<f64>();
            assert_near(flat(found.total_variation_k1.unwrap())[0], expected, FEW, &context);
        }
    }
}

#[test]
fn the_gradient_of_forward_kl_to_the_students_logits_is_q_minus_p_and_0_to_the_teachers() {
    let (p, q) = (noise(1, 6), noise(2, 6));
    let (teacher, student) = (logits(&p, 1), logits(&q, 1));
    let found =
        DivergenceConfig::new().init().rows(teacher.clone(), student.clone(), &[0]).unwrap();
    let gradients = found.divergence_k1.sum().backward();
    assert!(
        teacher
            .grad(&gradients)
            .is_none_or(|gradient| flat(gradient).iter().all(|&value| value == 0.0))
    );
    let (p, q) = (exp(&log_softmax(&p)), exp(&log_softmax(&q)));
    let expected: Vec<f64> = p.iter().zip(&q).map(|(p, q)| q - p).collect();
    assert_all_near(&flat(student.grad(&gradients).unwrap()), &expected, FEW, "q - p");
}

#[test]
fn every_chunk_gives_the_weighted_sum_and_the_gradient_of_differences() {
    let mut two = two();
    two.pairs.weights = vec![1.0, 0.5, 0.0, 2.0];
    let (student, teacher) = (Table::seeded(1), Table::seeded(2));
    let (q, p) = (rows_logp(&student, &two.student), rows_logp(&teacher, &two.teacher));
    for kind in KINDS {
        for chunk in [1, 3, 100] {
            let config =
                DivergenceConfig::new().with_kind(kind).with_chunk(chunk).with_temperature(1.0);
            let pairs = two.pairs.students.iter().zip(&two.pairs.teachers).zip(&two.pairs.weights);
            let expected: f64 = pairs
                .map(|((&s, &t), w)| w * naive(kind, &exp(&p[t as usize]), &exp(&q[s as usize])))
                .sum();
            let found = scalar(&forward(&config, &student, &teacher, &two));
            assert_near(found, expected, FORMULA, format_args!("{kind:?} {chunk}"));
        }
        for support in [Support::Vocabulary, Support::TopK(2), Support::SampledToken] {
            let config = DivergenceConfig::new()
                .with_kind(kind)
                .with_chunk(3)
                .with_support(support)
                .with_temperature(0.8);
            assert_gradient(&format!("{kind:?} {support:?}"), &student, |table| {
                forward(&config, table, &teacher, &two)
            });
        }
        let mean = DivergenceConfig::new().with_kind(kind).with_reduction(Reduction::WeightedMean);
        let sum = DivergenceConfig::new().with_kind(kind);
        let ratio = scalar(&forward(&sum, &student, &teacher, &two))
            / scalar(&forward(&mean, &student, &teacher, &two));
        assert_near(ratio, 3.5, FORMULA, "the sum of the weights");
    }
}

#[test]
fn top_k_is_the_divergence_of_the_teachers_likeliest_tokens_and_one_bucket_of_the_others() {
    for kind in KINDS {
        for top in (1..=VOCABULARY + 1).chain([usize::MAX]) {
            let (p, q) = (noise(7, VOCABULARY), noise(8, VOCABULARY));
            let config = DivergenceConfig::new().with_kind(kind).with_support(Support::TopK(top));
            let found = rows(&config.init(), &p, &q, &[0]);
            let (p, q) = (exp(&log_softmax(&p)), exp(&log_softmax(&q)));
            let mut order: Vec<usize> = (0..VOCABULARY).collect();
            order.sort_by(|&a, &b| p[b].total_cmp(&p[a]));
            let merged = |x: &[f64]| {
                let kept = order.iter().take(top).map(|&at| x[at]);
                kept.chain([order.iter().skip(top).map(|&at| x[at]).sum()]).collect::<Vec<f64>>()
            };
            let expected = naive(kind, &merged(&p), &merged(&q));
            let value = flat(found.divergence_k1)[0];
            assert_near(value, expected, FEW, format_args!("{kind:?} {top}"));
            assert!(value <= naive(kind, &p, &q) + FEW, "merging tokens cannot add divergence");
        }
    }
}

#[test]
fn sampled_tokens_estimate_without_bias_and_never_below_0() {
    for kind in KINDS {
        let (p, q) = (noise(9, VOCABULARY), noise(10, VOCABULARY));
        let config =
            DivergenceConfig::new().with_kind(kind).with_support(Support::SampledToken).init();
        let targets: Vec<u32> = (0..VOCABULARY as u32).collect();
        let repeat = |row: &[f64]| row.repeat(VOCABULARY);
        let found = flat(rows(&config, &repeat(&p), &repeat(&q), &targets).divergence_k1);
        let (p, q) = (exp(&log_softmax(&p)), exp(&log_softmax(&q)));
        assert!(found.iter().all(|&value| value >= -near::roundings(1)), "{found:?}");
        let mean: f64 = found.iter().zip(&p).map(|(value, p)| value * p).sum();
        assert_near(mean, naive(kind, &p, &q), FORMULA, format_args!("{kind:?}"));
    }
}

#[test]
fn equal_sides_diverge_nowhere() {
    let p = noise(3, 6);
    for kind in KINDS {
        for support in [Support::Vocabulary, Support::TopK(2), Support::SampledToken] {
            let found = rows(
                &DivergenceConfig::new().with_kind(kind).with_support(support).init(),
                &p,
                &p,
                &[1],
            );
            assert_near(
                flat(found.divergence_k1)[0],
                0.0,
                near::roundings(1),
                format_args!("{kind:?} {support:?}"),
            );
        }
    }
}

#[test]
fn a_token_that_the_averaging_side_rules_out_counts_nothing_in_value_and_gradient() {
    let both = [0.3, NONE, 1.0, NONE];
    let one = [0.1, 0.2, 0.5, NONE];
    for (kind, p, q) in [
        (DivergenceKind::ForwardKl, both, one),
        (DivergenceKind::ReverseKl, one, both),
        (DivergenceKind::JensenShannon(0.3), both, one),
        (DivergenceKind::JensenShannon(0.3), one, both),
    ] {
        for support in [Support::Vocabulary, Support::TopK(1), Support::TopK(2)] {
            let student = logits(&q, 1);
            let config = DivergenceConfig::new().with_kind(kind).with_support(support).init();
            let found = config.rows(logits(&p, 1), student.clone(), &[0]).unwrap().divergence_k1;
            let value = flat(found.clone())[0];
            if support == Support::Vocabulary {
                let expected = naive(kind, &exp(&log_softmax(&p)), &exp(&log_softmax(&q)));
                assert_near(value, expected, FEW, format_args!("{kind:?}"));
            }
            assert!(value.is_finite() && value >= 0.0, "{kind:?} {support:?}");
            let gradient = flat(student.grad(&found.sum().backward()).unwrap());
            assert!(
                gradient.iter().all(|value| value.is_finite()),
                "{kind:?} {support:?}: {gradient:?}"
            );
        }
    }
}

#[test]
fn a_sampled_token_that_both_sides_rule_out_is_no_divergence_and_has_no_gradient() {
    for kind in KINDS {
        let config =
            DivergenceConfig::new().with_kind(kind).with_support(Support::SampledToken).init();
        let student = logits(&[0.1, NONE, 0.4], 1);
        let found = config
            .rows(logits(&[0.3, NONE, -0.2], 1), student.clone(), &[1])
            .unwrap()
            .divergence_k1;
        assert_near(flat(found.clone())[0], 0.0, near::roundings(1), format_args!("{kind:?}"));
        let gradient = flat(student.grad(&found.sum().backward()).unwrap());
        assert!(gradient.iter().all(|&value| value == 0.0), "{kind:?}: {gradient:?}");
    }
}

#[test]
fn a_student_that_rules_out_what_its_teacher_may_say_is_an_error_and_weight_0_lifts_it() {
    let mut two = two();
    let (student, teacher) = (Banning { table: Table::seeded(1) }, Table::seeded(2));
    let attempt = |two: &Two, kind, support| {
        let sides = (
            (&student, student.hidden(&two.student).unwrap()),
            (&teacher, teacher.hidden(&two.teacher).unwrap()),
        );
        let config = DivergenceConfig::new().with_kind(kind).with_support(support).init();
        config.forward_hidden(sides.0, sides.1, &two.pairs).map(|output| output.loss)
    };
    let refused = attempt(&two, DivergenceKind::ForwardKl, Support::Vocabulary).unwrap_err();
    assert_eq!(
        refused,
        TrainError::Objective(ObjectiveError::NotFinite { what: "divergence", terms: 4 })
    );
    let rows = rows_logp(&teacher, &two.teacher);
    let among =
        |row: &[f64], top| row.iter().filter(|&&logp| logp > row[BANNED as usize]).count() < top;
    let named = |top| two.pairs.teachers.iter().any(|&row| among(&rows[row as usize], top));
    let tops: Vec<usize> = (1..VOCABULARY).collect();
    assert!(
        tops.iter().any(|&top| named(top)) && tops.iter().any(|&top| !named(top)),
        "both happen"
    );
    assert!(two.pairs.targets.contains(&BANNED));
    let supports =
        tops.into_iter().map(Support::TopK).chain([Support::Vocabulary, Support::SampledToken]);
    for (kind, support) in supports.flat_map(|support| KINDS.map(|kind| (kind, support))) {
        let refused = match (kind, support) {
            (DivergenceKind::ForwardKl, Support::TopK(top)) => named(top),
            (DivergenceKind::ForwardKl, Support::Vocabulary | Support::SampledToken) => true,
            (DivergenceKind::ReverseKl | DivergenceKind::JensenShannon(_), _) => false,
        };
        let found = attempt(&two, kind, support);
        assert_eq!(found.is_err(), refused, "{kind:?} {support:?}");
        match found {
            Ok(loss) => {
                let values = gradient(&student.table, &loss);
                assert!(
                    scalar(&loss).is_finite() && values.iter().all(|value| value.is_finite()),
                    "{kind:?} {support:?}"
                );
            }
            Err(error) => assert!(
                matches!(error, TrainError::Objective(ObjectiveError::NotFinite { .. })),
                "{error}"
            ),
        }
    }
    two.pairs.weights = vec![0.0; 4];
    let loss = attempt(&two, DivergenceKind::ForwardKl, Support::Vocabulary).unwrap();
    assert_eq!(scalar(&loss), 0.0);
    assert!(gradient(&student.table, &loss).iter().all(|&value| value == 0.0));
}

#[test]
fn a_ratio_that_would_overflow_is_cut_off() {
    for kind in KINDS {
        let config =
            DivergenceConfig::new().with_kind(kind).with_support(Support::SampledToken).init();
        let student = logits(&[900.0, 0.0], 1);
        let found =
            config.rows(logits(&[-900.0, 0.0], 1), student.clone(), &[0]).unwrap().divergence_k1;
        assert!(flat(found.clone())[0].is_finite(), "{kind:?}");
        let gradient = flat(student.grad(&found.sum().backward()).unwrap());
        assert!(gradient.iter().all(|value| value.is_finite()), "{kind:?}: {gradient:?}");
    }
}

#[test]
fn no_pairs_are_a_loss_of_0_with_a_gradient_of_0() {
    let two = Two { pairs: Pairs::default(), ..two() };
    let student = Table::seeded(1);
    for support in [Support::Vocabulary, Support::SampledToken] {
        let config =
            DivergenceConfig::new().with_support(support).with_reduction(Reduction::WeightedMean);
        let loss = forward(&config, &student, &Table::seeded(2), &two);
        assert_eq!(scalar(&loss), 0.0);
        assert!(gradient(&student, &loss).iter().all(|&value| value == 0.0));
    }
}

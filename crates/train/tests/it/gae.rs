//! Contract: advantages over the concatenated timeline are the sum that defines them and do not
//! depend on how a rollout was cut; segment-local and corrected ones are off by what was published;
//! lambda by length comes out for every reading of the length.

use crate::fixtures::near::{FORMULA, assert_all_near, assert_near};
use pleach_train::{
    ObjectiveError, TrainError,
    advantage::{GaeConfig, GaeOutput, LambdaConfig, LengthReading, Timing, gae},
};

const BOUNDS: [usize; 4] = [0, 6, 11, 18];
const VALUES: [f64; 18] = [
    0.400185, 0.444812, 0.358879, 0.266411, 0.331799, 0.251253, 0.409022, 0.601032, 0.326169,
    0.306929, 0.473476, 0.453533, 0.415812, 0.26043, 0.395612, 0.504295, 0.198368, 0.331358,
];
#[allow(clippy::approx_constant, reason = "an advantage that looks like pi over 6")]
const CONCATENATED: [f64; 18] = [
    0.3463, 0.311, 0.4092, 0.5172, 0.4658, 0.5632, 0.418, 0.233, 0.5235, 0.5596, 0.4052, 0.4383,
    0.4907, 0.6661, 0.5473, 0.4522, 0.7816, 0.6686,
];
const CORRECTED: [f64; 18] = [
    0.3508, 0.3297, 0.4014, 0.48, 0.448, 0.5195, 0.4245, 0.2777, 0.5153, 0.5472, 0.4254, 0.4383,
    0.4907, 0.6661, 0.5473, 0.4522, 0.7816, 0.6686,
];

fn run(timing: Timing, values: &[f64], reward: f64, bounds: &[usize]) -> GaeOutput {
    gae(&GaeConfig::new().with_timing(timing), values, reward, bounds).unwrap()
}

fn rounded(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| (value * 1e4).round() / 1e4).collect()
}

/// Every sum from the definition: discounted errors of all later tokens of the timeline.
fn naive(values: &[f64], reward: f64, gamma: f64, lambda: f64) -> Vec<f64> {
    let error = |at: usize| {
        let last = at + 1 == values.len();
        let ahead = if last { 0.0 } else { values[at + 1] };
        (if last { reward } else { 0.0 }) + gamma * ahead - values[at]
    };
    let sum = |at: usize| {
        (at..values.len())
            .map(|later| (gamma * lambda).powi((later - at) as i32) * error(later))
            .sum()
    };
    (0..values.len()).map(sum).collect()
}

#[test]
fn the_published_advantages_come_out() {
    let of = |timing| run(timing, &VALUES, 1.0, &BOUNDS).advantages;
    assert_eq!(rounded(&of(Timing::Concatenated)), CONCATENATED);
    assert_eq!(rounded(&of(Timing::Corrected)), CORRECTED);
    assert_all_near(
        &of(Timing::Concatenated),
        &naive(&VALUES, 1.0, 1.0, 0.97),
        FORMULA,
        "definition",
    );
}

#[test]
fn an_uncorrected_segment_credits_its_first_token_1_441_times() {
    let coefficient = |timing| run(timing, &[0.0; 18], 1.0, &BOUNDS).advantages[0];
    let ratio = coefficient(Timing::SegmentLocal) / coefficient(Timing::Concatenated);
    // Half a unit of the last published digit.
    assert!((ratio - 1.441).abs() < 5e-4, "{ratio}");
}

#[test]
fn the_correction_is_exact_in_the_reward_and_not_in_the_values_before_the_last_segment() {
    let terms = |timing, reward| run(timing, &VALUES, reward, &BOUNDS).advantages;
    for at in 0..18 {
        let reward = |timing| terms(timing, 1.0)[at] - terms(timing, 0.0)[at];
        assert_near(
            reward(Timing::Corrected),
            reward(Timing::Concatenated),
            FORMULA,
            format_args!("token {at}"),
        );
    }
    let (exact, corrected) = (terms(Timing::Concatenated, 0.0), terms(Timing::Corrected, 0.0));
    let differences: Vec<f64> = exact.iter().zip(&corrected).map(|(a, b)| (a - b).abs()).collect();
    assert!(
        differences[11..].iter().all(|&difference| difference == 0.0),
        "the last segment is exact"
    );
    let largest = differences.iter().fold(0.0, |max: f64, value| max.max(*value));
    let relative =
        differences.iter().zip(&exact).fold(0.0, |max: f64, (d, exact)| max.max(d / exact.abs()));
    assert_eq!(rounded(&[largest]), [0.0447]);
    // Half a unit of the last published digit, 33.5 %.
    assert!((relative - 0.335).abs() < 5e-4, "{relative}");
}

#[test]
fn with_values_of_0_the_correction_equals_the_timeline_for_every_cut() {
    for first in 0..=18 {
        for second in first..=18 {
            let bounds = [0, first, second, 18];
            let of = |timing| run(timing, &[0.0; 18], 1.0, &bounds).advantages;
            assert_all_near(
                &of(Timing::Corrected),
                &of(Timing::Concatenated),
                FORMULA,
                format_args!("{bounds:?}"),
            );
        }
    }
}

#[test]
fn how_a_rollout_was_cut_changes_no_bit_of_the_timelines_advantages() {
    let whole = run(Timing::Concatenated, &VALUES, 1.0, &[0, 18]).advantages;
    for bounds in [&BOUNDS[..], &[0, 1, 2, 3, 18], &[0, 0, 9, 9, 18, 18]] {
        assert_eq!(run(Timing::Concatenated, &VALUES, 1.0, bounds).advantages, whole);
    }
}

#[test]
fn the_weight_left_to_the_first_segment_follows_the_reading_of_the_length() {
    for (length, expected) in [(10_240.0, 0.0534), (32_000.0, 0.3916), (64_000.0, 0.6258)] {
        let config =
            LambdaConfig::LengthAdaptive { alpha: 1.5, length: LengthReading::Given(length) };
        let lambda = config.of_segments(&[1, 1]).unwrap();
        assert_eq!(lambda[0], 1.0 - 1.0 / (1.5 * length));
        assert_eq!(rounded(&[lambda[0].powi(45_000)]), [expected]);
    }
}

#[test]
fn each_reading_of_the_length_gives_its_own_lambda_and_is_reported_with_the_tokens_after() {
    let run = |length| {
        let lambda = LambdaConfig::LengthAdaptive { alpha: 1.5, length };
        gae(&GaeConfig::new().with_lambda(lambda), &VALUES, 1.0, &BOUNDS).unwrap()
    };
    assert_eq!(run(LengthReading::Rollout).lambdas, [1.0 - 1.0 / 27.0; 3]);
    assert_eq!(
        run(LengthReading::Segment).lambdas,
        [1.0 - 1.0 / 9.0, 1.0 - 1.0 / 7.5, 1.0 - 1.0 / 10.5]
    );
    assert_eq!(run(LengthReading::Segment).after, [12, 7, 0]);
    let short = LambdaConfig::LengthAdaptive { alpha: 0.5, length: LengthReading::Segment };
    assert_eq!(short.of_segments(&[0, 1, 2, 4]).unwrap(), [0.0, 0.0, 0.0, 0.5]);
}

#[test]
fn returns_are_advantages_plus_values() {
    let found = run(Timing::Concatenated, &VALUES, 1.0, &BOUNDS);
    for ((advantage, value), returned) in found.advantages.iter().zip(VALUES).zip(&found.returns) {
        assert_eq!(advantage + value, *returned);
    }
}

#[test]
fn discounts_are_those_of_the_definition() {
    for (gamma, lambda) in [(0.9, 0.5), (1.0, 1.0), (0.0, 0.5), (0.99, 0.0)] {
        let config = GaeConfig::new().with_gamma(gamma).with_lambda(LambdaConfig::Fixed(lambda));
        let found = gae(&config, &VALUES, -2.0, &BOUNDS).unwrap().advantages;
        assert_all_near(
            &found,
            &naive(&VALUES, -2.0, gamma, lambda),
            FORMULA,
            format_args!("gamma {gamma}, lambda {lambda}"),
        );
    }
}

#[test]
fn an_empty_rollout_has_no_advantages() {
    for timing in [Timing::Concatenated, Timing::SegmentLocal, Timing::Corrected] {
        assert_eq!(run(timing, &[], 1.0, &[0]), GaeOutput::default());
        assert!(run(timing, &[], 1.0, &[0, 0]).advantages.is_empty());
    }
}

#[test]
fn finite_numbers_whose_sums_overflow_are_refused() {
    for timing in [Timing::Concatenated, Timing::SegmentLocal, Timing::Corrected] {
        let found = gae(&GaeConfig::new().with_timing(timing), &[-1e308, 1e308, 0.0], 1.0, &[0, 3])
            .unwrap_err();
        let expected = ObjectiveError::Overflow { what: "the advantages of a rollout" };
        assert_eq!(found, TrainError::Objective(expected), "{timing:?}");
    }
}

#[test]
fn the_correction_is_refused_under_a_lambda_by_segment() {
    let by = |length| LambdaConfig::LengthAdaptive { alpha: 1.5, length };
    let run = |timing, length| {
        gae(&GaeConfig::new().with_timing(timing).with_lambda(by(length)), &VALUES, 1.0, &BOUNDS)
    };
    assert!(matches!(
        run(Timing::Corrected, LengthReading::Segment),
        Err(TrainError::Unsupported { .. })
    ));
    assert!(run(Timing::Corrected, LengthReading::Rollout).is_ok());
    assert!(run(Timing::Concatenated, LengthReading::Segment).is_ok());
}

#[test]
fn bounds_and_numbers_that_mean_nothing_are_refused() {
    let refuse = |config: GaeConfig, values: &[f64], reward, bounds: &[usize]| {
        gae(&config, values, reward, bounds).unwrap_err()
    };
    for bounds in [&[][..], &[0], &[0, 1], &[1, 2], &[0, 2, 1, 2], &[0, 3]] {
        let found = refuse(GaeConfig::new(), &[0.1, 0.2], 1.0, bounds);
        assert!(
            matches!(&found, TrainError::Unsupported { what } if what.contains("tile")),
            "{bounds:?}"
        );
    }
    assert!(matches!(
        refuse(GaeConfig::new(), &[f64::NAN], 1.0, &[0, 1]),
        TrainError::Objective(ObjectiveError::Setting { .. })
    ));
    assert!(matches!(
        refuse(GaeConfig::new(), &[0.0], f64::INFINITY, &[0, 1]),
        TrainError::Objective(ObjectiveError::Setting { .. })
    ));
    assert!(matches!(
        refuse(GaeConfig::new().with_gamma(1.1), &[0.0], 1.0, &[0, 1]),
        TrainError::Objective(ObjectiveError::Setting { .. })
    ));
    for lambda in [
        LambdaConfig::Fixed(-0.1),
        LambdaConfig::LengthAdaptive { alpha: 0.0, length: LengthReading::Rollout },
        LambdaConfig::LengthAdaptive { alpha: 1.5, length: LengthReading::Given(0.0) },
    ] {
        let found = refuse(GaeConfig::new().with_lambda(lambda), &[0.0], 1.0, &[0, 1]);
        assert!(
            matches!(found, TrainError::Objective(ObjectiveError::Setting { .. })),
            "{lambda:?}"
        );
    }
}

//! Contract: the advantage of a rollout is that of its group whatever it was cut into; every
//! published figure comes out; groups of one, of equal rewards and of masked rollouts give exactly
//! 0 where there is nothing to compare, and nothing is ever NaN.

use crate::fixtures::{
    causal,
    near::{FORMULA, assert_all_near},
    table,
};
use pleach_train::{
    Batch, ObjectiveError, TrainError,
    advantage::{
        AdvantageConfig, Baseline, Overlong, RolloutOutcome, Scale, group_advantages,
        pad_sequences, segment_mean_weights, token_level_weights,
    },
    objective::{NllConfig, Reduction},
};

fn rollouts(rewards: &[f64], segments: &[usize]) -> Vec<RolloutOutcome> {
    let of = |(&reward, &segments): (&f64, &usize)| RolloutOutcome {
        group: 0,
        reward,
        segments,
        overlong: false,
    };
    rewards.iter().zip(segments).map(of).collect()
}

fn advantages(config: &AdvantageConfig, rollouts: &[RolloutOutcome]) -> Vec<f64> {
    group_advantages(config, rollouts).unwrap().iter().map(|rollout| rollout.advantage).collect()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    assert_all_near(found, expected, FORMULA, "advantages");
}

fn config(baseline: Baseline, scale: Scale) -> AdvantageConfig {
    AdvantageConfig::new().with_baseline(baseline).with_scale(scale)
}

#[test]
fn a_rollouts_advantage_does_not_depend_on_its_segments() {
    for segments in [[1, 4, 1, 4], [1, 1, 4, 4], [0, 0, 9, 1]] {
        let found =
            advantages(&AdvantageConfig::new(), &rollouts(&[0.0, 0.0, 1.0, 1.0], &segments));
        assert_eq!(found, [-1.0, -1.0, 1.0, 1.0]);
    }
}

#[test]
fn the_trajectory_groups_baseline_is_shifted_by_the_segments() {
    let trajectory = config(Baseline::TrajectoryGroup, Scale::Deviation);
    let uneven = rollouts(&[0.0, 0.0, 1.0, 1.0], &[1, 1, 4, 4]);
    close(&advantages(&trajectory, &uneven), &[-2.0, -2.0, 0.5, 0.5]);
    let shift = |baseline| advantages(&config(baseline, Scale::One), &uneven)[0];
    close(&[shift(Baseline::RolloutGroup) - shift(Baseline::TrajectoryGroup)], &[0.3]);
}

#[test]
fn a_baseline_is_not_weighted_by_how_often_a_rollout_was_cut() {
    let cut = rollouts(&[1.0, 0.0], &[3, 1]);
    let broadcast = |baseline| -> Vec<f64> {
        let found = advantages(&config(baseline, Scale::One), &cut);
        found
            .iter()
            .zip(&cut)
            .flat_map(|(advantage, rollout)| vec![*advantage; rollout.segments])
            .collect()
    };
    close(&broadcast(Baseline::RolloutGroup), &[0.5, 0.5, 0.5, -0.5]);
    close(&broadcast(Baseline::TrajectoryGroup), &[0.25, 0.25, 0.25, -0.75]);
}

#[test]
fn token_level_shares_are_those_of_the_tokens_and_segment_means_those_of_the_cuts() {
    let tokens = [vec![900], vec![700, 200, 650, 150], vec![850], vec![600, 180, 720, 160]];
    let rounded = |shares: Vec<f64>| {
        shares.iter().map(|share| (share * 1e4).round() / 1e4).collect::<Vec<_>>()
    };
    assert_eq!(rounded(token_level_weights(&tokens)), [0.1761, 0.3327, 0.1663, 0.3249]);
    assert_eq!(rounded(segment_mean_weights(&tokens)), [0.1, 0.4, 0.1, 0.4]);
    let merged = [vec![900], vec![1700], vec![850], vec![1660]];
    assert_eq!(token_level_weights(&merged), token_level_weights(&tokens));
    assert_eq!(token_level_weights(&[vec![], vec![0]]), [0.0, 0.0]);
    assert_eq!(segment_mean_weights(&[vec![], vec![0]]), [0.0, 0.0]);
}

/// Every option by its definition, with loops.
fn naive(config: &AdvantageConfig, rollouts: &[RolloutOutcome], index: usize) -> f64 {
    let own = rollouts[index];
    let (mut values, mut others) = (Vec::new(), Vec::new());
    for (at, other) in rollouts.iter().enumerate().filter(|(_, other)| other.group == own.group) {
        let copies = if config.baseline == Baseline::TrajectoryGroup { other.segments } else { 1 };
        for _ in 0..copies {
            values.push(other.reward);
            if at != index {
                others.push(other.reward);
            }
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let baseline =
        if config.baseline == Baseline::LeaveOneOut { mean(&others) } else { mean(&values) };
    let centre = mean(&values);
    let variance = values.iter().map(|value| (value - centre) * (value - centre)).sum::<f64>()
        / values.len() as f64;
    (own.reward - baseline) / if config.scale == Scale::One { 1.0 } else { variance.sqrt() }
}

#[test]
fn every_option_is_its_definition_in_every_group() {
    let noise = table::noise(5, 24);
    let rollouts: Vec<RolloutOutcome> = (0..24)
        .map(|at| RolloutOutcome {
            group: at % 5,
            reward: noise[at],
            segments: 1 + at % 4,
            overlong: at % 7 == 0,
        })
        .collect();
    for baseline in [Baseline::RolloutGroup, Baseline::LeaveOneOut, Baseline::TrajectoryGroup] {
        for scale in [Scale::Deviation, Scale::One] {
            let config = config(baseline, scale);
            let expected: Vec<f64> =
                (0..24).map(|index| naive(&config, &rollouts, index)).collect();
            close(&advantages(&config, &rollouts), &expected);
        }
    }
    close(
        &advantages(
            &config(Baseline::LeaveOneOut, Scale::One),
            &self::rollouts(&[1.0, 0.0, 0.5], &[1; 3]),
        ),
        &[0.75, -0.75, 0.0],
    );
}

#[test]
fn where_there_is_nothing_to_compare_the_advantage_is_exactly_0() {
    for baseline in [Baseline::RolloutGroup, Baseline::LeaveOneOut, Baseline::TrajectoryGroup] {
        for scale in [Scale::Deviation, Scale::One] {
            let config = config(baseline, scale);
            assert_eq!(advantages(&config, &rollouts(&[0.3], &[2])), [0.0]);
            assert_eq!(advantages(&config, &rollouts(&[0.1, 0.1, 0.1], &[1, 2, 3])), [0.0; 3]);
            assert!(advantages(&config, &[]).is_empty());
            let tiny = advantages(&config, &rollouts(&[0.0, f64::MIN_POSITIVE], &[1, 1]));
            assert!(tiny.iter().all(|advantage| advantage.is_finite()), "{tiny:?}");
        }
    }
}

#[test]
fn an_overlong_rollout_is_masked_and_counts_in_its_group_as_configured() {
    let mut group = rollouts(&[0.0, 0.0, 1.0, 1.0], &[1; 4]);
    group[0].overlong = true;
    let of = |overlong| {
        group_advantages(&AdvantageConfig::new().with_overlong(overlong), &group).unwrap()
    };
    let trained = |overlong| of(overlong).iter().map(|rollout| rollout.trained).collect::<Vec<_>>();
    assert_eq!(trained(Overlong::Mask), [false, true, true, true]);
    assert_eq!(trained(Overlong::Exclude), [false, true, true, true]);
    assert_eq!(trained(Overlong::Keep), [true; 4]);
    let values =
        |overlong| of(overlong).iter().map(|rollout| rollout.advantage).collect::<Vec<_>>();
    assert_eq!(values(Overlong::Mask), [-1.0, -1.0, 1.0, 1.0]);
    close(&values(Overlong::Exclude), &[0.0, -(2f64.sqrt()), 0.5f64.sqrt(), 0.5f64.sqrt()]);
    group.iter_mut().for_each(|rollout| rollout.overlong = true);
    for overlong in [Overlong::Mask, Overlong::Exclude] {
        let all =
            group_advantages(&AdvantageConfig::new().with_overlong(overlong), &group).unwrap();
        assert!(all.iter().all(|rollout| !rollout.trained && rollout.advantage.is_finite()));
    }
}

#[test]
fn rewards_that_are_no_numbers_and_uncut_rollouts_in_a_trajectory_group_are_refused() {
    let found =
        group_advantages(&AdvantageConfig::new(), &rollouts(&[1.0, f64::INFINITY], &[1, 1]))
            .unwrap_err();
    assert_eq!(
        found,
        TrainError::Objective(ObjectiveError::Reward { rollout: 1, reward: f64::INFINITY })
    );
    let trajectory = config(Baseline::TrajectoryGroup, Scale::One);
    let found = group_advantages(&trajectory, &rollouts(&[1.0, 0.0], &[1, 0])).unwrap_err();
    assert!(
        matches!(&found, TrainError::Unsupported { what } if what.contains("rollout 1")),
        "{found}"
    );
}

#[test]
fn rewards_whose_sums_or_squares_overflow_are_refused_and_never_a_silent_0() {
    for baseline in [Baseline::RolloutGroup, Baseline::LeaveOneOut, Baseline::TrajectoryGroup] {
        let refuse = |rewards: &[f64]| {
            let rollouts = rollouts(rewards, &vec![1; rewards.len()]);
            group_advantages(&config(baseline, Scale::Deviation), &rollouts).unwrap_err()
        };
        let expected =
            TrainError::Objective(ObjectiveError::Overflow { what: "the advantages of a group" });
        assert_eq!(refuse(&[1e308, 1e308, 0.0]), expected, "{baseline:?}");
        assert_eq!(refuse(&[1e200, 0.0]), expected, "{baseline:?}");
    }
}

#[test]
fn padding_to_a_multiple_of_the_mini_batch_changes_no_loss_and_no_gradient() {
    let model = table::Table::seeded(1);
    let plain = vec![causal(&[1, 2, 3]), causal(&[4, 5, 6, 1])];
    let mut padded = plain.clone();
    assert_eq!(pad_sequences(&mut padded, 4), Ok(2));
    assert_eq!(pad_sequences(&mut padded, 4), Ok(0));
    assert_eq!(padded.len(), 4);
    let of = |sequences: &[pleach_layout::Sequence]| {
        let batch = Batch::new(sequences, &table::device()).unwrap();
        let nll = NllConfig::new().with_reduction(Reduction::WeightedMean).init();
        let loss = nll.forward(&model, &batch).unwrap().loss;
        (table::scalar(&loss).to_bits(), table::gradient(&model, &loss))
    };
    assert_eq!(of(&plain), of(&padded));
    assert!(matches!(
        pad_sequences(&mut padded, 0),
        Err(TrainError::Objective(ObjectiveError::Setting { .. }))
    ));
    assert_eq!(pad_sequences(&mut Vec::new(), 4), Ok(0));
}

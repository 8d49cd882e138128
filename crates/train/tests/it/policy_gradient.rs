//! Contract: the clipped surrogate, its importance weights and its KL to a reference are their
//! formulas, term by term, with the gradient of differences; masked terms, ruled-out targets and
//! ratios that overflow give documented zeros or errors, never NaN.

use crate::fixtures::{
    causal,
    near::{FEW, FORMULA, assert_all_near, assert_near},
    table::{
        BANNED, Banning, Table, assert_gradient, device, gradient, noise, numbers, rows_logp,
        scalar,
    },
};
use pleach_layout::Sequence;
use pleach_train::{
    Batch, CausalModel, ObjectiveError, TrainError,
    objective::{
        ClipConfig, MAX_LOG_RATIO, NllConfig, PolicyGradientConfig, PolicySignal, Reduction,
    },
};

fn batch() -> Batch {
    let mut sequence = causal(&[0, 1, 2, 3, 4, 5, 6, 3, 1]);
    for (term, weight) in sequence.terms.iter_mut().zip([1.0, 1.0, 0.5, 1.0, 0.0, 1.0, 2.0, 1.0]) {
        term.weight = weight;
    }
    Batch::new([&sequence], &device()).unwrap()
}

fn logp(table: &Table, batch: &Batch) -> Vec<f64> {
    let rows = rows_logp(table, batch);
    let terms = batch.terms();
    (0..terms.len())
        .map(|at| rows[terms.sources[at] as usize][terms.targets[at] as usize])
        .collect()
}

/// Ratios on both sides of both clips, for both signs of the advantage.
fn signal(table: &Table, batch: &Batch) -> PolicySignal {
    let shifts = [0.0, 0.5, -0.5, 0.1, 3.0, -0.6, 0.9, -0.05];
    let recorded =
        logp(table, batch).iter().zip(shifts).map(|(logp, shift)| logp - shift).collect();
    PolicySignal::new(vec![1.0, 0.7, 0.4, -1.3, 9.0, -0.8, -2.0, 1.1], recorded)
}

struct Naive {
    loss: f64,
    clipped: Vec<f64>,
}

/// One term after the other, from the papers.
fn naive(
    config: &PolicyGradientConfig,
    now: &[f64],
    batch: &Batch,
    signal: &PolicySignal,
) -> Naive {
    let ClipConfig { low, high, dual } = config.clip;
    let weights = &batch.terms().weights;
    let mut found = Naive { loss: 0.0, clipped: Vec::new() };
    for at in 0..now.len() {
        let a = signal.advantages[at];
        let old = signal.trainer.as_ref().map_or(signal.recorded[at], |trainer| trainer[at]);
        let ratio = (now[at] - old).exp();
        let held = ratio.clamp(1.0 - low, 1.0 + high);
        let mut surrogate = (ratio * a).min(held * a);
        if let Some(dual) = dual.filter(|_| a < 0.0) {
            surrogate = surrogate.max(dual * a);
        }
        found.clipped.push(f64::from(u8::from(surrogate != ratio * a)));
        let importance =
            config.truncation.map_or(1.0, |limit| (old - signal.recorded[at]).exp().min(limit));
        let kl = signal.reference.as_ref().map_or(0.0, |reference| {
            let d = reference[at] - now[at];
            d.exp() - d - 1.0
        });
        found.loss += weights[at] * (-importance * surrogate + config.reference_kl * kl);
    }
    if config.reduction == Reduction::WeightedMean {
        found.loss /= weights.iter().sum::<f64>();
    }
    found
}

fn configs() -> Vec<(&'static str, PolicyGradientConfig)> {
    let new = PolicyGradientConfig::new;
    vec![
        ("default", new()),
        ("sum", new().with_reduction(Reduction::Sum)),
        ("symmetric", new().with_clip(ClipConfig::new().with_high(0.2))),
        ("dual", new().with_clip(ClipConfig::new().with_dual(Some(2.0)))),
        ("open", new().with_clip(ClipConfig::open())),
        ("truncated", new().with_truncation(Some(1.2))),
        ("reference", new().with_reference_kl(0.3)),
        (
            "all",
            new()
                .with_reference_kl(0.3)
                .with_truncation(Some(1.2))
                .with_clip(ClipConfig::new().with_dual(Some(2.0))),
        ),
    ]
}

fn full_signal(table: &Table, batch: &Batch, config: &PolicyGradientConfig) -> PolicySignal {
    let mut signal = signal(table, batch);
    let near = |by: f64| {
        logp(table, batch).iter().zip(noise(3, 8)).map(|(logp, noise)| logp + by * noise).collect()
    };
    if config.truncation.is_some() {
        signal.trainer = Some(near(0.6));
    }
    if config.reference_kl > 0.0 {
        signal.reference = Some(near(0.9));
    }
    signal
}

#[test]
fn every_surrogate_is_its_formula_and_its_gradient_that_of_differences() {
    let (table, batch) = (Table::seeded(1), batch());
    for (name, config) in configs() {
        let signal = full_signal(&table, &batch, &config);
        for chunk in [1, 3, 100] {
            let output =
                config.clone().with_chunk(chunk).init().forward(&table, &batch, &signal).unwrap();
            let expected = naive(&config, &logp(&table, &batch), &batch, &signal);
            assert_near(scalar(&output.loss), expected.loss, FORMULA, name);
            let counts = batch.terms().weights.iter().map(|&weight| weight != 0.0);
            for ((found, expected), counts) in
                numbers(&output.clipped_n).iter().zip(&expected.clipped).zip(counts)
            {
                assert!(found == expected || !counts, "{name}");
            }
        }
        let config = config.with_chunk(3).init();
        assert_gradient(name, &table, |table| config.forward(table, &batch, &signal).unwrap().loss);
    }
}

#[test]
fn at_a_ratio_of_1_the_gradient_is_that_of_log_p_weighted_by_the_advantage() {
    let (table, batch) = (Table::seeded(2), batch());
    let advantages = signal(&table, &batch).advantages;
    let on_policy = PolicySignal::new(advantages.clone(), logp(&table, &batch));
    let config = PolicyGradientConfig::new().with_reduction(Reduction::Sum);
    let found = gradient(&table, &config.init().forward(&table, &batch, &on_policy).unwrap().loss);
    let mut terms = batch.terms().clone();
    terms.weights.iter_mut().zip(&advantages).for_each(|(weight, advantage)| *weight *= advantage);
    let nll = NllConfig::new()
        .init()
        .forward_hidden(&table, table.hidden(&batch).unwrap(), &terms)
        .unwrap();
    assert_all_near(&found, &gradient(&table, &nll.loss), FORMULA, "gradient");
}

#[test]
fn a_term_of_weight_0_leaves_no_trace_whatever_its_signal() {
    let (table, batch) = (Table::seeded(3), batch());
    for (name, config) in configs() {
        let signal = full_signal(&table, &batch, &config);
        let mut strange = signal.clone();
        (strange.advantages[4], strange.recorded[4]) = (f64::NAN, f64::NEG_INFINITY);
        if let Some(reference) = &mut strange.reference {
            reference[4] = f64::INFINITY;
        }
        if let Some(trainer) = &mut strange.trainer {
            trainer[4] = f64::NAN;
        }
        let of = |signal| config.init().forward(&table, &batch, signal).unwrap().loss;
        assert_eq!(scalar(&of(&signal)).to_bits(), scalar(&of(&strange)).to_bits(), "{name}");
        assert_eq!(gradient(&table, &of(&signal)), gradient(&table, &of(&strange)), "{name}");
    }
}

#[test]
fn a_batch_that_is_masked_whole_and_one_without_terms_have_a_loss_and_a_gradient_of_0() {
    let table = Table::seeded(4);
    let mut none = causal(&[1, 2, 3]);
    none.terms.clear();
    let mut masked = causal(&[1, 2, 3]);
    masked.terms.iter_mut().for_each(|term| term.weight = 0.0);
    for sequence in [none, masked] {
        let batch = Batch::new([&sequence], &device()).unwrap();
        let count = sequence.terms.len();
        let mut signal = PolicySignal::new(vec![1.0; count], vec![f64::NAN; count]);
        signal.reference = Some(vec![f64::NAN; count]);
        let output = PolicyGradientConfig::new()
            .with_reference_kl(0.1)
            .init()
            .forward(&table, &batch, &signal)
            .unwrap();
        assert_eq!(scalar(&output.loss), 0.0);
        assert!(gradient(&table, &output.loss).iter().all(|&value| value == 0.0));
        assert_eq!(numbers(&output.ratio_n).len(), count);
        assert!(output.reference_kl_n.is_some());
    }
}

#[test]
fn ratios_that_would_overflow_stay_finite_and_have_no_gradient() {
    let table = Table::seeded(5);
    let batch = Batch::new(&[&causal(&[1, 2, 3, 4, 5])], &device()).unwrap();
    for shift in [1e4, -1e4] {
        let far: Vec<f64> = logp(&table, &batch).iter().map(|logp| logp + shift).collect();
        let mut signal = PolicySignal::new(vec![1.0, -1.0, 1.0, -1.0], far.clone());
        signal.reference = Some(far);
        let config =
            PolicyGradientConfig::new().with_reference_kl(1.0).with_clip(ClipConfig::open());
        let output = config.init().forward(&table, &batch, &signal).unwrap();
        let ratios = numbers(&output.ratio_n);
        let limit = (-shift.signum() * MAX_LOG_RATIO).exp();
        for ratio in ratios {
            assert_near(ratio / limit, 1.0, FEW, format_args!("a ratio of {ratio}"));
        }
        assert!(scalar(&output.loss).is_finite());
        assert!(gradient(&table, &output.loss).iter().all(|&value| value == 0.0));
    }
}

#[test]
fn a_target_that_the_model_has_come_to_rule_out_has_no_gradient() {
    let (model, batch) = (Banning { table: Table::seeded(6) }, batch());
    let without: Sequence = {
        let mut sequence = causal(&[0, 1, 2, 3, 4, 5, 6, 3, 1]);
        for (term, weight) in
            sequence.terms.iter_mut().zip([1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
        {
            term.weight = weight;
        }
        sequence
    };
    let silenced = Batch::new([&without], &device()).unwrap();
    for (name, config) in configs() {
        let config = config.with_reduction(Reduction::Sum);
        let signal = full_signal(&model.table, &batch, &config);
        let of = |batch| config.init().forward(&model, batch, &signal).unwrap().loss;
        let (found, expected) = (of(&batch), of(&silenced));
        assert!(scalar(&found).is_finite(), "{name}");
        assert_all_near(
            &gradient(&model.table, &found),
            &gradient(&model.table, &expected),
            FORMULA,
            name,
        );
    }
}

#[test]
fn a_ruled_out_target_has_the_smallest_ratio_however_unlikely_it_was_when_it_was_recorded() {
    let (model, batch) = (Banning { table: Table::seeded(8) }, batch());
    for recorded in [-0.1, -50.0, -2e4, -1e6] {
        let signal = PolicySignal::new(vec![1.0; 8], vec![recorded; 8]);
        let output = PolicyGradientConfig::new()
            .with_clip(ClipConfig::open())
            .init()
            .forward(&model, &batch, &signal)
            .unwrap();
        let ratios = numbers(&output.ratio_n);
        for (ratio, _) in
            ratios.iter().zip(&batch.terms().targets).filter(|(_, target)| **target == BANNED)
        {
            assert_near(
                ratio / (-MAX_LOG_RATIO).exp(),
                1.0,
                FEW,
                format_args!("recorded as {recorded}"),
            );
        }
    }
}

#[test]
fn signals_and_settings_that_mean_nothing_are_refused() {
    let (table, batch) = (Table::seeded(7), batch());
    let refuse = |config: &PolicyGradientConfig, signal: &PolicySignal| {
        config.init().forward(&table, &batch, signal).map(|_| ()).unwrap_err()
    };
    let (config, good) = (PolicyGradientConfig::new(), signal(&table, &batch));
    let mut short = good.clone();
    short.advantages.pop();
    assert_eq!(
        refuse(&config, &short),
        TrainError::Objective(ObjectiveError::SignalLength {
            what: "advantage",
            terms: 8,
            found: 7
        })
    );
    let mut impossible = good.clone();
    impossible.recorded[1] = f64::NEG_INFINITY;
    let expected = TrainError::Objective(ObjectiveError::SignalValue {
        what: "recorded log-probability",
        generation: 0,
        offset: 1,
        value: f64::NEG_INFINITY,
    });
    assert_eq!(refuse(&config, &impossible), expected);
    let mut unused = good.clone();
    unused.reference = Some(vec![-1.0; 8]);
    assert!(matches!(
        refuse(&config, &unused),
        TrainError::Objective(ObjectiveError::Signal { setting: "reference_kl", .. })
    ));
    assert!(matches!(
        refuse(&config.clone().with_reference_kl(0.1), &good),
        TrainError::Objective(ObjectiveError::Signal { .. })
    ));
    assert!(matches!(
        refuse(&config.clone().with_truncation(Some(2.0)), &good),
        TrainError::Objective(ObjectiveError::Signal { .. })
    ));
    unused.trainer = unused.reference.take();
    assert!(matches!(
        refuse(&config.clone().with_truncation(Some(0.0)), &unused),
        TrainError::Objective(ObjectiveError::Setting { .. })
    ));
    for clip in [
        ClipConfig::new().with_low(1.5),
        ClipConfig::new().with_high(f64::NAN),
        ClipConfig::new().with_dual(Some(1.1)),
    ] {
        assert!(
            matches!(
                refuse(&config.clone().with_clip(clip), &good),
                TrainError::Objective(ObjectiveError::Setting { .. })
            ),
            "{clip:?}"
        );
    }
    assert!(matches!(
        refuse(&config.clone().with_reference_kl(-1.0), &good),
        TrainError::Objective(ObjectiveError::Setting { .. })
    ));
    assert_eq!(refuse(&config.with_chunk(0), &good), TrainError::EmptyChunk);
}

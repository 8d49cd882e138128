//! Contract: the clipped value loss is its formula with the gradient of differences; terms of
//! weight 0 leave no trace; what is not finite at a term that counts is refused.
use crate::fixtures;

use crate::fixtures::{
    causal,
    near::{DIFFERENCE, FEW, FORMULA, assert_near, slope},
    table::{Table, WIDTH, assert_gradient, critic, device, gradient, noise, numbers, scalar},
};
use burn::tensor::DType;
use pleach_train::{
    Batch, CausalModel, ObjectiveError, TrainError,
    equivalence::collect_gradients,
    objective::{Reduction, ValueHeadConfig},
};

fn batch() -> Batch {
    let mut sequence = causal(&[0, 1, 2, 3, 4, 5, 6]);
    for (term, weight) in sequence.terms.iter_mut().zip([1.0, 0.5, 0.0, 1.0, 2.0, 1.0]) {
        term.weight = weight;
    }
    Batch::new([&sequence], &device()).unwrap()
}

fn config() -> ValueHeadConfig {
    ValueHeadConfig::new(WIDTH)
}

fn naive(clip: Option<f64>, values: &[f64], old: &[f64], returns: &[f64], weights: &[f64]) -> f64 {
    let term = |at: usize| {
        let free = (values[at] - returns[at]).powi(2);
        let held = clip.map_or(free, |clip| {
            (old[at] + (values[at] - old[at]).clamp(-clip, clip) - returns[at]).powi(2)
        });
        0.5 * weights[at] * free.max(held)
    };
    (0..values.len()).map(term).sum()
}

#[test]
fn the_loss_is_its_formula_and_its_gradient_that_of_differences() {
    let (table, batch) = (Table::seeded(1), batch());
    let (old, returns) = (noise(2, 6), noise(3, 6));
    for clip in [None, Some(0.2), Some(0.01), Some(5.0)] {
        let config = config().with_clip(clip).with_reduction(Reduction::Sum);
        let value = critic(&config, &[0.4, -0.3, 0.8], 0.1);
        let hidden = table.hidden(&batch).unwrap();
        let output = value.forward(hidden.clone(), batch.terms(), &old, &returns).unwrap();
        let values = numbers(&output.values_n);
        let expected = naive(clip, &values, &old, &returns, &batch.terms().weights);
        assert_near(scalar(&output.loss), expected, FORMULA, format_args!("{clip:?}"));
        let rows = numbers(&hidden.flatten::<1>(0, 2));
        for (value, &source) in values.iter().zip(&batch.terms().sources) {
            let row = &rows[source as usize * WIDTH..][..WIDTH];
            assert_near(*value, 0.4 * row[0] - 0.3 * row[1] + 0.8 * row[2] + 0.1, FEW, "value");
        }
        let loss = |table: &Table| {
            value
                .forward(table.hidden(&batch).unwrap(), batch.terms(), &old, &returns)
                .unwrap()
                .loss
        };
        match numbers(&output.clipped_n)
            .iter()
            .zip(&batch.terms().weights)
            .all(|(clipped, weight)| *clipped == 1.0 || *weight == 0.0)
        {
            true => assert!(
                gradient(&table, &loss(&table)).iter().all(|&value| value == 0.0),
                "{clip:?}: all are clipped"
            ),
            false => assert_gradient(&format!("{clip:?}"), &table, loss),
        }
        let gradients = collect_gradients(&value, output.loss.backward()).unwrap().gradients;
        let found =
            [gradients["weight_c"].values.clone(), gradients["bias_1"].values.clone()].concat();
        let numbers = [0.4, -0.3, 0.8, 0.1];
        for (at, found) in found.iter().enumerate() {
            let moved = |step: f64| {
                let mut numbers = numbers;
                numbers[at] += step;
                let moved = critic(&config, &numbers[..3], numbers[3]);
                scalar(
                    &moved
                        .forward(table.hidden(&batch).unwrap(), batch.terms(), &old, &returns)
                        .unwrap()
                        .loss,
                )
            };
            assert_near(*found, slope(moved), DIFFERENCE, format_args!("{clip:?}, number {at}"));
        }
    }
}

#[test]
fn a_new_head_says_0_and_the_mean_is_over_the_weights() {
    let (table, batch) = (Table::seeded(4), batch());
    let critic = config().init(DType::F64, &device());
    let returns = [1.0; 6];
    let output =
        critic.forward(table.hidden(&batch).unwrap(), batch.terms(), &[0.0; 6], &returns).unwrap();
    assert_eq!(numbers(&output.values_n), [0.0; 6]);
    assert_near(scalar(&output.loss), 0.5, FEW, "half the square of 1");
}

#[test]
fn a_term_of_weight_0_leaves_no_trace_and_no_terms_are_a_loss_of_0() {
    let (table, batch) = (Table::seeded(5), batch());
    let value = critic(&config(), &[0.4, -0.3, 0.8], 0.1);
    let of = |strange: f64| {
        let mut returns = noise(6, 6);
        returns[2] = strange;
        value
            .forward(table.hidden(&batch).unwrap(), batch.terms(), &[0.0; 6], &returns)
            .unwrap()
            .loss
    };
    assert_eq!(scalar(&of(3.0)).to_bits(), scalar(&of(f64::NAN)).to_bits());
    let mut none = causal(&[1, 2]);
    none.terms.clear();
    let none = Batch::new([&none], &device()).unwrap();
    let output = value.forward(table.hidden(&none).unwrap(), none.terms(), &[], &[]).unwrap();
    assert_eq!(scalar(&output.loss), 0.0);
    assert!(fixtures::table::gradient(&table, &output.loss).iter().all(|&value| value == 0.0));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let (table, batch) = (Table::seeded(7), batch());
    let refuse = |config: ValueHeadConfig, old: &[f64], returns: &[f64]| {
        let critic = config.init(DType::F64, &device());
        critic
            .forward(table.hidden(&batch).unwrap(), batch.terms(), old, returns)
            .map(|_| ())
            .unwrap_err()
    };
    let found = refuse(config(), &[0.0; 5], &[0.0; 6]);
    assert_eq!(
        found,
        TrainError::Objective(ObjectiveError::SignalLength {
            what: "old value",
            terms: 6,
            found: 5
        })
    );
    let found = refuse(config(), &[0.0; 6], &[f64::INFINITY; 6]);
    assert!(matches!(
        found,
        TrainError::Objective(ObjectiveError::SignalValue { what: "return", offset: 0, .. })
    ));
    assert!(matches!(
        refuse(config().with_clip(Some(0.0)), &[0.0; 6], &[0.0; 6]),
        TrainError::Objective(ObjectiveError::Setting { .. })
    ));
    assert!(matches!(
        refuse(ValueHeadConfig::new(WIDTH + 1), &[0.0; 6], &[0.0; 6]),
        TrainError::ModelShape { .. }
    ));
}

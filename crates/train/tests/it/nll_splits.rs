//! Contract: the negative log-likelihood is one mean over tokens, the same under any split of them
//! into sequences, segments, rows and micro-batches; an impossible target is refused, and never
//! NaN.

use crate::fixtures::{
    causal,
    near::{FORMULA, MEAN_OF_1000, assert_all_near, assert_near},
    table::{BANNED, Banning, Table, assert_gradient, device, gradient, scalar},
    trees::{GROUP, read},
};
use burn::{
    module::{Module, Param},
    tensor::{DType, Tensor, TensorData},
};
use pleach_layout::{Layouts, Sequence, pack};
use pleach_train::{
    Batch, CausalModel, ObjectiveError, TrainError,
    evaluation::log_probabilities,
    objective::{NllConfig, Reduction},
};

/// Says the token that stands there again, with a log-probability of its own.
#[derive(Module, Debug)]
struct Stubborn {
    logits: Param<Tensor<2>>,
}

impl Stubborn {
    /// Token `at` is followed by itself with probability `e^-nats[at]`.
    fn new(nats: &[f64]) -> Self {
        let size = nats.len();
        let row = |at: usize| -> Vec<f64> {
            let other = ((1.0 - (-nats[at]).exp()) / (size as f64 - 1.0)).ln();
            (0..size).map(|token| if token == at { -nats[at] } else { other }).collect()
        };
        let data = TensorData::new((0..size).flat_map(row).collect::<Vec<f64>>(), [size, size]);
        Self { logits: Param::from_tensor(Tensor::from_data(data, (&device(), DType::F64))) }
    }
}

impl CausalModel for Stubborn {
    fn hidden(&self, batch: &Batch) -> Result<Tensor<3>, TrainError> {
        let [b, t] = batch.dims();
        let hidden_nv = self.logits.val().select(0, batch.tokens_bt().reshape([b * t]));
        let [_, vocabulary] = hidden_nv.dims();
        Ok(hidden_nv.reshape([b, t, vocabulary]))
    }

    fn vocabulary(&self) -> usize {
        self.logits.val().dims()[0]
    }

    fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        hidden_nd
    }
}

fn loss<M: CausalModel>(model: &M, sequences: &[Sequence], reduction: Reduction) -> Tensor<1> {
    let batch = Batch::new(sequences, &device()).unwrap();
    NllConfig::new().with_reduction(reduction).init().forward(model, &batch).unwrap().loss
}

#[test]
fn a_mean_over_tokens_is_no_mean_of_means() {
    let model = Stubborn::new(&[2.0, 0.5, 1.0]);
    let sequences = [causal(&[0; 101]), causal(&[1; 901])];
    let whole = scalar(&loss(&model, &sequences, Reduction::WeightedMean));
    assert_near(whole, 0.65, MEAN_OF_1000, "the mean over 100 tokens of 2 nats and 900 of 0.5");
    let means = sequences
        .each_ref()
        .map(|one| scalar(&loss(&model, std::slice::from_ref(one), Reduction::WeightedMean)));
    assert_near((means[0] + means[1]) / 2.0, 1.25, MEAN_OF_1000, "what it must not be");
    let parts = sequences
        .each_ref()
        .map(|one| scalar(&loss(&model, std::slice::from_ref(one), Reduction::Over(1000.0))));
    assert_near(parts[0] + parts[1], 0.65, MEAN_OF_1000, "micro-batches");
    let uneven: Vec<Sequence> = std::iter::repeat_n(causal(&[0; 11]), 10)
        .chain(std::iter::repeat_n(causal(&[1; 31]), 30))
        .collect();
    assert_near(
        scalar(&loss(&model, &uneven, Reduction::WeightedMean)),
        0.65,
        MEAN_OF_1000,
        "uneven sequences",
    );
}

#[test]
fn packed_segments_rows_and_micro_batches_have_one_loss_and_one_gradient() {
    let tree = read(GROUP);
    let layouts = Layouts::new(&tree).unwrap();
    let model = Table::seeded(1);
    let (packed, segments) =
        (layouts.packed().unwrap().sequences, layouts.segments().unwrap().sequences);
    let twice: Vec<Sequence> = packed.iter().chain(&packed).cloned().collect();
    let rows: Vec<Sequence> =
        pack(&twice, 100).unwrap().into_iter().map(|row| row.sequence).collect();
    assert_eq!((segments.len(), rows.len()), (3, 1));
    let whole = loss(&model, &packed, Reduction::WeightedMean);
    let expected = (scalar(&whole), gradient(&model, &whole));
    let near = |name: &str, found: (f64, Vec<f64>)| {
        assert_near(found.0, expected.0, FORMULA, name);
        assert_all_near(&found.1, &expected.1, FORMULA, format_args!("gradient, {name}"));
    };
    for (name, sequences) in [("segments", &segments), ("twice", &twice), ("rows", &rows)] {
        let loss = loss(&model, sequences, Reduction::WeightedMean);
        near(name, (scalar(&loss), gradient(&model, &loss)));
    }
    let weights: f64 =
        segments.iter().flat_map(|sequence| &sequence.terms).map(|term| term.weight).sum();
    let parts = segments
        .iter()
        .map(|one| loss(&model, std::slice::from_ref(one), Reduction::Over(weights)));
    let sum = parts.fold((0.0, vec![0.0; expected.1.len()]), |(value, gradients), part| {
        let gradients = gradients.iter().zip(gradient(&model, &part)).map(|(a, b)| a + b).collect();
        (value + scalar(&part), gradients)
    });
    near("micro-batches", sum);
}

#[test]
fn an_impossible_target_is_refused_whatever_the_signs_of_its_weights_and_an_evaluation_says_which_it_is()
 {
    let model = Banning { table: Table::seeded(2) };
    let opposed = |weights: [f64; 2]| {
        let mut sequence = causal(&[BANNED, BANNED, BANNED]);
        sequence.terms.iter_mut().zip(weights).for_each(|(term, weight)| term.weight = weight);
        sequence
    };
    for sequence in [
        causal(&[0, BANNED, 1]),
        causal(&[1, 2, BANNED]),
        opposed([1.0, -1.0]),
        opposed([-2.0, 0.0]),
    ] {
        for reduction in [Reduction::Sum, Reduction::Over(2.0)] {
            let batch = Batch::new([&sequence], &device()).unwrap();
            let refused = NllConfig::new()
                .with_reduction(reduction)
                .init()
                .forward(&model, &batch)
                .map(|_| ())
                .unwrap_err();
            let what = "negative log-likelihood";
            assert_eq!(
                refused,
                TrainError::Objective(ObjectiveError::NotFinite { what, terms: 2 })
            );
        }
        let logp = log_probabilities(&model, std::slice::from_ref(&sequence), &mut |_| {}).unwrap();
        for (found, term) in logp.iter().zip(&sequence.terms) {
            assert_eq!(found.logp == f64::NEG_INFINITY, term.target == BANNED);
        }
    }
}

#[test]
fn the_gradient_is_that_of_differences() {
    let mut sequence = causal(&[0, 1, 2, 3, 4, 5, 6]);
    for (term, weight) in sequence.terms.iter_mut().zip([1.0, 0.5, -0.25, 0.0, 2.0, 1.0]) {
        term.weight = weight;
    }
    for reduction in [Reduction::Sum, Reduction::WeightedMean, Reduction::Over(3.0)] {
        let of = |table: &Table| loss(table, std::slice::from_ref(&sequence), reduction);
        assert_gradient(&format!("{reduction:?}"), &Table::seeded(3), of);
    }
}

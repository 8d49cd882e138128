//! Contract: the chunked loss over terms equals the plain one, value and every gradient, whatever
//! the chunk, the micro-batches and the ties between head and embedding; a term of weight 0 leaves
//! no trace in loss or gradient.

use crate::fixtures::device::cpu;
use crate::fixtures::{
    causal,
    near::{MODEL, assert_all_near, assert_near},
};
use burn::tensor::DType;
use burn::{
    module::Module,
    tensor::{Int, Tensor, TensorData, activation::log_softmax},
};
use pleach_layout::{Sequence, Term};
use pleach_train::{
    Batch, BatchTerms, CausalModel, TrainError,
    decoder::{Decoder, DecoderConfig, Family},
    equivalence::{GradientMap, collect_gradients, relative_gradient_error},
    objective::{NllConfig, Reduction},
};

fn model(family: Family) -> Decoder {
    let device = cpu();
    let config = DecoderConfig::small(family, 23, 2);
    Decoder::seeded(config, 5, DType::F64, &device.autodiff()).unwrap()
}

/// Two trees: a prompt with two branches (one source, two targets), and a chain, shorter and with
/// uneven weights.
fn trees() -> Vec<Sequence> {
    let term =
        |source, target, generation, weight| Term { source, target, generation, offset: 0, weight };
    let branched = Sequence {
        tokens: vec![1, 2, 3, 4, 5, 6],
        positions: vec![0, 1, 2, 3, 2, 3],
        ends: vec![6, 6, 4, 4, 6, 6],
        terms: vec![term(1, 3, 0, 1.0), term(2, 4, 0, 0.5), term(1, 5, 1, 2.0), term(4, 6, 1, 1.0)],
    };
    let mut chain = causal(&[7, 8, 9, 10]);
    chain.terms[1].weight = -0.25;
    vec![branched, chain]
}

fn batch<M: CausalModel>(model: &M, sequences: &[Sequence]) -> Batch {
    let rows: Vec<&Sequence> = sequences.iter().collect();
    let device = &model.devices()[0];
    Batch::new(&rows, device).unwrap()
}

struct Run {
    loss: f64,
    logp: Vec<f64>,
    gradients: GradientMap,
}

fn run<M: CausalModel>(model: &M, sequences: &[Sequence], config: NllConfig) -> Run {
    let output = config.init().forward(model, &batch(model, sequences)).unwrap();
    Run {
        loss: output.loss.clone().into_scalar::<f64>(),
        logp: output.logp_n.try_into_vec_as().unwrap(),
        gradients: collect_gradients(model, output.loss.backward()).unwrap(),
    }
}

/// All logits at once, burn's log-softmax, one graph.
fn plain(model: &Decoder, sequences: &[Sequence]) -> Run {
    let batch = batch(model, sequences);
    let hidden = model.hidden(&batch).unwrap();
    let [b, t, c] = hidden.dims();
    let logp = log_softmax(model.logits(hidden.reshape([b * t, c])), 1);
    let terms = batch.terms();
    let device = logp.device().without_autodiff();
    let sources = Tensor::<1, Int>::from_data(terms.sources.as_slice(), &device);
    let targets: Vec<i64> = terms.targets.iter().map(|&target| i64::from(target)).collect();
    let targets = Tensor::<1, Int>::from_data(targets.as_slice(), &device).unsqueeze_dim(1);
    let logp = logp.select(0, sources).gather(1, targets).squeeze_dim::<1>(1);
    let weights = Tensor::<1>::from_data(terms.weights.as_slice(), (&device, logp.dtype()));
    let loss = logp.clone().mul(weights).sum().neg();
    Run {
        loss: loss.clone().into_scalar::<f64>(),
        logp: logp.try_into_vec_as().unwrap(),
        gradients: collect_gradients(model, loss.backward()).unwrap(),
    }
}

fn assert_same(context: &str, found: &Run, expected: &Run) {
    assert_near(found.loss, expected.loss, MODEL, context);
    assert_all_near(&found.logp, &expected.logp, MODEL, context);
    let error = relative_gradient_error(&expected.gradients, &found.gradients);
    assert!(error <= MODEL, "{context}: {error:e}");
}

#[test]
fn every_chunk_size_gives_the_plain_loss_and_gradients() {
    for family in [Family::Llama, Family::Qwen3] {
        let model = model(family);
        let expected = plain(&model, &trees());
        for chunk in [1, 2, 3, 7, 100] {
            let found = run(&model, &trees(), NllConfig::new().with_chunk(chunk));
            assert_same(&format!("{family:?}, chunk {chunk}"), &found, &expected);
        }
    }
}

#[test]
fn micro_batches_add_up_to_the_whole() {
    let model = model(Family::Qwen3);
    let weight: f64 = trees().iter().flat_map(|s| &s.terms).map(|term| term.weight).sum();
    for (whole, part) in
        [(Reduction::Sum, Reduction::Sum), (Reduction::WeightedMean, Reduction::Over(weight))]
    {
        let together = run(&model, &trees(), NllConfig::new().with_reduction(whole));
        let mut sum = Run { loss: 0.0, logp: Vec::new(), gradients: GradientMap::default() };
        for sequence in trees() {
            let one = run(&model, &[sequence], NllConfig::new().with_reduction(part));
            sum.loss += one.loss;
            sum.logp.extend(one.logp);
            sum.gradients.accumulate(one.gradients);
        }
        assert_same(&format!("{whole:?}"), &sum, &together);
    }
}

#[test]
fn scaling_the_loss_scales_every_gradient() {
    let model = model(Family::Qwen3);
    let expected = run(&model, &trees(), NllConfig::new());
    let output = NllConfig::new().init().forward(&model, &batch(&model, &trees())).unwrap();
    let gradients = output.loss.mul_scalar(-3.0).backward();
    let mut found = collect_gradients(&model, gradients).unwrap();
    for gradient in found.gradients.values_mut() {
        gradient.values.iter_mut().for_each(|value| *value /= -3.0);
    }
    assert!(relative_gradient_error(&expected.gradients, &found) <= MODEL);
}

#[test]
fn a_term_of_weight_0_has_a_log_probability_and_exactly_no_gradient() {
    let model = model(Family::Llama);
    let mut silent = trees();
    silent[0].terms[1].weight = 0.0;
    let mut other_target = silent.clone();
    other_target[0].terms[1].target = 17;
    let mut only_silent = trees();
    only_silent.iter_mut().flat_map(|s| &mut s.terms).for_each(|term| term.weight = 0.0);
    let config = || NllConfig::new().with_chunk(2);
    let (a, b) = (run(&model, &silent, config()), run(&model, &other_target, config()));
    assert_ne!(a.logp[1], b.logp[1]);
    assert_eq!(a.loss, b.loss);
    assert_eq!(a.gradients, b.gradients);
    let nothing = run(&model, &only_silent, config());
    assert_eq!(nothing.loss, 0.0);
    assert!(nothing.gradients.gradients.values().all(|g| g.values.iter().all(|&x| x == 0.0)));
}

#[test]
fn where_every_weight_is_0_the_loss_is_0_under_every_reduction_and_so_is_its_gradient() {
    let model = model(Family::Llama);
    let (mut without_terms, mut silent) = (causal(&[1, 2, 3]), causal(&[1, 2, 3]));
    without_terms.terms.clear();
    silent.terms.iter_mut().for_each(|term| term.weight = 0.0);
    for reduction in
        [Reduction::Sum, Reduction::WeightedMean, Reduction::Over(0.0), Reduction::Over(3.0)]
    {
        for sequence in [&without_terms, &silent] {
            let found = run(
                &model,
                std::slice::from_ref(sequence),
                NllConfig::new().with_reduction(reduction),
            );
            assert_eq!(
                (found.loss, found.logp.len()),
                (0.0, sequence.terms.len()),
                "{reduction:?}"
            );
            assert!(found.logp.iter().all(|&logp| logp < 0.0));
            assert!(
                found.gradients.gradients.values().all(|g| g.values.iter().all(|&x| x == 0.0)),
                "{reduction:?}"
            );
        }
    }
}

/// A decoder that never says one of its tokens.
#[derive(Module, Debug)]
struct Banning {
    decoder: Decoder,
    banned: usize,
}

impl CausalModel for Banning {
    fn hidden(&self, batch: &Batch) -> Result<Tensor<3>, TrainError> {
        self.decoder.hidden(batch)
    }

    fn vocabulary(&self) -> usize {
        self.decoder.vocabulary()
    }

    fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        let logits_nv = self.decoder.logits(hidden_nd);
        let mut bias = vec![0.0; logits_nv.dims()[1]];
        bias[self.banned] = f64::NEG_INFINITY;
        let options = (&logits_nv.device().without_autodiff(), logits_nv.dtype());
        let bias_1v =
            Tensor::<2>::from_data(TensorData::new(bias, [1, logits_nv.dims()[1]]), options);
        logits_nv.add(bias_1v)
    }
}

#[test]
fn a_term_of_weight_0_has_no_loss_and_no_gradient_where_its_target_is_impossible() {
    let model = Banning { decoder: model(Family::Llama), banned: 20 };
    let mut silent = trees();
    (silent[0].terms[1].weight, silent[0].terms[1].target) = (0.0, 20);
    let mut absent = silent.clone();
    absent[0].terms.remove(1);
    for chunk in [1, 2, 100] {
        for reduction in [Reduction::Sum, Reduction::WeightedMean] {
            let config = || NllConfig::new().with_chunk(chunk).with_reduction(reduction);
            let (mut found, expected) =
                (run(&model, &silent, config()), run(&model, &absent, config()));
            assert_eq!(found.logp.remove(1), f64::NEG_INFINITY);
            assert_same(&format!("chunk {chunk}, {reduction:?}"), &found, &expected);
        }
    }
    let only = |sequences: &mut [Sequence]| {
        sequences.iter_mut().flat_map(|s| &mut s.terms).for_each(|term| term.weight = 0.0)
    };
    only(&mut silent);
    let nothing = run(&model, &silent, NllConfig::new());
    assert_eq!(nothing.loss, 0.0);
    assert!(nothing.gradients.gradients.values().all(|g| g.values.iter().all(|&x| x == 0.0)));
}

#[test]
fn impossible_losses_are_refused() {
    let model = model(Family::Llama);
    let attempt = |sequences: &[Sequence], config: NllConfig| {
        config.init().forward(&model, &batch(&model, sequences)).map(|_| ()).unwrap_err()
    };
    assert_eq!(attempt(&trees(), NllConfig::new().with_chunk(0)), TrainError::EmptyChunk);
    let mut balanced = vec![causal(&[1, 2, 3])];
    balanced[0].terms[0].weight = -1.0;
    let mean = NllConfig::new().with_reduction(Reduction::WeightedMean);
    assert_eq!(attempt(&balanced, mean), TrainError::Weights { terms: 2, sum: 0.0 });
    let over = NllConfig::new().with_reduction(Reduction::Over(0.0));
    assert_eq!(attempt(&trees(), over), TrainError::Weights { terms: 7, sum: 0.0 });
    let mut foreign = vec![causal(&[1, 2, 3])];
    foreign[0].terms[0].target = 23;
    assert_eq!(
        attempt(&foreign, NllConfig::new()),
        TrainError::Vocabulary { token: 23, vocabulary: 23 }
    );
}

#[test]
fn terms_that_were_edited_into_nonsense_are_refused_by_name() {
    let model = model(Family::Llama);
    let batch = Batch::new([&causal(&[1, 2, 3])], &cpu()).unwrap();
    let refuse = |edit: &dyn Fn(&mut BatchTerms)| {
        let mut terms = batch.terms().clone();
        edit(&mut terms);
        let hidden_btc = model.hidden(&batch).unwrap();
        let refused = NllConfig::new().init().forward_hidden(&model, hidden_btc, &terms);
        refused.map(|_| ()).unwrap_err().to_string()
    };
    let message = refuse(&|terms| terms.weights[1] = f64::NAN);
    assert!(message.contains("offset 1: loss weight NaN is not finite"), "{message}");
    for row in [-1, 3] {
        let message = refuse(&|terms| terms.sources[0] = row);
        let expected = format!("offset 0: the term reads row {row} of 3 hidden states");
        assert!(message.contains(&expected), "{message}");
    }
    let message = refuse(&|terms| terms.weights.truncate(1));
    assert!(message.contains("weights of terms"), "{message}");
}

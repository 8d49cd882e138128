//! Contract: a sequence without tokens has nothing to run and changes nothing, gradients name every
//! parameter even so, and a model that cannot be differentiated is an error and not an equality.

use crate::fixtures::causal;
use crate::fixtures::device::cpu;
use burn::module::Module;
use burn::tensor::DType;
use pleach_layout::Sequence;
use pleach_train::{
    TrainError,
    decoder::{Decoder, DecoderConfig, Family},
    equivalence::{GradientMap, compare},
    evaluation::{Evaluation, evaluate, log_probabilities, replay},
};

fn model() -> Decoder {
    let device = cpu();
    Decoder::seeded(DecoderConfig::small(Family::Qwen2, 20, 2), 3, DType::F64, &device).unwrap()
}

fn shapes(map: &GradientMap) -> Vec<(&String, &Vec<usize>)> {
    map.gradients.iter().map(|(name, gradient)| (name, &gradient.shape)).collect()
}

fn assert_nothing(found: &Evaluation) {
    let some = evaluate(&model(), &[causal(&[1, 2, 3])], &mut |_| {}).unwrap();
    assert_eq!((found.logp.len(), found.nll), (0, 0.0));
    assert_eq!(shapes(&found.gradients), shapes(&some.gradients));
    for gradient in found.gradients.gradients.values() {
        assert_eq!(gradient.values, vec![0.0; gradient.shape.iter().product()]);
    }
}

#[test]
fn a_tree_without_calls_has_no_terms_and_zero_gradients_for_every_parameter() {
    let (model, empty) = (model(), [Sequence::default()]);
    for sequences in [&empty[..], &[]] {
        assert_nothing(&evaluate(&model, sequences, &mut |_| {}).unwrap());
        assert_nothing(&replay(&model, sequences).unwrap());
        assert_eq!(log_probabilities(&model, sequences, &mut |_| {}).unwrap(), []);
    }
    let found = compare(&model, &empty, &[], &mut |_, _| {}).unwrap();
    assert_eq!((found.max_logp_difference, found.relative_gradient_error), (0.0, 0.0));
    let mut without_terms = causal(&[1, 2, 3]);
    without_terms.terms.clear();
    assert_nothing(&evaluate(&model, &[without_terms], &mut |_| {}).unwrap());
}

#[test]
fn sequences_without_tokens_change_nothing_beside_others() {
    let (model, empty) = (model(), Sequence::default);
    let (a, b) = (causal(&[1, 2, 3, 4]), causal(&[5, 6]));
    let expected = evaluate(&model, &[a.clone(), b.clone()], &mut |_| {}).unwrap();
    let mixed = [empty(), a, empty(), b, empty()];
    let mut done = Vec::new();
    assert_eq!(evaluate(&model, &mixed, &mut |sequences| done.push(sequences)).unwrap(), expected);
    assert_eq!(done, [4, 5]);
    assert_eq!(log_probabilities(&model, &mixed, &mut |_| {}).unwrap().len(), 4);
    assert_eq!(replay(&model, &mixed).unwrap().logp.len(), 4);
}

#[test]
fn a_frozen_model_has_log_probabilities_but_no_gradients_to_compare() {
    let (frozen, sequences) = (model().no_grad(), [causal(&[1, 2, 3])]);
    let untracked = TrainError::Untracked;
    assert_eq!(evaluate(&frozen, &sequences, &mut |_| {}).unwrap_err(), untracked);
    assert_eq!(replay(&frozen, &sequences).unwrap_err(), untracked);
    assert_eq!(compare(&frozen, &sequences, &sequences, &mut |_, _| {}).unwrap_err(), untracked);
    assert!(untracked.to_string().contains("unfreeze parameters"));
    let found = log_probabilities(&frozen, &sequences, &mut |_| {}).unwrap();
    assert_eq!(found, evaluate(&model(), &sequences, &mut |_| {}).unwrap().logp);
    assert_nothing(&evaluate(&frozen, &[], &mut |_| {}).unwrap());
}

//! Contract: the published union mask with row-wise positions is exact for one layer and wrong for
//! two, on fourteen tokens with three one-token evictions and survivors behind every hole.
use crate::fixtures;

use crate::fixtures::device::cpu;
use crate::fixtures::near;
use burn::tensor::DType;
use pleach_layout::{Sequence, Term};
use pleach_train::{
    TrainError,
    decoder::{Decoder, DecoderConfig, Family},
    diagnostics::{Union, union_log_probabilities},
    equivalence::relative_gradient_error,
    evaluation::{TermLogp, evaluate, log_probabilities},
};

const TAPE: [u32; 14] = [8, 36, 54, 51, 48, 4, 16, 7, 31, 48, 28, 30, 41, 24];
/// First row whose next token was sampled without the token.
const GONE: [(usize, usize); 3] = [(5, 7), (8, 10), (11, 12)];

fn term(source: usize, target: u32, generation: usize) -> Term {
    Term { source: source as u32, target, generation: generation as u32, offset: 0, weight: 1.0 }
}

/// Every token once; generation `g` samples token `g + 1` of the tape from row `g`.
fn union() -> Union {
    let alive =
        |row: usize, key: usize| GONE.iter().all(|&(token, from)| token != key || row < from);
    Union {
        tokens: TAPE.to_vec(),
        visible: (0..14)
            .map(|row| (0..=row).filter(|&key| alive(row, key)).map(|key| key as u32).collect())
            .collect(),
        terms: (0..13).map(|row| term(row, TAPE[row + 1], row)).collect(),
    }
}

/// One causal sequence per live view, written out.
fn segments() -> Vec<Sequence> {
    let sequence =
        |tokens: &[u32], terms: Vec<Term>| Sequence { terms, ..fixtures::causal(tokens) };
    vec![
        sequence(&TAPE[..8], (0..7).map(|row| term(row, TAPE[row + 1], row)).collect()),
        sequence(
            &[8, 36, 54, 51, 48, 16, 7, 31, 48, 28],
            vec![term(6, 31, 7), term(7, 48, 8), term(8, 28, 9)],
        ),
        sequence(
            &[8, 36, 54, 51, 48, 16, 7, 48, 28, 30, 41],
            vec![term(8, 30, 10), term(9, 41, 11)],
        ),
        sequence(&[8, 36, 54, 51, 48, 16, 7, 48, 28, 41, 24], vec![term(9, 24, 12)]),
    ]
}

fn model(family: Family, layers: usize) -> Decoder {
    let config = DecoderConfig::small(family, 61, layers);
    let device = cpu();
    Decoder::seeded(config, 11, DType::F64, &device).unwrap()
}

fn worst(found: &[TermLogp], expected: &[TermLogp]) -> f64 {
    let ids = |side: &[TermLogp]| {
        side.iter().map(|term| (term.generation, term.offset)).collect::<Vec<_>>()
    };
    assert_eq!(ids(found), ids(expected));
    near::worst(found.iter().map(|term| term.logp), expected.iter().map(|term| term.logp))
}

fn gap(family: Family, layers: usize) -> f64 {
    let model = model(family, layers);
    let found = union_log_probabilities(&model, &union()).unwrap();
    worst(&found, &log_probabilities(&model, &segments(), &mut |_| {}).unwrap())
}

#[test]
fn one_layer_agrees_with_the_live_views() {
    for family in [Family::Llama, Family::Qwen2, Family::Qwen3] {
        let gap = gap(family, 1);
        assert!(gap <= near::LOGP, "{family:?}: {gap:e}");
    }
}

#[test]
fn two_layers_do_not_agree_with_the_live_views() {
    for family in [Family::Llama, Family::Qwen2, Family::Qwen3] {
        for layers in [2, 4] {
            let gap = gap(family, layers);
            assert!(gap > 1e-3, "{family:?}, {layers} layers: {gap:e}");
        }
    }
}

#[test]
fn without_evictions_the_union_is_one_causal_sequence_at_any_depth() {
    let model = model(Family::Llama, 4);
    let causal = fixtures::causal(&TAPE);
    let union = Union {
        tokens: TAPE.to_vec(),
        visible: (0..14).map(|row| (0..=row).collect()).collect(),
        terms: causal.terms.clone(),
    };
    let found = union_log_probabilities(&model, &union).unwrap();
    let expected = log_probabilities(&model, &[causal], &mut |_| {}).unwrap();
    assert!(worst(&found, &expected) <= near::LOGP);
}

#[test]
fn batched_segments_give_what_single_ones_give() {
    let model = model(Family::Qwen3, 2);
    let together = evaluate(&model, &segments(), &mut |_| {}).unwrap();
    let mut apart = pleach_train::evaluation::Evaluation::default();
    for segment in segments() {
        let one = evaluate(&model, &[segment], &mut |_| {}).unwrap();
        apart.logp.extend(one.logp);
        apart.gradients.accumulate(one.gradients);
    }
    assert!(worst(&together.logp, &apart.logp) <= near::LOGP);
    assert!(relative_gradient_error(&apart.gradients, &together.gradients) <= near::GRADIENT);
}

#[test]
fn invalid_unions_are_refused() {
    let model = model(Family::Llama, 1);
    let refuse = |change: &dyn Fn(&mut Union)| {
        let mut union = union();
        change(&mut union);
        union_log_probabilities(&model, &union).unwrap_err()
    };
    let found = refuse(&|union| union.visible.truncate(3));
    assert!(matches!(found, TrainError::ArrayLength { array: "visible", .. }), "{found}");
    let found = refuse(&|union| union.terms[0].source = 14);
    assert!(matches!(found, TrainError::TermSource { source_index: 14, .. }), "{found}");
    let found = refuse(&|union| union.tokens[3] = 61);
    assert_eq!(found, TrainError::Vocabulary { token: 61, vocabulary: 61 });
    let found = refuse(&|union| union.visible[4] = vec![1]);
    assert!(matches!(found, TrainError::Kernel(_)), "{found}");
}

//! Contract: training on the packed tree is training on its paths: after each of five optimiser
//! steps every parameter agrees, to rounding, with a model trained on one causal row per path.
//! Agreement at the first step alone would prove little: a wrong gradient moves the parameters, and
//! only the next steps are taken from there.

use crate::fixtures::{causal, device::On, near};
use burn::tensor::DType;
use burn::{
    module::{Module, ModuleVisitor, Param},
    optim::{AdamWConfig, GradientsParams, SgdConfig},
    tensor::Tensor,
};
use pleach_kernels::problem::NamedProblem;
use pleach_layout::{Sequence, Term};
use pleach_train::{
    Batch,
    decoder::{Decoder, DecoderConfig, Family},
    objective::NllConfig,
};

const VOCABULARY: u32 = 40;
const STEPS: usize = 5;

/// A named problem of some tokens with a loss term on every token that has a parent.
fn packed(named: NamedProblem, time: usize) -> Sequence {
    let tree = named.tree(time);
    let parent = |token: usize| (0..token).rev().find(|&earlier| tree.ends[earlier] > token as i32);
    let tokens: Vec<u32> =
        (0..time as u32).map(|token| (token * 29 + token * token / 7) % VOCABULARY).collect();
    let term = |token: usize| {
        let source = parent(token)? as u32;
        Some(Term {
            source,
            target: tokens[token],
            generation: token as u32,
            offset: 0,
            weight: 1.0,
        })
    };
    let terms = (0..time).filter_map(term).collect();
    Sequence { tokens, positions: tree.positions, ends: tree.ends, terms }
}

/// One causal row per path from a root to a leaf, each term in the first path that it lies on.
fn paths(packed: &Sequence) -> Vec<Sequence> {
    let time = packed.tokens.len();
    let leaf = |token: &usize| *token + 1 == time || packed.ends[*token] == *token as i32 + 1;
    let mut left = packed.terms.clone();
    (0..time)
        .filter(leaf)
        .map(|leaf| {
            let path: Vec<usize> =
                (0..=leaf).filter(|&token| packed.ends[token] > leaf as i32).collect();
            let place = |token: u32| {
                path.iter().position(|&on_path| on_path == token as usize).map(|place| place as u32)
            };
            // The generation of a term is its token.
            let (here, later): (Vec<Term>, Vec<Term>) =
                left.iter().cloned().partition(|term| place(term.generation).is_some());
            left = later;
            let terms = here
                .into_iter()
                .map(|term| Term { source: place(term.source).unwrap(), ..term })
                .collect();
            let tokens: Vec<u32> = path.iter().map(|&token| packed.tokens[token]).collect();
            Sequence { terms, ..causal(&tokens) }
        })
        .collect()
}

/// All parameters of a model, in order.
fn parameters(model: &Decoder) -> Vec<Vec<f64>> {
    struct Collect(Vec<Vec<f64>>);
    impl ModuleVisitor for Collect {
        fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
            self.0.push(parameter.val().try_into_vec_as().unwrap());
        }
    }
    let mut collect = Collect(Vec::new());
    model.visit(&mut collect);
    collect.0
}

#[derive(Clone, Copy, Debug)]
enum Optimiser {
    Sgd,
    AdamW,
}

/// The parameters after each step.
fn train(model: Decoder, sequences: &[Sequence], optimiser: Optimiser) -> Vec<Vec<Vec<f64>>> {
    match optimiser {
        Optimiser::Sgd => {
            let mut sgd = SgdConfig::new().init();
            steps(model, sequences, |model, gradients| sgd.step(1e-3, model, gradients))
        }
        Optimiser::AdamW => {
            let mut adam = AdamWConfig::new().init();
            steps(model, sequences, |model, gradients| adam.step(1e-2, model, gradients))
        }
    }
}

fn steps(
    mut model: Decoder,
    sequences: &[Sequence],
    mut step: impl FnMut(Decoder, GradientsParams) -> Decoder,
) -> Vec<Vec<Vec<f64>>> {
    let batch = Batch::new(sequences, &model.devices()[0]).unwrap();
    let nll = NllConfig::new().init();
    let mut trace = Vec::new();
    for _ in 0..STEPS {
        let loss = nll.forward(&model, &batch).unwrap().loss;
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = step(model, gradients);
        trace.push(parameters(&model));
    }
    trace
}

/// Largest difference of two sets of parameters over the largest parameter.
fn difference(found: &[Vec<f64>], expected: &[Vec<f64>]) -> f64 {
    let largest = expected.iter().flatten().fold(0.0f64, |max, x| max.max(x.abs()));
    near::worst(found.iter().flatten().copied(), expected.iter().flatten().copied()) / largest
}

fn check(
    name: On,
    precision: DType,
    named: NamedProblem,
    config: DecoderConfig,
    optimiser: Optimiser,
) {
    let Some(device) = name.open() else { return };
    let of_a_step = match precision {
        DType::F64 => near::UPDATE,
        _ => near::UPDATE_SINGLE,
    };
    let tree = packed(named, 150);
    let rows = paths(&tree);
    assert!(rows.len() > 1, "{named} has one path only");
    assert_eq!(rows.iter().map(|row| row.terms.len()).sum::<usize>(), tree.terms.len());
    let model =
        || Decoder::seeded(config.clone(), 11, precision, &device.clone().autodiff()).unwrap();
    let start = parameters(&model());
    let found = train(model(), &[tree], optimiser);
    let expected = train(model(), &rows, optimiser);
    for (step, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let context =
            format!("{named} on {name:?} in {precision:?}, {optimiser:?}, step {}", step + 1);
        let moved = difference(found, &start);
        assert!(moved > 1e-4, "{context}: the parameters hardly moved: {moved:e}");
        let error = difference(found, expected);
        assert!(error <= (step + 1) as f64 * of_a_step, "{context}: {error:e}");
    }
}

#[test]
fn five_steps_on_a_fold_are_five_steps_on_its_paths() {
    for name in [On::Flex, On::Ndarray] {
        for optimiser in [Optimiser::Sgd, Optimiser::AdamW] {
            check(
                name,
                DType::F64,
                NamedProblem::Fold,
                DecoderConfig::small(Family::Qwen3, 40, 2),
                optimiser,
            );
        }
    }
}

#[test]
fn five_steps_on_a_random_tree_are_five_steps_on_its_paths_with_windows_too() {
    let plain = DecoderConfig::small(Family::Llama, 40, 3);
    let windowed = DecoderConfig { windows: vec![Some(5), None, Some(40)], ..plain.clone() };
    for name in [On::Flex, On::Ndarray] {
        for config in [&plain, &windowed] {
            let tree = NamedProblem::RandomTree;
            check(name, DType::F64, tree, config.clone(), Optimiser::AdamW);
        }
    }
}

#[test]
fn five_steps_in_float32_stay_within_its_rounding() {
    for name in [On::Flex, On::Ndarray, On::Wgpu] {
        check(
            name,
            DType::F32,
            NamedProblem::GroupLongAnswers,
            DecoderConfig::small(Family::Qwen2, 40, 2),
            Optimiser::Sgd,
        );
    }
}

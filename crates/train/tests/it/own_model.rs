//! Contract: a burn model of the user's own, its parameters named as it likes, trains on packed
//! trees through [`CausalModel`]: packed equals segments, and a burn optimiser lowers its loss.

use crate::fixtures::device::cpu;
use crate::fixtures::{causal, near};
use burn::{
    module::Module,
    nn::{Embedding, EmbeddingConfig, Linear, LinearConfig},
    optim::{GradientsParams, SgdConfig},
    tensor::{DType, Device, Tensor},
};
use pleach_kernels::{AttentionConfig, tree_attention};
use pleach_layout::{Sequence, Term};
use pleach_train::{
    Batch, CausalModel, TrainError,
    decoder::RmsNorm,
    equivalence::{Equivalence, compare},
    evaluation::evaluate,
    objective::NllConfig,
    to_dtype,
};

const WIDTH: usize = 16;
const HEADS: usize = 2;

/// Learned positions, two layers of attention with residuals, a head with a bias.
#[derive(Module, Debug)]
struct Tiny {
    token: Embedding,
    place: Embedding,
    mix: Vec<Linear>,
    head: Linear,
}

impl Tiny {
    fn new(device: &Device) -> Self {
        device.seed(3);
        Self {
            token: EmbeddingConfig::new(32, WIDTH).init(device),
            place: EmbeddingConfig::new(16, WIDTH).init(device),
            mix: (0..2).map(|_| LinearConfig::new(WIDTH, 3 * WIDTH).init(device)).collect(),
            head: LinearConfig::new(WIDTH, 32).init(device),
        }
    }
}

impl CausalModel for Tiny {
    fn hidden(&self, batch: &Batch) -> Result<Tensor<3>, TrainError> {
        let [b, t] = batch.dims();
        let mut x =
            self.token.forward(batch.tokens_bt()) + self.place.forward(batch.positions_bt());
        for mix in &self.mix {
            let heads =
                |part: Tensor<3>| part.reshape([b, t, HEADS, WIDTH / HEADS]).swap_dims(1, 2);
            let [q, k, v]: [Tensor<3>; 3] = mix.forward(x.clone()).chunk(3, 2).try_into().unwrap();
            let config = AttentionConfig::for_head_dim(WIDTH / HEADS);
            let o = tree_attention(heads(q), heads(k), heads(v), batch.mask(), &config)?;
            x = x + o.swap_dims(1, 2).reshape([b, t, WIDTH]);
        }
        Ok(x)
    }

    fn vocabulary(&self) -> usize {
        32
    }

    fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        self.head.forward(hidden_nd)
    }
}

fn device() -> Device {
    cpu()
}

fn term(source: u32, target: u32, generation: u32) -> Term {
    Term { source, target, generation, offset: 0, weight: 1.0 }
}

fn packed() -> Sequence {
    Sequence {
        tokens: vec![1, 2, 3, 4, 5, 6],
        positions: vec![0, 1, 2, 3, 2, 3],
        ends: vec![6, 6, 4, 4, 6, 6],
        terms: vec![term(1, 3, 0), term(2, 4, 1), term(1, 5, 2), term(4, 6, 3)],
    }
}

fn segments() -> Vec<Sequence> {
    let sequence =
        |tokens: &[u32], terms: [Term; 2]| Sequence { terms: terms.to_vec(), ..causal(tokens) };
    vec![
        sequence(&[1, 2, 3, 4], [term(1, 3, 0), term(2, 4, 1)]),
        sequence(&[1, 2, 5, 6], [term(1, 5, 2), term(2, 6, 3)]),
    ]
}

#[test]
fn packed_equals_segments_for_a_model_of_ones_own() {
    let model = Tiny::new(&device());
    let mut calls = Vec::new();
    let found =
        compare(&model, &[packed()], &segments(), &mut |done, total| calls.push((done, total)))
            .unwrap();
    assert_eq!(found.dtype, DType::F32);
    assert!(found.max_logp_difference <= near::TINY_LOGP_SINGLE, "{found:?}");
    assert!(found.relative_gradient_error <= near::TINY_GRADIENT_SINGLE, "{found:?}");
    assert_eq!(calls, [(1, 3), (3, 3)]);
}

#[test]
fn gradients_carry_the_names_of_the_users_fields() {
    let evaluation = evaluate(&Tiny::new(&device()), &[packed()], &mut |_| {}).unwrap();
    let names: Vec<&str> = evaluation.gradients.gradients.keys().map(String::as_str).collect();
    let expected = [
        "head.bias",
        "head.weight",
        "mix.0.bias",
        "mix.0.weight",
        "mix.1.bias",
        "mix.1.weight",
        "place.weight",
        "token.weight",
    ];
    assert_eq!(names, expected);
}

#[test]
fn other_terms_are_not_equivalent_but_an_error() {
    let model = Tiny::new(&device());
    let mut fewer = segments();
    fewer[1].terms.pop();
    let found = compare(&model, &[packed()], &fewer, &mut |_, _| {}).unwrap_err();
    assert_eq!(found, TrainError::TermsDiffer { generation: 3, offset: 0 });
    let mut less = packed();
    less.terms.remove(0);
    let found = compare(&model, &[less], &segments(), &mut |_, _| {}).unwrap_err();
    assert_eq!(found, TrainError::TermsDiffer { generation: 0, offset: 0 });
}

#[test]
fn a_burn_optimiser_lowers_the_packed_loss() {
    let device = device().autodiff();
    let mut model = Tiny::new(&device);
    let mut optimiser = SgdConfig::new().init();
    let batch = Batch::new(&[&packed()], &device).unwrap();
    let nll = NllConfig::new().init();
    let mut losses = Vec::new();
    for _ in 0..3 {
        let loss = nll.forward(&model, &batch).unwrap().loss;
        losses.push(loss.clone().into_scalar::<f64>());
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(0.05, model, gradients);
    }
    assert!(losses[0] > losses[1] && losses[1] > losses[2], "{losses:?}");
}

/// A model with a norm behind it: burn's, which computes in float32, or ours.
#[derive(Module, Debug)]
struct Normed {
    model: Tiny,
    burns: Option<burn::nn::RmsNorm>,
    ours: Option<RmsNorm>,
}

impl CausalModel for Normed {
    fn hidden(&self, batch: &Batch) -> Result<Tensor<3>, TrainError> {
        let hidden_btc = self.model.hidden(batch)?;
        Ok(match (&self.burns, &self.ours) {
            (Some(norm), _) => norm.forward(hidden_btc),
            (_, Some(norm)) => norm.forward(hidden_btc),
            _ => hidden_btc,
        })
    }

    fn vocabulary(&self) -> usize {
        self.model.vocabulary()
    }

    fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        self.model.logits(hidden_nd)
    }
}

#[test]
fn a_norm_in_float32_fails_the_comparison_in_float64_and_the_report_says_so() {
    let device = device();
    let burns = Some(burn::nn::RmsNormConfig::new(WIDTH).init(&device));
    let ours = Some(RmsNorm::new(WIDTH, 1e-5, DType::F32, &device));
    let of = |burns, ours| {
        let model = to_dtype(Normed { model: Tiny::new(&device), burns, ours }, DType::F64);
        compare(&model, &[packed()], &segments(), &mut |_, _| {}).unwrap()
    };
    let kept = of(None, ours);
    assert!(kept.holds() && kept.likely_cause().is_none(), "{kept:?}");
    assert_eq!(kept.dtype, DType::F64);
    let lost = of(burns, None);
    assert!(!lost.holds(), "{lost:?}");
    assert!(lost.likely_cause().unwrap().contains("float32"), "{lost:?}");
}

#[test]
fn a_model_that_reads_other_positions_is_told_to_look_at_mask_and_positions() {
    let device = device();
    let model = to_dtype(Tiny::new(&device), DType::F64);
    let mut shifted = segments();
    shifted[1].positions.iter_mut().for_each(|position| *position += 1);
    let found = compare(&model, &[packed()], &shifted, &mut |_, _| {}).unwrap();
    assert!(found.likely_cause().unwrap().contains("positions"), "{found:?}");
}

#[test]
fn a_difference_that_is_no_number_is_said_to_be_one_whichever_of_the_two_it_is() {
    for (logp, gradient) in [(f64::NAN, 0.1), (0.1, f64::NAN), (f64::INFINITY, 0.0)] {
        let found = Equivalence {
            max_logp_difference: logp,
            relative_gradient_error: gradient,
            dtype: DType::F64,
        };
        assert!(!found.holds() && found.likely_cause().unwrap().contains("no number"), "{found:?}");
    }
}

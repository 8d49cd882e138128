//! Contract: in float32 every device gives the values and gradients of the objectives that the
//! first CPU device gives in float64: rows of logits to the rounding of their formula, and behind a
//! decoder to that of its layers; ruled-out tokens included.

use crate::fixtures::{
    causal,
    device::On,
    near::{self, assert_all_near},
    table::noise,
};
use burn::{
    module::Module,
    tensor::{DType, Device, Tensor, TensorData},
};
use pleach_layout::TermId;
use pleach_train::{
    Batch, CausalModel,
    decoder::{Decoder, DecoderConfig, Family},
    equivalence::{collect_gradients, relative_gradient_error},
    evaluation::log_probabilities,
    objective::{
        Alignment, DivergenceConfig, DivergenceKind, Pairs, PolicyGradientConfig, PolicySignal,
        Support,
    },
};

/// The devices that this machine has; software Vulkan may not be missing where it is required.
fn devices() -> Vec<Device> {
    On::ALL.into_iter().filter_map(On::open).map(Device::autodiff).collect()
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.try_into_vec_as::<f64>().unwrap()
}

/// Divergence, total variation and gradient of two rows, some tokens of which are ruled out.
fn rows(config: &DivergenceConfig, device: &Device, dtype: DType) -> Vec<f64> {
    let logits = |seed, ruled_out: &[usize]| {
        let mut values = noise(seed, 12);
        ruled_out.iter().for_each(|&at| values[at] = f64::NEG_INFINITY);
        Tensor::<2>::from_data(TensorData::new(values, [2, 6]), (device, dtype))
    };
    let (kept, fewer): (&[usize], &[usize]) = (&[5, 7], &[2, 5, 7]);
    let (p, q) =
        if config.kind == DivergenceKind::ReverseKl { (kept, fewer) } else { (fewer, kept) };
    let student = logits(2, q).require_grad();
    let found = config.init().rows(logits(1, p), student.clone(), &[0, 3]).unwrap();
    let gradients = found.divergence_k1.clone().sum().backward();
    let variation = found.total_variation_k1.map(numbers).unwrap_or_default();
    [numbers(found.divergence_k1), variation, numbers(student.grad(&gradients).unwrap())].concat()
}

#[test]
fn every_divergence_is_the_same_on_every_device() {
    let devices = devices();
    for kind in
        [DivergenceKind::ForwardKl, DivergenceKind::ReverseKl, DivergenceKind::JensenShannon(0.3)]
    {
        for support in [Support::Vocabulary, Support::TopK(2), Support::SampledToken] {
            let config =
                DivergenceConfig::new().with_kind(kind).with_support(support).with_temperature(0.8);
            let expected = rows(&config, &devices[0], DType::F64);
            assert!(
                expected.iter().all(|value| value.is_finite()),
                "{kind:?} {support:?}: {expected:?}"
            );
            for device in &devices {
                let found = rows(&config, device, DType::F32);
                assert_all_near(
                    &found,
                    &expected,
                    near::FORMULA_SINGLE,
                    format_args!("{kind:?} {support:?} on {device:?}"),
                );
            }
        }
    }
}

#[test]
fn a_policy_gradient_and_a_chunked_divergence_are_the_same_on_every_device() {
    let devices = devices();
    let model = |device: &Device, precision| {
        Decoder::seeded(DecoderConfig::small(Family::Qwen3, 17, 1), 3, precision, device).unwrap()
    };
    let sequences = [causal(&[1, 2, 3, 4, 5, 6]), causal(&[7, 2, 3, 4, 5, 6])];
    let exact =
        log_probabilities(&model(&devices[0], DType::F64), &sequences, &mut |_| {}).unwrap();
    let near = |seed| {
        exact
            .iter()
            .zip(noise(seed, 10))
            .map(|(term, noise)| term.logp + 0.5 * noise)
            .collect::<Vec<_>>()
    };
    let run = |device: &Device, precision| {
        let model = model(device, precision);
        let batch = Batch::new(&sequences, device).unwrap();
        let terms = batch.terms();
        let mut signal = PolicySignal::new(noise(5, terms.len()), near(6));
        signal.reference = Some(near(7));
        let hidden = model.hidden(&batch).unwrap();
        let policy = PolicyGradientConfig::new().with_reference_kl(0.1).with_chunk(3).init();
        let policy = policy.forward_hidden(&model, hidden.clone(), terms, &signal).unwrap().loss;
        let mut other = terms.clone();
        other.ids.iter_mut().skip(5).for_each(|id| id.generation = 1);
        let aligned = (1..5).map(|offset| Alignment {
            student: TermId::new(0, offset),
            teacher: TermId::new(1, offset),
        });
        let pairs = Pairs::new(&other, &other, aligned).unwrap();
        let divergence = DivergenceConfig::new().with_chunk(3).init();
        let divergence = divergence
            .forward_hidden((&model, hidden.clone()), (&model.valid(), hidden), &pairs)
            .unwrap()
            .loss;
        let loss = policy.clone().add(divergence.clone());
        let values = [numbers(policy), numbers(divergence)].concat();
        (values, collect_gradients(&model, loss.backward()).unwrap())
    };
    let expected = run(&devices[0], DType::F64);
    for device in &devices {
        let found = run(device, DType::F32);
        assert_all_near(&found.0, &expected.0, near::LOGP_SINGLE, format_args!("{device:?}"));
        let error = relative_gradient_error(&expected.1, &found.1);
        assert!(error <= near::GRADIENT_SINGLE, "{device:?}: {error:e}");
    }
}

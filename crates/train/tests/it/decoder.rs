//! Contract: the decoder computes in the dtype it is given, is the same for a seed on every
//! machine, honours sliding windows by position, and agrees between devices.

use crate::fixtures::{
    causal,
    device::{On, cpu},
    near::{self, assert_all_near},
};
use burn::tensor::{DType, Device};
use pleach_layout::{Sequence, Term};
use pleach_train::{
    TrainError,
    decoder::{Decoder, DecoderConfig, Family, RopeScaling},
    equivalence::{compare, relative_gradient_error},
    evaluation::{Evaluation, evaluate, log_probabilities},
};

const FAMILIES: [Family; 3] = [Family::Llama, Family::Qwen2, Family::Qwen3];

fn model(config: DecoderConfig, dtype: DType, device: &Device) -> Decoder {
    Decoder::seeded(config, 42, dtype, device).unwrap()
}

fn term(source: u32, target: u32, generation: u32) -> Term {
    Term { source, target, generation, offset: 0, weight: 1.0 }
}

fn packed() -> Sequence {
    Sequence {
        tokens: vec![1, 2, 3, 4, 5, 6, 7, 8],
        positions: vec![0, 1, 2, 3, 4, 2, 3, 4],
        ends: vec![8, 8, 5, 5, 5, 8, 8, 8],
        terms: vec![term(1, 3, 0), term(3, 5, 1), term(1, 6, 2), term(6, 8, 3)],
    }
}

fn segments() -> Vec<Sequence> {
    let sequence =
        |tokens: &[u32], terms: [Term; 2]| Sequence { terms: terms.to_vec(), ..causal(tokens) };
    vec![
        sequence(&[1, 2, 3, 4, 5], [term(1, 3, 0), term(3, 5, 1)]),
        sequence(&[1, 2, 6, 7, 8], [term(1, 6, 2), term(3, 8, 3)]),
    ]
}

fn run(model: &Decoder) -> Evaluation {
    evaluate(model, &[packed()], &mut |_| {}).unwrap()
}

fn worst(found: &Evaluation, expected: &Evaluation) -> f64 {
    let logp = |side: &Evaluation| side.logp.iter().map(|term| term.logp).collect::<Vec<_>>();
    near::worst(logp(found), logp(expected))
}

#[test]
fn a_seed_gives_the_same_decoder_everywhere() {
    let model = model(DecoderConfig::small(Family::Llama, 50, 2), DType::F64, &cpu());
    let found = log_probabilities(&model, &[packed()], &mut |_| {}).unwrap();
    let found: Vec<f64> = found.iter().map(|term| term.logp).collect();
    let expected =
        [-4.356082219552166, -2.5211770379354266, -3.2828190822864576, -3.6948492765959675];
    assert_all_near(&found, &expected, near::LOGP, "log p");
}

#[test]
fn packed_equals_segments_with_sliding_windows() {
    for family in FAMILIES {
        let mut config = DecoderConfig::small(family, 50, 3);
        config.windows = vec![Some(2), None, Some(3)];
        let windowed = model(config, DType::F64, &cpu());
        let found = compare(&windowed, &[packed()], &segments(), &mut |_, _| {}).unwrap();
        assert!(found.max_logp_difference <= near::LOGP, "{family:?}: {found:?}");
        assert!(found.relative_gradient_error <= near::GRADIENT, "{family:?}: {found:?}");
        let full = model(DecoderConfig::small(family, 50, 3), DType::F64, &cpu());
        assert!(worst(&run(&windowed), &run(&full)) > 1e-3, "a window must change something");
    }
}

#[test]
fn float32_follows_float64() {
    for family in FAMILIES {
        let config = DecoderConfig::small(family, 50, 2);
        let single = run(&model(config.clone(), DType::F32, &cpu()));
        let double = run(&model(config, DType::F64, &cpu()));
        let difference = worst(&single, &double);
        assert!(difference > 0.0 && difference <= near::LOGP_SINGLE, "{family:?}: {difference:e}");
        let error = relative_gradient_error(&double.gradients, &single.gradients);
        assert!(error <= near::GRADIENT_SINGLE, "{family:?}: {error:e}");
    }
}

#[test]
fn every_device_gives_the_same_gradients() {
    for family in FAMILIES {
        let config = DecoderConfig::small(family, 50, 2);
        let expected = run(&model(config.clone(), DType::F64, &cpu()));
        for on in On::ALL {
            let Some(device) = on.open() else { continue };
            let found = run(&model(config.clone(), on.dtype(), &device));
            let (logp, gradient) = match on.dtype() {
                DType::F64 => (near::LOGP, near::GRADIENT),
                _ => (near::LOGP_SINGLE, near::GRADIENT_SINGLE),
            };
            assert!(worst(&found, &expected) <= logp, "{family:?} on {on:?}");
            let error = relative_gradient_error(&expected.gradients, &found.gradients);
            assert!(error <= gradient, "{family:?} on {on:?}: {error:e}");
        }
    }
}

#[test]
fn impossible_configurations_are_refused() {
    let attempt = |change: &dyn Fn(&mut DecoderConfig)| {
        let mut config = DecoderConfig::small(Family::Llama, 10, 2);
        change(&mut config);
        Decoder::seeded(config, 1, DType::F32, &cpu()).map(|_| ()).unwrap_err()
    };
    for change in [
        (|config| config.heads = 3) as fn(&mut DecoderConfig),
        |config| config.head_dim = 7,
        |config| config.layers = 3,
        |config| config.vocab_size = 0,
        |config| config.rope_theta = f64::NAN,
        |config| config.windows[0] = Some(0),
    ] {
        let found = attempt(&change);
        assert!(matches!(found, TrainError::Config { .. }), "{found}");
    }
}

#[test]
fn parameters_are_counted() {
    for family in FAMILIES {
        let config = DecoderConfig::small(family, 50, 2);
        let counted = burn::module::Module::num_params(&model(config.clone(), DType::F32, &cpu()));
        assert_eq!(config.parameters(), counted as u64, "{family:?}");
    }
}

#[test]
fn dtypes_that_no_parameter_is_held_in_are_refused() {
    let config = DecoderConfig::small(Family::Llama, 9, 1);
    let refused = Decoder::seeded(config, 0, DType::I64, &cpu()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a decoder's parameters cannot be in I64: use DType::F32 or DType::F64"
    );
}

#[test]
fn packed_is_segments_where_rotated_queries_and_keys_are_scaled_and_the_scale_changes_the_model() {
    let mut config = DecoderConfig::small(Family::Llama, 50, 2);
    let plain = run(&model(config.clone(), DType::F64, &cpu()));
    config.rope_scaling = RopeScaling::Yarn {
        factor: 4.0,
        attention_factor: 1.2,
        beta_fast: 32.0,
        beta_slow: 1.0,
        original_context: 64.0,
        truncate: true,
    };
    let scaled = model(config, DType::F64, &cpu());
    let found = compare(&scaled, &[packed()], &segments(), &mut |_, _| {}).unwrap();
    assert!(found.holds(), "{found:?}");
    assert!(worst(&run(&scaled), &plain) > 1e-6);
}

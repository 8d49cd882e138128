//! Contract: with keys and values evicted in place, the packed pass and a replay through a
//! key/value cache give the same log-probabilities, loss and gradients, in float64 and for every
//! family.

use crate::fixtures::device::cpu;
use crate::fixtures::{
    causal,
    near::{self, assert_near},
};
use burn::tensor::DType;
use pleach_layout::Sequence;
use pleach_train::{
    TrainError,
    decoder::{Decoder, DecoderConfig, Family},
    equivalence::{Equivalence, relative_gradient_error},
    evaluation::{evaluate, replay},
};

fn model(config: DecoderConfig) -> Decoder {
    let device = cpu();
    Decoder::seeded(config, 17, DType::F64, &device).unwrap()
}

/// Tokens 2 and 3 are dropped before token 6 and token 5 before token 8, while token 4 between them
/// stays.
fn evicting() -> Sequence {
    Sequence {
        ends: vec![10, 10, 6, 6, 10, 8, 10, 10, 10, 10],
        ..causal(&[5, 9, 2, 14, 7, 3, 11, 8, 1, 6])
    }
}

#[test]
fn the_tape_is_what_a_key_value_cache_computes() {
    let mut other = causal(&[4, 4, 12, 10]);
    other.ends[1] = 2;
    other.terms.iter_mut().for_each(|term| (term.generation, term.weight) = (1, -0.5));
    let tapes = [evicting(), Sequence::default(), other];
    for family in [Family::Llama, Family::Qwen2, Family::Qwen3] {
        let model = model(DecoderConfig::small(family, 16, 3));
        let found = evaluate(&model, &tapes, &mut |_| {}).unwrap();
        let expected = replay(&model, &tapes).unwrap();
        assert_eq!(expected.logp.len(), 12);
        assert_eq!(found.gradients.gradients.len(), expected.gradients.gradients.len());
        assert_near(
            found.nll,
            expected.nll,
            12.0 * near::LOGP,
            format_args!("twelve terms of {family:?}"),
        );
        let equivalence = Equivalence::between(&found, &expected, DType::F64).unwrap();
        assert!(equivalence.max_logp_difference <= near::LOGP, "{family:?}: {equivalence:?}");
        assert!(
            equivalence.relative_gradient_error <= near::GRADIENT,
            "{family:?}: {equivalence:?}"
        );
    }
}

#[test]
fn what_is_evicted_is_missed() {
    let model = model(DecoderConfig::small(Family::Llama, 16, 3));
    let whole = Sequence { ends: vec![10; 10], ..evicting() };
    let (evicting, whole) =
        (replay(&model, &[evicting()]).unwrap(), replay(&model, &[whole]).unwrap());
    for (index, (a, b)) in evicting.logp.iter().zip(&whole.logp).enumerate() {
        let difference = (a.logp - b.logp).abs();
        assert!(
            if index < 6 { difference == 0.0 } else { difference > 1e-3 },
            "term {index}: {difference:e}"
        );
    }
    assert!(relative_gradient_error(&whole.gradients, &evicting.gradients) > 1e-3);
}

#[test]
fn a_replay_refuses_sliding_windows() {
    let mut config = DecoderConfig::small(Family::Qwen2, 16, 2);
    config.windows[1] = Some(4);
    assert!(matches!(replay(&model(config), &[evicting()]), Err(TrainError::Unsupported { .. })));
}

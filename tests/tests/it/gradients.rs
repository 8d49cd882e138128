//! Contract, on every CPU device, in float64, on random trees under decoders of three families and 2
//! to 4 layers: packed is segments to the last gradient, for the plain loss, for SDCC and for a
//! policy gradient, and the tape under `kv_evict` is what a key/value cache computes.

use crate::drawn::{GRADIENT, LOGP, config, decoders_on, tree_of};
use burn::tensor::{DType, Device};
use pleach_layout::{Layouts, Sequence, TermId};
use pleach_tests::{Trees, trees};
use pleach_train::{
    Batch,
    decoder::Decoder,
    equivalence::{Equivalence, GradientMap, collect_gradients, compare, relative_gradient_error},
    evaluation::{evaluate, replay},
    objective::{
        Alignment, Pairs, PolicyGradientConfig, PolicySignal, Reduction, SdccBatch, SdccConfig,
        Teacher,
    },
};
use proptest::prelude::*;

fn assert_equal(equivalence: &Equivalence) -> Result<(), TestCaseError> {
    prop_assert!(equivalence.max_logp_difference <= LOGP, "{:?}", equivalence);
    prop_assert!(equivalence.relative_gradient_error <= GRADIENT, "{:?}", equivalence);
    Ok(())
}

/// A loss and its gradients.
type Losses = (f64, GradientMap);

/// Losses over `terms` terms are equal to rounding, and so are their gradients.
fn assert_losses(found: &Losses, expected: &Losses, terms: usize) -> Result<(), TestCaseError> {
    let difference = (found.0 - expected.0).abs();
    prop_assert!(difference <= LOGP * (terms.max(1) as f64), "{} {}", found.0, expected.0);
    let error = relative_gradient_error(&expected.1, &found.1);
    prop_assert!(error <= GRADIENT, "{}", error);
    Ok(())
}

/// SDCC with a teacher that reads the live views in `layout`.
fn sdcc(model: &Decoder, layouts: &Layouts<'_>, live: &[Sequence], device: &Device) -> Losses {
    let compressed = layouts.compressed().unwrap().sequences;
    let filled = |sequences: &[Sequence]| {
        let filled = sequences.iter().filter(|sequence| !sequence.is_empty());
        Batch::new(filled, device).unwrap()
    };
    let (student, teacher) = (filled(&compressed), filled(live));
    let diverging = layouts.diverging().unwrap().into_iter();
    let aligned = diverging.map(|id| Alignment { student: id, teacher: id });
    let pairs = Pairs::new(student.terms(), teacher.terms(), aligned).unwrap();
    let batch = SdccBatch { student, teacher, pairs };
    let sdcc = SdccConfig::new().with_reduction(Reduction::Sum).init();
    let loss = sdcc.forward(model, &Teacher::Live, &batch, 0.7).unwrap().loss;
    let value = loss.clone().into_scalar::<f64>();
    (value, collect_gradients(model, loss.backward()).unwrap())
}

/// A policy gradient whose signal goes by the name of a term.
fn policy(model: &Decoder, sequences: &[Sequence], device: &Device) -> Losses {
    let batch = Batch::new(sequences, device).unwrap();
    let of = |TermId { generation, offset }| {
        (f64::from(generation.wrapping_mul(7).wrapping_add(offset.wrapping_mul(3)) % 11) - 5.0)
            / 5.0
    };
    let advantages: Vec<f64> = batch.terms().ids.iter().copied().map(of).collect();
    let recorded = advantages.iter().map(|advantage| -4.0 + 0.3 * advantage).collect();
    let objective = PolicyGradientConfig::new().with_reduction(Reduction::Sum).init();
    let signal = PolicySignal::new(advantages, recorded);
    let loss = objective.forward(model, &batch, &signal).unwrap().loss;
    let value = loss.clone().into_scalar::<f64>();
    (value, collect_gradients(model, loss.backward()).unwrap())
}

macro_rules! properties_on {
    ($name:ident, $device:expr) => {
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(config())]

                #[test]
                fn packed_is_segments_to_the_last_gradient(
                    records in trees(Trees::default()), model in decoders_on($device),
                ) {
                    let tree = tree_of(&records);
                    let layouts = Layouts::new(&tree).unwrap();
                    let segments = layouts.segments().unwrap().sequences;
                    let packed = layouts.packed().unwrap().sequences;
                    if !packed[0].is_empty() {
                        assert_equal(
                            &compare(&model, &packed, &segments, &mut |_, _| {}).unwrap(),
                        )?;
                    }
                }

                #[test]
                fn the_tape_is_what_a_key_value_cache_computes(
                    records in trees(Trees::kv_evict()), model in decoders_on($device),
                ) {
                    let tree = tree_of(&records);
                    let packed = Layouts::new(&tree).unwrap().packed().unwrap().sequences;
                    if !packed[0].is_empty() {
                        let found = evaluate(&model, &packed, &mut |_| {}).unwrap();
                        let expected = replay(&model, &packed).unwrap();
                        let precision = DType::F64;
                        assert_equal(&Equivalence::between(&found, &expected, precision).unwrap())?;
                    }
                }

                #[test]
                fn sdcc_is_the_same_whether_its_teacher_reads_packed_or_segments(
                    records in trees(Trees::default()), model in decoders_on($device),
                ) {
                    let tree = tree_of(&records);
                    let layouts = Layouts::new(&tree).unwrap();
                    let packed = layouts.packed().unwrap().sequences;
                    let terms: usize = packed.iter().map(|sequence| sequence.terms.len()).sum();
                    if terms > 0 {
                        let segments = layouts.segments().unwrap().sequences;
                        let device = $device;
                        let found = sdcc(&model, &layouts, &packed, &device);
                        let expected = sdcc(&model, &layouts, &segments, &device);
                        assert_losses(&found, &expected, terms)?;
                    }
                }

                #[test]
                fn a_policy_gradient_over_packed_is_that_over_segments(
                    records in trees(Trees::default()), model in decoders_on($device),
                ) {
                    let tree = tree_of(&records);
                    let layouts = Layouts::new(&tree).unwrap();
                    let packed = layouts.packed().unwrap().sequences;
                    let terms: usize = packed.iter().map(|sequence| sequence.terms.len()).sum();
                    if terms > 0 {
                        let segments = layouts.segments().unwrap().sequences;
                        let device = $device;
                        let found = policy(&model, &packed, &device);
                        let expected = policy(&model, &segments, &device);
                        assert_losses(&found, &expected, terms)?;
                    }
                }
            }
        }
    };
}

properties_on!(flex, Device::flex().autodiff());
#[cfg(feature = "ndarray")]
properties_on!(ndarray, {
    #[allow(deprecated, reason = "kept as the second CPU backend to check against")]
    let device = Device::ndarray();
    device.autodiff()
});

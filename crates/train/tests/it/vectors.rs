//! Contract: on every conformance vector, for every model family and on every CPU device,
//! log-probabilities agree with an independent implementation to 1e-10 and gradients to 1e-9
//! relative in float64, for all four layouts and for keys and values evicted in place.

use crate::fixtures::{
    Case,
    device::On,
    near::{self, assert_near},
    shared,
};
use burn::tensor::DType;
use pleach_train::{
    decoder::{Decoder, load_decoder},
    equivalence::{compare, relative_gradient_error},
    evaluation::{TermLogp, evaluate, log_probabilities},
};

const MODELS: [&str; 3] = ["llama", "qwen2", "qwen3"];

fn model(name: &str, device: On) -> Decoder {
    let folder = shared("vectors/models").unwrap().join(name);
    load_decoder(&folder, DType::F64, &device.open().unwrap()).unwrap()
}

fn assert_logp(context: &str, found: &[TermLogp], expected: &[(u32, u32, f64)]) {
    let mut found: Vec<_> = found.iter().map(|t| (t.generation, t.offset, t.logp)).collect();
    found.sort_by_key(|&(generation, offset, _)| (generation, offset));
    assert_eq!(found.len(), expected.len(), "{context}: number of terms");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!((found.0, found.1), (expected.0, expected.1), "{context}");
        assert_near(
            found.2,
            expected.2,
            near::VECTOR_LOGP,
            format_args!("{context}, generation {}, offset {}", found.0, found.1),
        );
    }
}

fn check_device(device: On) {
    for name in MODELS {
        let cases = Case::all();
        if cases.is_empty() {
            return;
        }
        let model = model(name, device);
        for case in &cases {
            check_case(&model, name, case, device);
        }
    }
}

fn check_case(model: &Decoder, name: &str, case: &Case, device: On) {
    let quiet = &mut |_: usize| {};
    let context = format!("{} {name} on {device:?}", case.name);
    let packed = evaluate(model, &case.layout("packed"), quiet).unwrap();
    assert_logp(&context, &packed.logp, &case.logp(name, "exact"));
    if let Some(expected) = case.gradients("nll-sum-exact", name) {
        let names = |map: &pleach_train::equivalence::GradientMap| -> Vec<(String, Vec<usize>)> {
            map.gradients.iter().map(|(name, g)| (name.clone(), g.shape.clone())).collect()
        };
        assert_eq!(names(&packed.gradients), names(&expected), "{context}: names and shapes");
        let error = relative_gradient_error(&expected, &packed.gradients);
        assert!(error <= near::VECTOR_GRADIENT, "{context}: relative gradient error {error:e}");
    }
    for (layout, expected) in
        [("segments", "exact"), ("compressed", "compressed"), ("full", "full")]
    {
        let sequences = case.layout(layout);
        if sequences.is_empty() {
            assert!(case.name.ends_with("_kv_evict"), "{context}: no {layout}");
            continue;
        }
        let found = log_probabilities(model, &sequences, quiet).unwrap();
        assert_logp(&format!("{context}, {layout}"), &found, &case.logp(name, expected));
    }
}

#[cfg(feature = "flex")]
#[test]
fn every_vector_holds_on_flex() {
    check_device(On::Flex);
}

#[cfg(feature = "ndarray")]
#[test]
fn every_vector_holds_on_ndarray() {
    check_device(On::Ndarray);
}

#[cfg(feature = "flex")]
#[test]
fn packed_equals_segments_in_log_probabilities_and_gradients() {
    for case in Case::all().iter().filter(|case| !case.layout("segments").is_empty()) {
        let model = model("qwen3", On::Flex);
        let (packed, segments) = (case.layout("packed"), case.layout("segments"));
        let found = compare(&model, &packed, &segments, &mut |_, _| {}).unwrap();
        assert_eq!(found.dtype, DType::F64);
        assert!(found.max_logp_difference <= near::LOGP, "{}: {found:?}", case.name);
        assert!(found.relative_gradient_error <= near::GRADIENT, "{}: {found:?}", case.name);
    }
}

#[cfg(feature = "flex")]
#[test]
fn compressed_gradients_are_not_those_of_the_live_views() {
    for case in Case::all().iter().filter(|case| case.name == "summary_fold") {
        let model = model("llama", On::Flex);
        let quiet = &mut |_: usize| {};
        let compressed = evaluate(&model, &case.layout("compressed"), quiet).unwrap();
        let exact = case.gradients("nll-sum-exact", "llama").unwrap();
        assert!(relative_gradient_error(&exact, &compressed.gradients) > 0.1);
    }
}

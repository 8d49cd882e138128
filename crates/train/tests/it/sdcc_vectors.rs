//! Contract: on every conformance vector the residual at every diverging term, and every gradient
//! of the summed task loss plus 0.1 times the summed residual, are those of an independent
//! implementation, to 1e-9 relative in float64, whatever the chunk.

use crate::fixtures::device::cpu;
use crate::fixtures::{
    Case,
    near::{VECTOR_GRADIENT, assert_near},
    shared,
};
use burn::tensor::DType;
use pleach_layout::Layouts;
use pleach_train::{
    decoder::{Decoder, load_decoder},
    equivalence::{collect_gradients, relative_gradient_error},
    objective::{SdccBatch, SdccConfig, Teacher, certify, residuals},
};
use pleach_tree::{BranchTree, ReadOptions};
use std::collections::BTreeMap;

const MODELS: [&str; 3] = ["llama", "qwen2", "qwen3"];

fn model(name: &str) -> Decoder {
    let device = cpu();
    load_decoder(&shared("vectors/models").unwrap().join(name), DType::F64, &device.autodiff())
        .unwrap()
}

fn tree(case: &Case) -> BranchTree {
    BranchTree::open(case.folder.join("records.jsonl"), ReadOptions::STRICT).unwrap().0
}

fn expected(case: &Case, model: &str) -> BTreeMap<(u32, u32), f64> {
    let list = case.expected["models"][model]["sdcc_kl"].as_array();
    let id = |value: &serde_json::Value| value.as_u64().unwrap() as u32;
    list.into_iter()
        .flatten()
        .map(|term| ((id(&term[0]), id(&term[1])), term[2].as_f64().unwrap()))
        .collect()
}

#[test]
fn every_residual_is_the_vectors() {
    let mut compared = 0;
    for name in MODELS {
        let cases = Case::all();
        let Some(first) = cases.first() else { return };
        assert!(first.folder.is_dir());
        let model = model(name);
        for case in cases.iter().filter(|case| !expected(case, name).is_empty()) {
            let tree = tree(case);
            let found = residuals(&model, &model, &Layouts::new(&tree).unwrap()).unwrap();
            let expected = expected(case, name);
            assert_eq!(found.len(), expected.len(), "{} {name}", case.name);
            for residual in found {
                let kl = expected[&(residual.generation, residual.offset)];
                assert_near(
                    residual.kl / kl,
                    1.0,
                    VECTOR_GRADIENT,
                    format_args!("{} {name}: {residual:?} over {kl}", case.name),
                );
                assert!(
                    residual.total_variation <= (residual.kl / 2.0).sqrt(),
                    "{residual:?} breaks Pinsker's inequality"
                );
                compared += 1;
            }
        }
    }
    assert!(compared >= 200, "{compared} residuals");
}

#[test]
fn every_gradient_of_the_summed_objective_is_the_vectors() {
    let mut compared = 0;
    for name in MODELS {
        let cases: Vec<Case> = Case::all()
            .into_iter()
            .filter(|case| case.gradients("sdcc-sum-lambda-0.1", name).is_some())
            .collect();
        if cases.is_empty() {
            return;
        }
        let model = model(name);
        let device = cpu().autodiff();
        for case in cases {
            let tree = tree(&case);
            let batch = SdccBatch::new(&Layouts::new(&tree).unwrap(), &device).unwrap();
            for chunk in [3, 256] {
                let sdcc = SdccConfig::new().with_chunk(chunk).init();
                let output = sdcc.forward(&model, &Teacher::Live, &batch, 0.1).unwrap();
                let found = collect_gradients(&model, output.loss.backward()).unwrap();
                let expected = case.gradients("sdcc-sum-lambda-0.1", name).unwrap();
                let error = relative_gradient_error(&expected, &found);
                assert!(error <= VECTOR_GRADIENT, "{} {name}, chunk {chunk}: {error:e}", case.name);
                compared += 1;
            }
        }
    }
    assert!(compared >= 16, "{compared} gradients");
}

#[test]
fn a_case_without_diverging_terms_is_certified_as_consistent() {
    for case in Case::all().iter().filter(|case| case.name == "group_of_rollouts") {
        let tree = tree(case);
        let certificate =
            certify(&model("llama"), &model("llama"), &Layouts::new(&tree).unwrap()).unwrap();
        assert_eq!((certificate.all.coverage.diverging, certificate.all.kl_sum), (0, 0.0));
        assert_eq!(certificate.all.coverage.supervised, 48);
    }
}

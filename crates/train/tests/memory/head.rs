//! Contract: no objective holds an array of loss terms x vocabulary, forward or backward: its peak
//! stays below one such array.
use crate::fixtures::device::cpu;
use crate::{ONE_AT_A_TIME, peak};
use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor, TensorData},
};
use pleach_layout::TermId;
use pleach_train::{
    Batch, BatchTerms, CausalModel, TrainError,
    objective::{
        DivergenceConfig, DivergenceKind, NllConfig, Pairs, PolicyGradientConfig, PolicySignal,
        Support,
    },
};

const TERMS: usize = 1024;
const VOCABULARY: usize = 2048;
const WIDTH: usize = 8;
const CHUNK: usize = 16;

/// The head alone; hidden states are given.
#[derive(Module, Debug)]
struct Head {
    weight: Param<Tensor<2>>,
}

impl CausalModel for Head {
    fn hidden(&self, _batch: &Batch) -> Result<Tensor<3>, TrainError> {
        Err(TrainError::Unsupported {
            what: "this model is a head alone: give hidden states".to_owned(),
        })
    }

    fn vocabulary(&self) -> usize {
        VOCABULARY
    }

    fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        hidden_nd.matmul(self.weight.val())
    }
}

fn noise<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    let count = shape.iter().product();
    let values: Vec<f32> =
        (0..count).map(|at: usize| (at * 7919 % 1009) as f32 / 504.5 - 1.0).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

#[test]
fn every_objective_peaks_below_one_array_of_terms_by_vocabulary() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let device = cpu().autodiff();
    let head = Head { weight: Param::from_tensor(noise([WIDTH, VOCABULARY], &device)) };
    let hidden = noise([1, TERMS, WIDTH], &device).require_grad();
    let terms = BatchTerms {
        sources: (0..TERMS as i64).collect(),
        targets: (0..TERMS as u32).collect(),
        weights: vec![1.0; TERMS],
        ids: (0..TERMS as u32).map(|offset| TermId::new(0, offset)).collect(),
    };
    let pairs = Pairs {
        students: terms.sources.clone(),
        teachers: terms.sources.iter().rev().copied().collect(),
        targets: terms.targets.clone(),
        weights: terms.weights.clone(),
        ids: terms.ids.clone(),
    };
    let teacher = head.valid();
    let divergence = |kind, support| {
        let config =
            DivergenceConfig::new().with_chunk(CHUNK).with_kind(kind).with_support(support).init();
        config
            .forward_hidden((&head, hidden.clone()), (&teacher, hidden.clone()), &pairs)
            .unwrap()
            .loss
    };
    let of_pass = |loss: &dyn Fn() -> Tensor<1>| peak(|| loss().backward());
    let mut peaks = vec![of_pass(&|| {
        NllConfig::new()
            .with_chunk(CHUNK)
            .init()
            .forward_hidden(&head, hidden.clone(), &terms)
            .unwrap()
            .loss
    })];
    peaks.push(of_pass(&|| {
        let signal = PolicySignal::new(vec![1.0; TERMS], vec![-8.0; TERMS]);
        let config = PolicyGradientConfig::new().with_chunk(CHUNK).init();
        config.forward_hidden(&head, hidden.clone(), &terms, &signal).unwrap().loss
    }));
    for kind in
        [DivergenceKind::ForwardKl, DivergenceKind::ReverseKl, DivergenceKind::JensenShannon(0.5)]
    {
        for support in [Support::Vocabulary, Support::TopK(16), Support::SampledToken] {
            peaks.push(of_pass(&|| divergence(kind, support)));
        }
    }
    let array = (TERMS * VOCABULARY * size_of::<f32>()) as f64;
    assert!(peaks.iter().all(|&peak| peak < array), "{peaks:?} against {array}");
}

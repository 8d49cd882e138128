//! The head of a causal model, forward and backward, for 8,192 loss terms over a vocabulary of
//! 49,152 at the width of SmolLM2-135M: in chunks, as [`Nll`](pleach::train::objective::Nll) does it, against
//! all logits at once in one graph. Peak memory and the ratio of times are printed and asserted
//! first: a tenth of the memory at no more than 1.3 times the time.
//!
//! ```sh
//! cargo bench -p pleach-bench --bench head
//! ```
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use burn::tensor::Device;
use burn::{
    module::{Module, Param},
    tensor::{Distribution, Int, Tensor, activation::log_softmax},
};
use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use peak_alloc::PeakAlloc;
use pleach::layout::TermId;
use pleach::train::{
    Batch, BatchTerms, CausalModel, TrainError,
    objective::{DivergenceConfig, NllConfig, Pairs, Reduction},
};

const TERMS: usize = 8_192;
const VOCABULARY: usize = 49_152;
const WIDTH: usize = 576;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// The head alone; hidden states are given.
#[derive(Module, Debug)]
struct Head {
    weight_cv: Param<Tensor<2>>,
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
        hidden_nd.matmul(self.weight_cv.val())
    }
}

struct Problem {
    head: Head,
    hidden_btc: Tensor<3>,
    terms: BatchTerms,
}

impl Problem {
    fn new(device: &Device) -> Self {
        device.seed(1);
        let scale = Distribution::Normal(0.0, 1.0 / (WIDTH as f64).sqrt());
        let weight_cv = Param::from_tensor(Tensor::random([WIDTH, VOCABULARY], scale, device));
        let hidden_btc = Tensor::random([1, TERMS, WIDTH], Distribution::Normal(0.0, 1.0), device)
            .require_grad();
        let terms = BatchTerms {
            sources: (0..TERMS as i64).collect(),
            targets: (0..TERMS).map(|at| (at * 7919 % VOCABULARY) as u32).collect(),
            weights: vec![1.0; TERMS],
            ids: (0..TERMS as u32).map(|offset| TermId::new(0, offset)).collect(),
        };
        Self { head: Head { weight_cv }, hidden_btc, terms }
    }

    /// All logits at once, burn's log-softmax, one graph.
    fn plain(&self) -> f32 {
        let hidden_nc = self.hidden_btc.clone().reshape([TERMS, WIDTH]);
        let logp_nv = log_softmax(self.head.logits(hidden_nc), 1);
        let targets: Vec<i64> = self.terms.targets.iter().copied().map(i64::from).collect();
        let device = logp_nv.device().without_autodiff();
        let targets_n1 =
            Tensor::<1, Int>::from_data(targets.as_slice(), &device).unsqueeze_dim::<2>(1);
        let loss = logp_nv.gather(1, targets_n1).sum().neg().mul_scalar(1.0 / TERMS as f64);
        self.finish(loss)
    }

    fn chunked(&self) -> f32 {
        let nll = NllConfig::new().with_reduction(Reduction::WeightedMean).init();
        match nll.forward_hidden(&self.head, self.hidden_btc.clone(), &self.terms) {
            Ok(output) => self.finish(output.loss),
            Err(error) => panic!("the benchmark's terms are sound: {error}"),
        }
    }

    /// The divergence of the head from itself at other rows: two sides of logits a chunk.
    fn divergence(&self) -> f32 {
        let pairs = Pairs {
            students: self.terms.sources.clone(),
            teachers: self.terms.sources.iter().rev().copied().collect(),
            targets: self.terms.targets.clone(),
            weights: self.terms.weights.clone(),
            ids: self.terms.ids.clone(),
        };
        let student = (&self.head, self.hidden_btc.clone());
        let teacher = (&self.head.valid(), self.hidden_btc.clone());
        let divergence = DivergenceConfig::new().with_reduction(Reduction::WeightedMean).init();
        match divergence.forward_hidden(student, teacher, &pairs) {
            Ok(output) => self.finish(output.loss),
            Err(error) => panic!("the benchmark's pairs are sound: {error}"),
        }
    }

    fn finish(&self, loss: Tensor<1>) -> f32 {
        let mut gradients = loss.backward();
        black_box(self.hidden_btc.grad_remove(&mut gradients));
        black_box(self.head.weight_cv.base().grad_remove(&mut gradients));
        loss.into_scalar::<f32>()
    }
}

/// Peak bytes above what was live before.
fn peak(run: impl FnOnce() -> f32) -> (f32, usize) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let loss = run();
    (loss, ALLOCATED.peak_usage() - before)
}

/// The shorter of two runs, so that what else the machine does counts less.
fn fastest(run: impl Fn() -> f32) -> Duration {
    let time = || {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    time().min(time())
}

fn bench(criterion: &mut Criterion) {
    let device = Device::flex().autodiff();
    let problem = Problem::new(&device);
    let ((plain, of_plain), (chunked, of_chunked)) =
        (peak(|| problem.plain()), peak(|| problem.chunked()));
    let (_, of_divergence) = peak(|| problem.divergence());
    assert!(
        (plain - chunked).abs() <= 1e-5 * plain.abs(),
        "the two are not the same loss: {plain} {chunked}"
    );
    let mib = |bytes: usize| bytes >> 20;
    println!("peak memory: plain {} MiB, chunked {} MiB", mib(of_plain), mib(of_chunked));
    println!("a divergence of both sides in chunks: {} MiB", mib(of_divergence));
    println!("plain over chunked: {:.1}", of_plain as f64 / of_chunked as f64);
    assert!(of_plain >= 10 * of_chunked, "the chunked head must take a tenth of the memory");
    let (of_plain, of_chunked) = (fastest(|| problem.plain()), fastest(|| problem.chunked()));
    let ratio = of_chunked.as_secs_f64() / of_plain.as_secs_f64();
    println!(
        "time: plain {of_plain:.2?}, chunked {of_chunked:.2?}, chunked over plain: {ratio:.2}"
    );
    assert!(ratio <= 1.3, "the chunked head must take no more than 1.3 times the time");
    let mut group = criterion.benchmark_group("head_8192_terms_49152_tokens");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_millis(1));
    group.bench_function("chunked", |bencher| bencher.iter(|| problem.chunked()));
    group.bench_function("plain", |bencher| bencher.iter(|| problem.plain()));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);

//! Tree attention on the named problems, forward and with backward, and the plan of each at 131,072
//! tokens: 8 heads of 64 in float32, on flex and, at 512 tokens, on the first wgpu device where one
//! is built in and there. `pleach-bench` sets the same problems beside other ways and a floor.
//!
//! ```sh
//! cargo bench -p pleach-bench --features wgpu --bench attention
//! ```
use std::hint::black_box;

use burn::tensor::{DType, Device, Distribution, Tensor};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pleach::kernels::problem::NamedProblem;
use pleach::kernels::{AttentionConfig, TreeMask, tree_attention};

const HEADS: usize = 8;
const HEAD_DIM: usize = 64;
const LONG_TOKENS: usize = 131_072;

fn mask(problem: NamedProblem, tokens: usize, device: &Device) -> TreeMask {
    match TreeMask::new(&[problem.tree(tokens).ends], device) {
        Ok(mask) => mask,
        Err(error) => panic!("a named problem is a mask: {error}"),
    }
}

fn attend([q, k, v]: &[Tensor<4>; 3], mask: &TreeMask) -> Tensor<4> {
    match tree_attention(
        q.clone(),
        k.clone(),
        v.clone(),
        mask,
        &AttentionConfig::for_head_dim(HEAD_DIM),
    ) {
        Ok(o_bhtd) => o_bhtd,
        Err(error) => panic!("the inputs fit the mask: {error}"),
    }
}

fn inputs(tokens: usize, device: &Device) -> [Tensor<4>; 3] {
    let shape = [1, HEADS, tokens, HEAD_DIM];
    [(); 3].map(|()| Tensor::random(shape, Distribution::Normal(0.0, 1.0), (device, DType::F32)))
}

fn forward(criterion: &mut Criterion) {
    for (at, device, lengths) in devices() {
        let mut group = criterion.benchmark_group(format!("attention_forward{at}"));
        group.sample_size(10);
        for (tokens, problem) in sizes(lengths) {
            let (inputs, mask) = (inputs(tokens, &device), mask(problem, tokens, &device));
            let id = name(&mut group, problem, &mask);
            group.bench_function(id, |bencher| {
                bencher.iter(|| computed(&attend(black_box(&inputs), &mask)))
            });
        }
        group.finish();
    }
}

fn forward_backward(criterion: &mut Criterion) {
    for (at, device, lengths) in devices() {
        let mut group = criterion.benchmark_group(format!("attention_forward_backward{at}"));
        group.sample_size(10);
        for (tokens, problem) in sizes(lengths) {
            let inputs = inputs(tokens, &device.clone().autodiff()).map(Tensor::require_grad);
            let mask = mask(problem, tokens, &device);
            let id = name(&mut group, problem, &mask);
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    let gradients = attend(black_box(&inputs), &mask).backward();
                    inputs.iter().filter_map(|x| x.grad(&gradients)).for_each(|dx| computed(&dx));
                    gradients
                })
            });
        }
        group.finish();
    }
}

/// Waits until a device that works behind the caller's back has computed a tensor.
fn computed(tensor: &Tensor<4>) {
    if let Err(error) = tensor.device().sync() {
        panic!("the device failed: {error:?}");
    }
}

/// The devices, what names of groups end in on each, and the lengths that it is timed at.
fn devices() -> Vec<(&'static str, Device, &'static [usize])> {
    let mut devices = vec![("", Device::flex(), &[512, 4096][..])];
    match wgpu() {
        Some(device) => devices.push(("_wgpu", device, &[512])),
        None => {
            eprintln!("not timed on wgpu: it is not built in, or this machine has no such device")
        }
    }
    devices
}

#[cfg(feature = "wgpu")]
fn wgpu() -> Option<Device> {
    Device::enumerate(burn::tensor::DeviceType::Wgpu).into_vec().into_iter().next()
}

#[cfg(not(feature = "wgpu"))]
fn wgpu() -> Option<Device> {
    None
}

fn plan(criterion: &mut Criterion) {
    let device = Device::flex();
    let mut group = criterion.benchmark_group("schedule");
    group.throughput(Throughput::Elements(LONG_TOKENS as u64));
    for problem in NamedProblem::ALL {
        let ends = problem.tree(LONG_TOKENS).ends;
        let fresh = || TreeMask::new(&[&ends], &device);
        group.bench_function(problem.name(), |bencher| {
            bencher.iter_with_setup(fresh, |mask| mask.and_then(|mask| mask.schedule()));
        });
    }
    group.finish();
}

fn sizes(lengths: &[usize]) -> impl Iterator<Item = (usize, NamedProblem)> {
    lengths.iter().flat_map(|&tokens| NamedProblem::ALL.map(|problem| (tokens, problem)))
}

/// Names the case and sets what it does per run: visible pairs.
fn name<M: criterion::measurement::Measurement>(
    group: &mut criterion::BenchmarkGroup<'_, M>,
    problem: NamedProblem,
    mask: &TreeMask,
) -> BenchmarkId {
    if let Ok(stats) = mask.schedule_stats() {
        group.throughput(Throughput::Elements(stats.needed_pairs));
    }
    BenchmarkId::new(problem.name(), mask.dims()[1])
}

criterion_group!(benches, forward, forward_backward, plan);
criterion_main!(benches);

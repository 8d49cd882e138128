//! The training step of a small decoder, forward, token-level negative log-likelihood and backward
//! without an optimiser, on packed and on segments, in every regime: float32 on flex.
//! `pleach-bench --step` sets the ratio of the two beside the ideal one.
//!
//! ```sh
//! cargo bench -p pleach-bench --bench training_step
//! ```
use burn::tensor::DType;
use burn::tensor::Device;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pleach::layout::{Layout, Layouts, Sequence};
use pleach::train::{
    Batch, TrainError,
    decoder::{Decoder, DecoderConfig, Family},
    memory::Workload,
    objective::NllConfig,
};
use pleach::tree::{BranchTree, ReadOptions};
use pleach_bench::Regime;

const VOCABULARY: usize = 1024;
const TOKENS: usize = 2048;

fn config() -> DecoderConfig {
    DecoderConfig {
        hidden_size: 128,
        intermediate_size: 384,
        heads: 2,
        kv_heads: 2,
        head_dim: 64,
        ..DecoderConfig::small(Family::Llama, VOCABULARY, 2)
    }
}

/// Packed and segments of a regime.
fn layouts(regime: Regime) -> [Layout; 2] {
    let records = regime.records(TOKENS, VOCABULARY as u32);
    let tree = match records
        .and_then(|records| BranchTree::from_records(records, regime.name(), ReadOptions::STRICT))
    {
        Ok((tree, _)) => tree,
        Err(error) => panic!("the records of a regime are sound: {error}"),
    };
    let both = Layouts::new(&tree).and_then(|layouts| Ok([layouts.packed()?, layouts.segments()?]));
    match both {
        Ok(both) => both,
        Err(error) => panic!("the records of a regime can be laid out: {error}"),
    }
}

/// All batches of a layout, one after the other.
fn step(decoder: &Decoder, device: &Device, layout: &Layout) -> Result<(), TrainError> {
    let nll = NllConfig::new().init();
    let mut rest: Vec<&Sequence> = layout.sequences.iter().collect();
    for workload in Workload::of(&layout.sequences) {
        let after = rest.split_off(workload.rows.min(rest.len()));
        let batch = Batch::new(&rest, device)?;
        drop(nll.forward(decoder, &batch)?.loss.backward());
        rest = after;
    }
    Ok(())
}

fn bench(criterion: &mut Criterion) {
    let device = Device::flex();
    let decoder = match Decoder::seeded(config(), 0, DType::F32, &device.clone().autodiff()) {
        Ok(decoder) => decoder,
        Err(error) => panic!("the configuration is one that a model can have: {error}"),
    };
    let mut group = criterion.benchmark_group("training_step");
    group.sample_size(10);
    for regime in Regime::ALL {
        for layout in layouts(regime) {
            group.throughput(Throughput::Elements(layout.tokens() as u64));
            let id = BenchmarkId::new(regime.name(), layout.kind.name());
            group.bench_function(id, |bencher| bencher.iter(|| step(&decoder, &device, &layout)));
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);

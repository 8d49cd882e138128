//! Text to tokens for sessions of more and more calls, each with a tool's result of 6,000
//! characters, by the built-in ChatML and bytes: twice the calls are to take at most 1.3 times twice
//! the time, and 4,000 calls 3 seconds. The peak of memory stands beside the bytes of text.
//!
//! ```sh
//! cargo bench -p pleach-bench --bench render
//! ```
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use peak_alloc::PeakAlloc;
use pleach::render::Renderer;
use pleach::tree::{
    BranchTree, Fidelity, Header, Origin, Part, ReadOptions, RecordBuilder, Role, Segment,
    SegmentId, TreeError,
};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// An agent that calls a tool `calls` times.
fn session(calls: usize) -> Result<BranchTree, TreeError> {
    let mut log = RecordBuilder::new(Header::new("bench", Fidelity::Message))?;
    let system = log.text(Role::System, Origin::Harness, "Keep the tower.")?;
    let task = log.text(Role::User, Origin::Human, "Ring every bell.")?;
    let mut context = log.append(None, [system, task])?;
    for call in 0..calls {
        let text =
            format!("{{\"id\":\"c{call}\",\"name\":\"ring\",\"input\":{{\"bell\":{call}}}}}");
        let said = Segment::new(SegmentId(0), Role::Assistant, Origin::Policy).with_text(text);
        let said = log.segment(Segment { part: Some(Part::ToolCall), ..said })?;
        log.sample(context, [said])?;
        let words = format!("bell {call} rang, as loud as ever; ").repeat(6_000 / 32);
        let result = Segment::new(SegmentId(0), Role::Tool, Origin::Environment).with_text(words);
        let result = log.segment(Segment { result_of: Some(format!("c{call}")), ..result })?;
        context = log.append(context, [said, result])?;
    }
    log.sample(context, [])?;
    let (tree, _) = BranchTree::from_records(log.into_records(), "session", ReadOptions::STRICT)?;
    Ok(tree)
}

fn bench(criterion: &mut Criterion) {
    let renderer = Renderer::bytes();
    let mut group = criterion.benchmark_group("render");
    group.sample_size(10);
    for calls in [500, 1_000, 2_000, 4_000] {
        let tree = match session(calls) {
            Ok(tree) => tree,
            Err(error) => panic!("the session is sound: {error}"),
        };
        let before = ALLOCATED.current_usage();
        ALLOCATED.reset_peak_usage();
        let rendered = renderer.render(&tree);
        let (peak, kept) = (ALLOCATED.peak_usage() - before, ALLOCATED.current_usage() - before);
        drop(rendered);
        let text = calls as u64 * 6_000;
        println!("{calls} calls, {text} bytes of text: peak {peak} bytes, {kept} are kept");
        group.throughput(Throughput::Bytes(text));
        group.bench_function(BenchmarkId::from_parameter(calls), |bencher| {
            bencher.iter(|| renderer.render(black_box(&tree)));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);

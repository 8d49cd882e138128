//! Records to a packed layout: 1,000,000 tokens over 200 contexts, and the same at twice the tokens
//! and at four times the contexts, which shows that time follows the tokens inserted and not the
//! sum of the views.
//!
//! ```sh
//! cargo bench -p pleach --bench records
//! ```
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pleach::layout::Layouts;
use pleach::tree::{
    Append, BranchTree, ContextId, Evict, Evicted, Extra, Fidelity, Generation, GenerationId,
    Header, Origin, Place, ReadOptions, Record, Replacement, ReplacementKind, Role, Segment,
    SegmentId, write_records,
};

/// A rollout that reads a tool result in every context and clears the one before the last.
fn cleared_results(tokens: usize, contexts: u32) -> Vec<u8> {
    let each = (tokens / contexts as usize).saturating_sub(32);
    let mut records = vec![Record::Header(Header::new("bench", Fidelity::Token))];
    let (mut segments, mut context) = (0, None);
    let mut segment = |records: &mut Vec<Record>, role, origin, len: usize| {
        let id = SegmentId(segments);
        let ids = (0..len)
            .map(|at| (at as u32).wrapping_mul(2_654_435_761).wrapping_add(segments * 97) % 50_000)
            .collect();
        records.push(Record::Segment(Segment::new(id, role, origin).with_tokens(ids)));
        segments += 1;
        id
    };
    let mut results = Vec::new();
    let mut next = 0;
    for turn in 0..contexts / 2 {
        let result = segment(&mut records, Role::Tool, Origin::Environment, 2 * each);
        let (from, new) = (context, ContextId(next));
        let pending = results.last().map(|&(_, call)| call);
        let appended = pending.into_iter().chain([result]).collect();
        records.push(Record::Append(Append {
            context: new,
            from,
            segments: appended,
            extra: Extra::new(),
        }));
        let call = segment(&mut records, Role::Assistant, Origin::Policy, 32);
        records.push(Record::Generation(Generation::new(GenerationId(turn), new, vec![call])));
        (next, context) = (next + 1, Some(new));
        if let Some(&(old, _)) = results.last() {
            let placeholder = segment(&mut records, Role::Tool, Origin::Harness, 4);
            let replacement =
                Replacement::new(ReplacementKind::Placeholder, vec![placeholder], Place::InPlace);
            records.push(Record::Evict(Box::new(Evict {
                context: ContextId(next),
                from: new,
                evicted: vec![Evicted::whole(old)],
                replacement: Some(replacement),
                by: None,
                trigger: None,
                evidence: None,
                extra: Extra::new(),
            })));
            (next, context) = (next + 1, Some(ContextId(next)));
        }
        results.push((result, call));
    }
    let mut bytes = Vec::new();
    match write_records(&mut bytes, &records) {
        Ok(()) => bytes,
        Err(error) => panic!("records in memory are written: {error}"),
    }
}

fn packed_tokens(records: &[u8]) -> usize {
    let packed = BranchTree::read(records, "bench.jsonl", ReadOptions::STRICT)
        .map_err(|error| error.to_string())
        .and_then(|(tree, _)| {
            Ok(Layouts::new(&tree)
                .and_then(|layouts| layouts.packed())
                .map_err(|e| e.to_string())?
                .tokens())
        });
    match packed {
        Ok(tokens) => tokens,
        Err(error) => panic!("the benchmark's records are sound: {error}"),
    }
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("records_to_packed");
    group.sample_size(10);
    for (tokens, contexts) in [(1_000_000, 200), (2_000_000, 200), (1_000_000, 800)] {
        let records = cleared_results(tokens, contexts);
        let packed = packed_tokens(&records);
        group.throughput(Throughput::Elements(packed as u64));
        let name = BenchmarkId::new(format!("{tokens} tokens, {contexts} contexts"), packed);
        group.bench_with_input(name, &records, |bencher, records| {
            bencher.iter(|| packed_tokens(black_box(records)))
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);

//! Records to a packed layout: 1,000,000 tokens over 200 contexts, and the same at twice the tokens
//! and at four times the contexts, which shows that time follows the tokens inserted and not the
//! sum of the views.
//!
//! ```sh
//! cargo bench -p pleach-bench --bench records
//! ```
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pleach::layout::Layouts;
use pleach::tree::{
    BranchTree, Evict, Evicted, Fidelity, Header, Origin, Place, ReadOptions, RecordBuilder,
    Replacement, ReplacementKind, Role, TreeError,
};

/// A rollout that reads a tool result in every context and clears the one before the last.
fn cleared_results(tokens: usize, contexts: u32) -> Result<Vec<u8>, TreeError> {
    let each = (tokens / contexts as usize).saturating_sub(32);
    let mut log = RecordBuilder::new(Header::new("bench", Fidelity::Token))?;
    let mut segments = 0_u32;
    let mut ids = |len: usize| -> Vec<u32> {
        segments += 1;
        let spread = |at: u32| at.wrapping_mul(2_654_435_761).wrapping_add((segments - 1) * 97);
        (0..len as u32).map(|at| spread(at) % 50_000).collect()
    };
    let mut context = None;
    let mut before = None;
    for _ in 0..contexts / 2 {
        let result = log.tokens(Role::Tool, Origin::Environment, ids(2 * each))?;
        let said = before.map(|(_, call)| call);
        let new = log.append(context, said.into_iter().chain([result]).collect::<Vec<_>>())?;
        let call = log.tokens(Role::Assistant, Origin::Policy, ids(32))?;
        log.sample(new, [call])?;
        context = Some(new);
        if let Some((old, _)) = before {
            let placeholder = log.tokens(Role::Tool, Origin::Harness, ids(4))?;
            let kind = ReplacementKind::Placeholder;
            let replacement = Replacement::new(kind, vec![placeholder], Place::InPlace);
            let evict = Evict::new(new, [Evicted::whole(old)]).with_replacement(replacement);
            context = Some(log.evict(evict)?);
        }
        before = Some((result, call));
    }
    let mut bytes = Vec::new();
    log.write_new(&mut bytes)?;
    Ok(bytes)
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
        let records = match cleared_results(tokens, contexts) {
            Ok(records) => records,
            Err(error) => panic!("the benchmark's records are sound: {error}"),
        };
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

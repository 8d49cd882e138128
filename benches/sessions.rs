//! A Claude Code session of 3 MB to eviction records, against reading every line of the same bytes as JSON and no more.
//!
//! ```sh
//! cargo bench -p pleach --bench sessions
//! ```
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pleach::harness::claude_code::{SessionInput, convert_readers};
use pleach::tree::ReadOptions;
use serde_json::{Value, json};

/// A prompt, then calls that read files of some 6 KB, two at a time.
fn session(bytes: usize) -> Vec<u8> {
    let mut session = Vec::new();
    let mut parent = Value::Null;
    let mut line = |session: &mut Vec<u8>, uuid: String, kind: &str, message: Value| {
        let line = json!({
            "parentUuid": parent, "isSidechain": false, "sessionId": "bench", "version": "2.1.39", "type": kind,
            "message": message, "uuid": uuid, "timestamp": "2026-02-03T09:14:06.548Z",
        });
        session.extend_from_slice(line.to_string().as_bytes());
        session.push(b'\n');
        parent = uuid.into();
    };
    line(&mut session, "u".into(), "user", json!({"role": "user", "content": "Read every file and say which one is odd."}));
    for turn in 0.. {
        if session.len() >= bytes {
            break;
        }
        let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 2_000 * turn, "output_tokens": 4});
        for call in 0..2 {
            let content =
                json!([{"type": "tool_use", "id": format!("toolu_{turn}_{call}"), "name": "Read", "input": {"file": call}}]);
            let id = format!("msg_{turn}");
            let message =
                json!({"id": id, "type": "message", "role": "assistant", "model": "bench", "content": content, "usage": usage});
            line(&mut session, format!("a{turn}-{call}"), "assistant", message);
        }
        for call in 0..2 {
            let text = format!("{turn}\tlet answer = \"forty-two\"; // é\n").repeat(160);
            let content = json!([{"type": "tool_result", "tool_use_id": format!("toolu_{turn}_{call}"), "content": text}]);
            line(&mut session, format!("r{turn}-{call}"), "user", json!({"role": "user", "content": content}));
        }
    }
    session
}

fn records(session: &[u8]) -> usize {
    let input = SessionInput { reader: session, name: "bench.jsonl".into(), listed: "bench.jsonl".into() };
    match convert_readers(input, [], ReadOptions::STRICT) {
        Ok(conversion) => conversion.records.len(),
        Err(error) => panic!("the benchmark's session is sound: {error}"),
    }
}

fn values(session: &[u8]) -> usize {
    let parsed = session.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    parsed.map(black_box).count()
}

fn bench(criterion: &mut Criterion) {
    let session = session(3 << 20);
    let mut group = criterion.benchmark_group("claude_code_session");
    group.throughput(Throughput::Bytes(session.len() as u64));
    group.bench_function("to records", |bencher| bencher.iter(|| records(black_box(&session))));
    group.bench_function("lines as JSON values", |bencher| bencher.iter(|| values(black_box(&session))));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);

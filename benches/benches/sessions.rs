//! Sessions of 3 MB of Claude Code and of Codex CLI to eviction records, against reading every line
//! of the same bytes as JSON and no more, under mimalloc, as the program uses. Converting is to be
//! no slower than 0.8 of that, and to take 100 MB a second on one core. Tools return 160 lines
//! each, and 11 in the sessions called short, where a record is made for every 400 bytes or so.
//!
//! ```sh
//! cargo bench -p pleach-bench --bench sessions
//! ```
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pleach::harness::{Harness, Input, convert_from};
use pleach::tree::ReadOptions;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes of a session.
const BYTES: usize = 3 << 20;

/// Lines of a tool's result, of some 35 bytes each.
const LINES: usize = 160;
const FEW_LINES: usize = 11;

/// A prompt, then calls that read `lines` lines, two at a time, as Claude Code writes it.
fn claude_code(lines: usize) -> Vec<u8> {
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
    line(
        &mut session,
        "u".into(),
        "user",
        json!({"role": "user", "content": "Read every file and say which one is odd."}),
    );
    for turn in 0.. {
        if session.len() >= BYTES {
            break;
        }
        let usage =
            json!({"input_tokens": 3, "cache_read_input_tokens": 2_000 * turn, "output_tokens": 4});
        for call in 0..2 {
            let content = json!([{"type": "tool_use", "id": format!("toolu_{turn}_{call}"), "name": "Read", "input": {"file": call}}]);
            let id = format!("msg_{turn}");
            let message = json!({"id": id, "type": "message", "role": "assistant", "model": "bench", "content": content, "usage": usage});
            line(&mut session, format!("a{turn}-{call}"), "assistant", message);
        }
        for call in 0..2 {
            let text = format!("{turn}\tlet answer = \"forty-two\"; // é\n").repeat(lines);
            let content = json!([{"type": "tool_result", "tool_use_id": format!("toolu_{turn}_{call}"), "content": text}]);
            line(
                &mut session,
                format!("r{turn}-{call}"),
                "user",
                json!({"role": "user", "content": content}),
            );
        }
    }
    session
}

/// The same as Codex CLI writes it.
fn codex(lines: usize) -> Vec<u8> {
    let mut session = Vec::new();
    let line = |session: &mut Vec<u8>, kind: &str, payload: Value| {
        let line =
            json!({"timestamp": "2026-02-03T09:14:06.548Z", "type": kind, "payload": payload});
        session.extend_from_slice(line.to_string().as_bytes());
        session.push(b'\n');
    };
    let meta = json!({"id": "bench", "timestamp": "2026-02-03T09:14:06.548Z", "cwd": "/tmp", "cli_version": "0.98.0", "originator": "codex_cli_rs"});
    line(&mut session, "session_meta", meta);
    line(&mut session, "turn_context", json!({"cwd": "/tmp", "model": "bench"}));
    let asked =
        json!([{"type": "input_text", "text": "Read every file and say which one is odd."}]);
    line(
        &mut session,
        "response_item",
        json!({"type": "message", "role": "user", "content": asked}),
    );
    for turn in 0.. {
        if session.len() >= BYTES {
            break;
        }
        for call in 0..2 {
            let arguments = json!({"file": call}).to_string();
            let payload = json!({"type": "function_call", "name": "read", "arguments": arguments, "call_id": format!("c{turn}-{call}")});
            line(&mut session, "response_item", payload);
        }
        for call in 0..2 {
            let output = format!("{turn}\tlet answer = \"forty-two\"; // é\n").repeat(lines);
            let payload = json!({"type": "function_call_output", "call_id": format!("c{turn}-{call}"), "output": output});
            line(&mut session, "response_item", payload);
        }
        let usage = json!({"total_token_usage": {"total_tokens": 2_000 * (turn + 1)}, "last_token_usage": {"total_tokens": 2_000}});
        line(&mut session, "event_msg", json!({"type": "token_count", "info": usage}));
    }
    session
}

fn records(input: &Input, harness: Harness) -> usize {
    match convert_from(input, Some(harness), ReadOptions::STRICT) {
        Ok(conversion) => conversion.records.len(),
        Err(error) => panic!("the benchmark's session is sound: {error}"),
    }
}

fn values(session: &[u8]) -> usize {
    let parsed =
        session.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    parsed.filter_map(|line| serde_json::from_str::<Value>(line).ok()).map(black_box).count()
}

fn bench(criterion: &mut Criterion) {
    let sessions = [
        ("claude_code_session", Harness::ClaudeCode, claude_code(LINES)),
        ("claude_code_session_short", Harness::ClaudeCode, claude_code(FEW_LINES)),
        ("codex_session", Harness::Codex, codex(LINES)),
        ("codex_session_short", Harness::Codex, codex(FEW_LINES)),
    ];
    for (name, harness, session) in sessions {
        let input = Input::memory("bench.jsonl", session.clone(), []);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(session.len() as u64));
        group.bench_function("to records", |bencher| {
            bencher.iter(|| records(black_box(&input), harness))
        });
        group.bench_function("lines as JSON values", |bencher| {
            bencher.iter(|| values(black_box(&session)))
        });
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);

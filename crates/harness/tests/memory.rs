//! Reading a session takes the memory of what is kept of it and little more, however long the file
//! is.
//!
//! Sessions of 96 MB lie compressed in a temporary folder; `PLEACH_SESSION_MB=1024` makes them a
//! gigabyte each.
//! `PLEACH_SESSION_MB=1024 cargo test -p pleach-harness --test memory -- --nocapture` prints what
//! each takes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use peak_alloc::PeakAlloc;
use pleach_harness::{Harness, Input, ReadOptions, convert_from};
use pleach_tree::Record;
use serde_json::{Value, json};

/// Bytes of one tool's output.
const OUTPUT: usize = 300_000;
/// What buffers and the longest line, read and parsed, may take.
const BEYOND: usize = 4 << 20;
/// What a record has besides its text, ids and the conversion's own notes on it among it.
const FIELDS: usize = 2 << 10;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

fn output(turn: usize) -> String {
    let line = format!("{turn}\tlet answer = \"forty-two\"; // é\n");
    line.repeat(OUTPUT / line.len())
}

/// A call and its result; where the output is not kept, it stands where no request shows it.
fn claude_code(turn: usize, kept: bool) -> Vec<Value> {
    let line = |uuid: &str, parent: Value, kind: &str, message: Value| json!({"parentUuid": parent, "isSidechain": false, "sessionId": "s", "version": "2.1.39", "type": kind, "message": message, "uuid": uuid});
    let parent = turn.checked_sub(1).map_or(Value::from("u"), |before| format!("r{before}").into());
    let (call, said) = (format!("toolu_{turn}"), format!("a{turn}"));
    let content =
        json!([{"type": "tool_use", "id": call, "name": "Read", "input": {"file": turn}}]);
    let message =
        json!({"id": format!("msg_{turn}"), "role": "assistant", "model": "m", "content": content});
    let shown = if kept { output(turn) } else { "read".into() };
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": shown}]});
    let mut result = line(&format!("r{turn}"), said.as_str().into(), "user", result);
    if !kept {
        result["toolUseResult"] = json!({"file": {"content": output(turn)}});
    }
    let start =
        line("u", Value::Null, "user", json!({"role": "user", "content": "Read every file."}));
    let call = line(&said, parent, "assistant", message);
    if turn == 0 { vec![start, call, result] } else { vec![call, result] }
}

fn codex(turn: usize, kept: bool) -> Vec<Value> {
    let line =
        |kind: &str, payload: Value| json!({"timestamp": "t", "type": kind, "payload": payload});
    let item = |payload: Value| line("response_item", payload);
    let call = item(
        json!({"type": "function_call", "name": "read", "arguments": "{}", "call_id": format!("c{turn}")}),
    );
    let shown = if kept { output(turn) } else { "read".into() };
    let result = item(
        json!({"type": "function_call_output", "call_id": format!("c{turn}"), "output": shown}),
    );
    let event = line(
        "event_msg",
        json!({"type": "exec_command_end", "aggregated_output": if kept { String::new() } else { output(turn) }}),
    );
    let asked = json!([{"type": "input_text", "text": "Read every file."}]);
    let start = item(json!({"type": "message", "role": "user", "content": asked}));
    if turn == 0 { vec![start, call, event, result] } else { vec![call, event, result] }
}

/// Writes turns until the text of the file has so many bytes.
fn write(path: &Path, bytes: usize, turn: impl Fn(usize) -> Vec<Value>) {
    let mut out = zstd::Encoder::new(BufWriter::new(File::create(path).unwrap()), 1).unwrap();
    let mut written = 0;
    for value in (0..).flat_map(turn) {
        let line = value.to_string() + "\n";
        out.write_all(line.as_bytes()).unwrap();
        written += line.len();
        if written > bytes {
            break;
        }
    }
    out.finish().unwrap().flush().unwrap();
}

/// Converts a file; bytes of text that are kept, records, and the most that was allocated at a
/// time.
fn take(path: &Path, harness: Harness) -> (usize, usize, usize) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let conversion =
        convert_from(&Input::open(path).unwrap(), Some(harness), ReadOptions::STRICT).unwrap();
    let texts = conversion.records.iter().map(|record| match record {
        Record::Segment(segment) => segment.extent(),
        _ => 0,
    });
    (texts.sum(), conversion.records.len(), ALLOCATED.peak_usage() - before)
}

/// Writes a session, reads it, and holds what that took against what is kept.
fn measure(name: &str, harness: Harness, turn: fn(usize, bool) -> Vec<Value>, kept: bool) {
    let megabytes: usize =
        std::env::var("PLEACH_SESSION_MB").map_or(96, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl.zst");
    write(&path, megabytes << 20, |at| turn(at, kept));
    let (text, records, peak) = take(&path, harness);
    eprintln!(
        "{name}: of {megabytes} MB {} kB of text are kept, and {records} records, and {} kB were taken",
        text >> 10,
        peak >> 10
    );
    assert_eq!(text > 1 << 20, kept);
    assert!(
        peak < text + records * FIELDS + BEYOND,
        "{name}: {peak} bytes for {text} bytes of text"
    );
}

/// One test, for the count is of the whole process.
#[test]
fn a_long_session_takes_what_is_kept_of_it_and_little_more() {
    for kept in [false, true] {
        measure("claude", Harness::ClaudeCode, claude_code, kept);
        measure("codex", Harness::Codex, codex, kept);
    }
}

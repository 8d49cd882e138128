//! Any bytes are told apart, and every format reads them as its own: they convert or are rejected,
//! and what converts is a tree that strict reading takes.
//!
//! The first byte chooses the format, and so does the environment variable `PLEACH_FORMAT`, which
//! takes all bytes as text. A record separator, byte 0x1e, parts the main file from one that lies
//! beside it, under the name by which the format looks for it.
//! `PLEACH_FORMAT=codex cargo fuzz run formats -- -dict=fuzz/formats.dict`, with
//! `crates/harness/tests/fixtures` as a start.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pleach_harness::{Harness, HarnessError, Input, ReadOptions, convert_from, detect_bytes};
use pleach_tree::BranchTree;

static NAMED: LazyLock<Option<Harness>> = LazyLock::new(|| {
    let name = std::env::var("PLEACH_FORMAT").ok()?;
    Some(Harness::named(&name).unwrap_or_else(|error| panic!("{error}")))
});

/// The name of the main file and those under which its format looks for others; what the text
/// itself names is in the dictionary.
fn names(harness: Harness) -> (&'static str, &'static [&'static str]) {
    match harness {
        Harness::ClaudeCode => (
            "main.jsonl",
            &[
                "main/subagents/agent-1.jsonl",
                "main/subagents/agent-acompact-1.jsonl",
                "other.jsonl",
            ],
        ),
        Harness::Codex => {
            ("rollout-own.jsonl", &["rollout-par.jsonl", "../../../2026/01/31/rollout-old.jsonl"])
        }
        Harness::GeminiCli => ("session-1.jsonl", &["abc/agent.jsonl"]),
        Harness::Pi => ("t.jsonl", &["s.jsonl"]),
        Harness::OpenCode => (
            "ses_1.json",
            &["ses_2.json", "../../message/ses_1/msg_1.json", "../../part/msg_1/prt_1.json"],
        ),
        Harness::Atif => ("first.json", &["next.json"]),
        _ => ("main.json", &["beside.json"]),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let (harness, bytes) = match (*NAMED, bytes.split_first()) {
        (Some(harness), _) => (harness, bytes),
        (None, Some((&first, rest))) => (Harness::ALL[first as usize % Harness::ALL.len()], rest),
        (None, None) => return,
    };
    let _ = detect_bytes(bytes);
    let mut files = bytes.splitn(2, |&byte| byte == 0x1e);
    let main = files.next().unwrap_or_default().to_vec();
    let (name, names) = names(harness);
    let beside: Vec<(String, Vec<u8>)> = files
        .next()
        .map(|bytes| names.iter().map(|&name| (name.to_owned(), bytes.to_vec())).collect())
        .unwrap_or_default();
    for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
        let input = Input::memory(name, main.clone(), beside.clone());
        match convert_from(&input, Some(harness), options) {
            Ok(conversion) => {
                // Records are taken as they are, and are checked where their tree is built.
                let tree = BranchTree::from_records(conversion.records, "records", options);
                let sound = tree.is_ok() || matches!(harness, Harness::Records | Harness::Atif);
                assert!(sound, "{}", tree.err().map(|error| error.to_string()).unwrap_or_default());
            }
            Err(HarnessError::Rejected(report)) => assert!(report.has_errors()),
            Err(
                HarnessError::Io { .. }
                | HarnessError::Compressed { .. }
                | HarnessError::Empty { .. },
            ) => {}
            Err(
                HarnessError::OtherFormat { .. }
                | HarnessError::Damaged { .. }
                | HarnessError::CutArchive { .. }
                | HarnessError::Indented { .. }
                | HarnessError::Unread { .. }
                | HarnessError::Utf16 { .. },
            ) => {}
            Err(error) => panic!("{error}"),
        }
    }
});

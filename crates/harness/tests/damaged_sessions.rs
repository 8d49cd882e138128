//! No byte string makes the adapter panic, and whatever it converts is a tree that strict reading takes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::path::Path;

use pleach_harness::claude_code::{SessionInput, convert_readers};
use pleach_harness::{HarnessError, ReadOptions};
use pleach_tree::BranchTree;
use proptest::prelude::*;
use proptest::sample::Index;

const FIXTURES: [&str; 8] = [
    "parallel_results.jsonl",
    "microcompact.jsonl",
    "manual_compaction.jsonl",
    "manual_compaction/subagents/agent-acompact-9.jsonl",
    "preserved_run.jsonl",
    "rewinds.jsonl",
    "subagent.jsonl",
    "not_context.jsonl",
];

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

/// One way to spoil a file; lines are the unit in which real files go wrong.
#[derive(Debug, Clone)]
enum Damage {
    Cut(Index),
    Flip(Index, u8),
    DropLine(Index),
    SwapLines(Index, Index),
    RepeatLine(Index, Index),
    Splice(usize, Index),
    /// Gives the value of one string the place of another one's, which makes dangling parents, circles and repeated ids.
    SwapStrings(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<Index>;
    prop_oneof![
        index().prop_map(Damage::Cut),
        (index(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        index().prop_map(Damage::DropLine),
        (index(), index()).prop_map(|(a, b)| Damage::SwapLines(a, b)),
        (index(), index()).prop_map(|(a, b)| Damage::RepeatLine(a, b)),
        (0..FIXTURES.len(), index()).prop_map(|(file, at)| Damage::Splice(file, at)),
        (index(), index()).prop_map(|(a, b)| Damage::SwapStrings(a, b)),
    ]
}

fn apply(text: Vec<u8>, damage: &Damage) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return text;
    }
    match damage {
        Damage::Cut(at) => return text[..at.index(text.len())].to_vec(),
        Damage::Flip(at, byte) => {
            let mut text = text;
            let at = at.index(text.len());
            text[at] ^= byte;
            return text;
        }
        Damage::DropLine(at) => {
            lines.remove(at.index(lines.len()));
        }
        Damage::SwapLines(a, b) => {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
        }
        Damage::RepeatLine(a, b) => {
            let line = lines[a.index(lines.len())].clone();
            lines.insert(b.index(lines.len()), line);
        }
        Damage::Splice(file, at) => {
            let at = at.index(lines.len());
            lines.splice(at..at, [fixture(FIXTURES[*file])]);
        }
        Damage::SwapStrings(a, b) => return swap_strings(text, *a, *b),
    }
    lines.concat()
}

fn swap_strings(text: Vec<u8>, a: Index, b: Index) -> Vec<u8> {
    let mut pieces: Vec<Vec<u8>> = text.split(|&byte| byte == b'"').map(<[u8]>::to_vec).collect();
    let values: Vec<usize> =
        (1..pieces.len()).step_by(2).filter(|&at| pieces.get(at + 1).is_some_and(|next| next != b":")).collect();
    if values.is_empty() {
        return text;
    }
    let value = pieces[values[a.index(values.len())]].clone();
    pieces[values[b.index(values.len())]] = value;
    pieces.join(&b'"')
}

fn check(main: &[u8], subagent: &[u8]) -> Result<(), TestCaseError> {
    for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
        let input = |reader, listed: &str| SessionInput { reader, name: listed.into(), listed: listed.into() };
        let agent = input(subagent, "s/subagents/agent-acompact-9.jsonl");
        match convert_readers(input(main, "s.jsonl"), [agent], options) {
            Ok(conversion) => {
                let tree = BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT);
                prop_assert!(tree.is_ok(), "{}", tree.err().map(|error| error.to_string()).unwrap_or_default());
            }
            Err(HarnessError::Rejected(report)) => prop_assert!(report.has_errors()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn a_damaged_session_converts_or_is_rejected(
        (main, agent) in (0..FIXTURES.len(), 0..FIXTURES.len()),
        main_damage in prop::collection::vec(damage(), 0..6),
        agent_damage in prop::collection::vec(damage(), 0..3),
    ) {
        let main = main_damage.iter().fold(fixture(FIXTURES[main]), apply);
        let agent = agent_damage.iter().fold(fixture(FIXTURES[agent]), apply);
        check(&main, &agent)?;
    }

    #[test]
    fn any_bytes_convert_or_are_rejected(main in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&main, &main)?;
    }
}

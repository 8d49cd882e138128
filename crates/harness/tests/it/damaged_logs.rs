//! Whatever is wrong with a log, its adapter converts or rejects it, and what it converts is a tree
//! that strict reading takes.

use crate::damage::{apply, damage, fixture};
use pleach_harness::{Harness, HarnessError, Input, ReadOptions, convert_from};
use pleach_tree::BranchTree;
use proptest::prelude::*;

const FIXTURES: [&str; 7] = [
    "codex.jsonl",
    "pi.jsonl",
    "qwen_code.jsonl",
    "gemini_cli.jsonl",
    "openhands.jsonl",
    "opencode.json",
    "inspect_ai.json",
];

const HARNESSES: [Harness; 7] = [
    Harness::Codex,
    Harness::Pi,
    Harness::QwenCode,
    Harness::GeminiCli,
    Harness::OpenHands,
    Harness::OpenCode,
    Harness::InspectAi,
];

fn check(harness: Harness, main: &[u8], beside: &[u8]) -> Result<(), TestCaseError> {
    for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
        // The names under which the formats look for what lies beside their fixtures.
        let (name, names): (&str, &[&str]) = match harness {
            Harness::Codex => (
                "rollout-own.jsonl",
                &["rollout-par.jsonl", "../../../2026/01/31/rollout-par.jsonl"],
            ),
            Harness::Pi => ("t.jsonl", &["s.jsonl"]),
            Harness::GeminiCli => ("session-1.jsonl", &["abc/agent.jsonl"]),
            Harness::OpenCode => (
                "ses_1.json",
                &["ses_2.json", "../../message/ses_1/msg_1.json", "../../part/msg_1/prt_1.json"],
            ),
            _ => ("s.jsonl", &["beside.jsonl"]),
        };
        let beside = names.iter().map(|&name| (name.to_owned(), beside.to_vec()));
        match convert_from(&Input::memory(name, main.to_vec(), beside), Some(harness), options) {
            Ok(conversion) => {
                let tree =
                    BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT);
                prop_assert!(
                    tree.is_ok(),
                    "{}",
                    tree.err().map(|error| error.to_string()).unwrap_or_default()
                );
            }
            Err(HarnessError::Rejected(report)) => prop_assert!(report.has_errors()),
            Err(
                HarnessError::Io { .. }
                | HarnessError::OtherFormat { .. }
                | HarnessError::Empty { .. },
            ) => {}
            Err(
                HarnessError::Compressed { .. }
                | HarnessError::Damaged { .. }
                | HarnessError::CutArchive { .. }
                | HarnessError::Indented { .. }
                | HarnessError::Unread { .. }
                | HarnessError::Utf16 { .. },
            ) => {}
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_500))]

    #[test]
    fn a_damaged_log_converts_or_is_rejected(
        file in 0..FIXTURES.len(),
        main_damage in prop::collection::vec(damage(&FIXTURES), 0..6),
        beside_damage in prop::collection::vec(damage(&FIXTURES), 0..3),
    ) {
        let main = main_damage.iter().fold(fixture(FIXTURES[file]), apply);
        let beside = beside_damage.iter().fold(fixture(FIXTURES[file]), apply);
        check(HARNESSES[file], &main, &beside)?;
    }

    #[test]
    fn any_bytes_convert_or_are_rejected(at in 0..HARNESSES.len(), main in prop::collection::vec(any::<u8>(), 0..300)) {
        check(HARNESSES[at], &main, &main)?;
    }
}

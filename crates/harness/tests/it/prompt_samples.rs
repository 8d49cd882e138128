//! The small sample log of every adapter that works from prompts, steps or raw outputs,
//! `tests/fixtures/NAME`, as what it becomes; and whatever is wrong with one, it converts or is
//! rejected, and what converts is a tree that strict reading takes.

use crate::damage::{apply, damage, fixture};
use crate::told::told_of;
use pleach_harness::{Harness, HarnessError, Input, ReadOptions, convert_from, detect};
use pleach_tree::BranchTree;
use proptest::prelude::*;

const FIXTURES: [&str; 10] = [
    "requests.jsonl",
    "rl.jsonl",
    "captures.jsonl",
    "atif.json",
    "memexrl.jsonl",
    "tcrag.jsonl",
    "agentfold.jsonl",
    "messages.jsonl",
    "swe_agent.json",
    "mini_swe_agent.json",
];

const HARNESSES: [Harness; 10] = [
    Harness::Requests,
    Harness::Rl,
    Harness::Rl,
    Harness::Atif,
    Harness::MemexRl,
    Harness::TcRag,
    Harness::AgentFold,
    Harness::Messages,
    Harness::SweAgent,
    Harness::MiniSweAgent,
];

#[test]
fn every_sample_is_known_by_its_content_and_becomes_what_it_became() {
    for (name, harness) in FIXTURES.into_iter().zip(HARNESSES) {
        let input = Input::memory("log.jsonl", fixture(name), []);
        assert_eq!(detect(&input).unwrap(), harness, "{name}");
        let conversion = convert_from(&input, None, ReadOptions::STRICT).unwrap();
        insta::assert_snapshot!(name.split('.').next().unwrap(), told_of(&conversion));
    }
}

fn check(harness: Harness, main: &[u8], beside: &[u8]) -> Result<(), TestCaseError> {
    for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
        let input = Input::memory(
            "main.json",
            main.to_vec(),
            [("beside.json".to_owned(), beside.to_vec())],
        );
        match convert_from(&input, Some(harness), options) {
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
        (at, beside) in (0..FIXTURES.len(), 0..FIXTURES.len()),
        main_damage in prop::collection::vec(damage(&FIXTURES), 0..6),
        beside_damage in prop::collection::vec(damage(&FIXTURES), 0..3),
    ) {
        let main = main_damage.iter().fold(fixture(FIXTURES[at]), apply);
        let beside = beside_damage.iter().fold(fixture(FIXTURES[beside]), apply);
        check(HARNESSES[at], &main, &beside)?;
    }

    #[test]
    fn any_bytes_convert_or_are_rejected(at in 0..HARNESSES.len(), main in prop::collection::vec(any::<u8>(), 0..300)) {
        check(HARNESSES[at], &main, &main)?;
    }
}

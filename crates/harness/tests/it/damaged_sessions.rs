//! No byte string makes the adapter panic, and whatever it converts is a tree that strict reading
//! takes.

use crate::damage::{apply, damage, fixture};
use pleach_harness::claude_code::{SessionInput, convert_readers};
use pleach_harness::{HarnessError, ReadOptions};
use pleach_tree::BranchTree;
use proptest::prelude::*;

const FIXTURES: [&str; 9] = [
    "parallel_results.jsonl",
    "microcompact.jsonl",
    "manual_compaction.jsonl",
    "manual_compaction/subagents/agent-acompact-9.jsonl",
    "preserved_run.jsonl",
    "rewinds.jsonl",
    "subagent.jsonl",
    "not_context.jsonl",
    "sent.jsonl",
];

fn check(main: &[u8], subagent: &[u8]) -> Result<(), TestCaseError> {
    for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
        let input = |reader, listed: &str| SessionInput {
            reader,
            name: listed.into(),
            listed: listed.into(),
        };
        let agent = input(subagent, "s/subagents/agent-acompact-9.jsonl");
        match convert_readers(input(main, "s.jsonl"), [agent], options) {
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
        main_damage in prop::collection::vec(damage(&FIXTURES), 0..6),
        agent_damage in prop::collection::vec(damage(&FIXTURES), 0..3),
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

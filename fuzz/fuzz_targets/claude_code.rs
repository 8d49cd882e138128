//! Any bytes convert or are rejected, and what converts is a tree that strict reading takes.
//!
//! A record separator, byte 0x1e, parts the session from the file of a summariser.
//! `cargo fuzz run claude_code -- -dict=fuzz/claude_code.dict`, with
//! `crates/harness/tests/fixtures` as a start.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pleach_harness::claude_code::{SessionInput, convert_readers};
use pleach_harness::{HarnessError, ReadOptions, detect_bytes};
use pleach_tree::BranchTree;

fuzz_target!(|bytes: &[u8]| {
    let _ = detect_bytes(bytes);
    let mut files = bytes.splitn(2, |&byte| byte == 0x1e);
    let input =
        |reader, listed: &str| SessionInput { reader, name: listed.into(), listed: listed.into() };
    let main = files.next().unwrap_or_default();
    let agent = files.next();
    for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
        let agent = agent.map(|bytes| input(bytes, "s/subagents/agent-acompact-1.jsonl"));
        match convert_readers(input(main, "s.jsonl"), agent, options) {
            Ok(conversion) => {
                let tree =
                    BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT);
                assert!(
                    tree.is_ok(),
                    "{}",
                    tree.err().map(|error| error.to_string()).unwrap_or_default()
                );
            }
            Err(HarnessError::Rejected(report)) => assert!(report.has_errors()),
            Err(error) => panic!("{error}"),
        }
    }
});

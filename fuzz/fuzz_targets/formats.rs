//! Any bytes are told apart, and every format reads them as its own: they convert or are rejected, and what converts is a tree that
//! strict reading takes.
//!
//! The first byte chooses the format, and so does the environment variable `PLEACH_FORMAT`, which takes all bytes as text. A record
//! separator, byte 0x1e, parts the main file from one that lies beside it.
//! `PLEACH_FORMAT=codex cargo fuzz run formats -- -dict=fuzz/formats.dict`, with `crates/harness/tests/fixtures` as a start.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pleach_harness::{Harness, HarnessError, Input, ReadOptions, convert_from, detect_bytes};
use pleach_tree::BranchTree;

static NAMED: LazyLock<Option<Harness>> = LazyLock::new(|| {
    let name = std::env::var("PLEACH_FORMAT").ok()?;
    Some(Harness::named(&name).unwrap_or_else(|error| panic!("{error}")))
});

fuzz_target!(|bytes: &[u8]| {
    let (harness, bytes) = match (*NAMED, bytes.split_first()) {
        (Some(harness), _) => (harness, bytes),
        (None, Some((&first, rest))) => (Harness::ALL[first as usize % Harness::ALL.len()], rest),
        (None, None) => return,
    };
    let _ = detect_bytes(bytes);
    let mut files = bytes.splitn(2, |&byte| byte == 0x1e);
    let main = files.next().unwrap_or_default().to_vec();
    let beside = files.next().map(|bytes| ("beside.json".to_owned(), bytes.to_vec()));
    for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
        let input = Input::memory("main.json", main.clone(), beside.clone());
        match convert_from(&input, Some(harness), options) {
            Ok(conversion) => {
                // Records are taken as they are, and are checked where their tree is built.
                let tree = BranchTree::from_records(conversion.records, "records", options);
                let sound = tree.is_ok() || matches!(harness, Harness::Records | Harness::Atif);
                assert!(sound, "{}", tree.err().map(|error| error.to_string()).unwrap_or_default());
            }
            Err(HarnessError::Rejected(report)) => assert!(report.has_errors()),
            Err(HarnessError::Io { .. } | HarnessError::Compressed { .. } | HarnessError::Empty { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
});

//! Any bytes give a tree or a list of faults, and what lenient reading makes of them is a file that
//! strict reading takes.
//!
//! `cargo fuzz run records -- -dict=fuzz/records.dict`, with `../shared/vectors/*/records.jsonl` as
//! a start.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pleach_tree::{BranchTree, ReadOptions};

fuzz_target!(|bytes: &[u8]| {
    let strict = BranchTree::read(bytes, "fuzz", ReadOptions::STRICT);
    let Ok((tree, report)) = BranchTree::read(bytes, "fuzz", ReadOptions::LENIENT) else {
        assert!(strict.is_err(), "what lenient reading rejects is rejected by strict reading");
        return;
    };
    assert!(!report.has_errors());
    for view in tree.views() {
        let _ = (view.tokens(), view.output().count());
    }
    let mut written = Vec::new();
    if tree.write(&mut written).is_ok() {
        let again = BranchTree::read(written.as_slice(), "written", ReadOptions::STRICT);
        assert!(
            again.is_ok(),
            "{}",
            again.err().map(|error| error.to_string()).unwrap_or_default()
        );
    }
});

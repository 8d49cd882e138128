//! Reading streams: peak memory stays within a small multiple of what is kept, and of what is kept
//! with a line beside it.
use std::io::{BufReader, Read};

use peak_alloc::PeakAlloc;
use pleach_tree::{BranchTree, ReadOptions};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// A long rollout that is written while it is read, so that the file itself takes no memory.
struct Rollout {
    turn: usize,
    turns: usize,
    tokens: usize,
    line: Vec<u8>,
}

impl Rollout {
    fn write(&mut self) {
        let id = self.turn;
        let tokens = vec!["151935"; self.tokens].join(",");
        self.line =
            format!("{{\"t\":\"segment\",\"id\":{id},\"role\":\"tool\",\"origin\":\"environment\",\"tokens\":[{tokens}]}}\n")
                .into_bytes();
        let from = id.checked_sub(1).map_or("null".into(), |from| from.to_string());
        self.line.extend(
            format!("{{\"t\":\"append\",\"context\":{id},\"from\":{from},\"segments\":[{id}]}}\n")
                .bytes(),
        );
        self.turn += 1;
    }
}

impl Read for Rollout {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.line.is_empty() && self.turn < self.turns {
            self.write();
        }
        let count = out.len().min(self.line.len());
        out[..count].copy_from_slice(&self.line[..count]);
        self.line.drain(..count);
        Ok(count)
    }
}

#[test]
fn peak_memory_is_a_small_multiple_of_what_is_kept() {
    let header = b"{\"t\":\"header\",\"version\":1,\"harness\":\"long\",\"fidelity\":\"token\"}\n";
    let (turns, tokens) = (1000, 1000);
    let rollout = Rollout { turn: 0, turns, tokens, line: header.to_vec() };
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let (tree, _) = BranchTree::read(BufReader::new(rollout), "long", ReadOptions::STRICT).unwrap();
    let (kept, peak) = (ALLOCATED.current_usage() - before, ALLOCATED.peak_usage() - before);
    let ids = turns * tokens * size_of::<u32>();
    assert_eq!(tree.contexts().count(), turns);
    assert!(kept < 2 * ids, "{kept} bytes are kept for {ids} bytes of token ids");
    assert!(peak < kept + kept / 2, "{peak} bytes at the peak for {kept} that are kept");
}

//! Reading streams: peak memory stays within a small multiple of what is kept, and of what is kept with a line beside it.
#![allow(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a test fails by panicking; a counting allocator is unsafe by its signature"
)]
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{BufReader, Read};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pleach_tree::{BranchTree, ReadOptions};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

impl Counting {
    fn grown(by: usize) {
        let live = LIVE.fetch_add(by, Relaxed) + by;
        PEAK.fetch_max(live, Relaxed);
    }
}

// SAFETY: every call goes to the system allocator with the arguments it came with; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::grown(layout.size());
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::grown(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

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
        self.line.extend(format!("{{\"t\":\"append\",\"context\":{id},\"from\":{from},\"segments\":[{id}]}}\n").bytes());
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
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let (tree, _) = BranchTree::read(BufReader::new(rollout), "long", ReadOptions::STRICT).unwrap();
    let (kept, peak) = (LIVE.load(Relaxed) - before, PEAK.load(Relaxed) - before);
    let ids = turns * tokens * size_of::<u32>();
    assert_eq!(tree.contexts().count(), turns);
    assert!(kept < 2 * ids, "{kept} bytes are kept for {ids} bytes of token ids");
    assert!(peak < kept + kept / 2, "{peak} bytes at the peak for {kept} that are kept");
}

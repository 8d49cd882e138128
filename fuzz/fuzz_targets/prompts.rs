//! Whatever prompts a log gives, every call's context holds exactly the ids of its prompt, and
//! nothing is trained twice.
//!
//! Bytes are read as a rollout: a byte says what happens to the list of ids, the next ones where
//! and with what. `cargo fuzz run prompts`.
#![no_main]

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use pleach_harness::{Harness, Input, ReadOptions, convert_from};
use pleach_tree::BranchTree;

/// Prompts and completions out of bytes.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first as usize
    }

    /// A stretch of a list of some length.
    fn span(&mut self, len: usize) -> std::ops::Range<usize> {
        let (a, b) = (self.next() % (len + 1), self.next() % (len + 1));
        a.min(b)..a.max(b)
    }

    /// Some ids: few values, so that much stands twice, or a run that stands nowhere else.
    fn ids(&mut self, fresh: &mut u32) -> Vec<u32> {
        let count = self.next() % 24 + 1;
        if self.next() % 2 == 0 {
            return (0..count).map(|_| (self.next() % 6) as u32).collect();
        }
        (0..count)
            .map(|_| {
                *fresh += 1;
                *fresh
            })
            .collect()
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Bytes(bytes);
    let named = bytes.next() % 2 == 0;
    let mut fresh = 100;
    let mut calls: Vec<(Vec<u32>, Vec<u32>)> = vec![(bytes.ids(&mut fresh), bytes.ids(&mut fresh))];
    while !bytes.0.is_empty() && calls.len() < 24 {
        let (prompt, said) = &calls[calls.len() - 1];
        let mut view = [prompt.as_slice(), said].concat();
        match bytes.next() % 7 {
            0 | 1 => view.extend(bytes.ids(&mut fresh)),
            2 => drop(view.drain(bytes.span(view.len()))),
            3 => {
                let span = bytes.span(view.len());
                view.splice(span, bytes.ids(&mut fresh));
            }
            4 => view.clone_from(&calls[bytes.next() % calls.len()].0),
            5 => {
                let at = bytes.next() % calls.len();
                view = [calls[at].0.as_slice(), &calls[at].1, &bytes.ids(&mut fresh)].concat();
            }
            _ => view = bytes.ids(&mut fresh),
        }
        if view.is_empty() {
            view.push(3);
        }
        calls.push((view, bytes.ids(&mut fresh)));
    }
    let mut log = String::new();
    for (prompt, said) in &calls {
        let rollout = if named { ",\"rollout_id\":\"q\"" } else { "" };
        let _ = writeln!(log, "{{\"prompt_ids\":{prompt:?},\"completion_ids\":{said:?}{rollout}}}");
    }
    let input = Input::memory("steps.jsonl", log.into_bytes(), []);
    let conversion = match convert_from(&input, Some(Harness::Rl), ReadOptions::STRICT) {
        Ok(conversion) => conversion,
        Err(error) => panic!("{error}"),
    };
    let (tree, _) =
        match BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT) {
            Ok(tree) => tree,
            Err(error) => panic!("{error}"),
        };
    let mut left = calls.iter();
    for view in tree.views() {
        let tokens = view.tokens();
        let found = left.by_ref().any(|(prompt, said)| {
            tokens.iter().eq(prompt.iter().chain(said)) && view.output().count() == said.len()
        });
        assert!(found, "a view is no call of the log, or stands out of order: {tokens:?}");
    }
    let mut whole: Vec<Vec<u32>> =
        calls.iter().map(|(prompt, said)| [prompt.as_slice(), said].concat()).collect();
    let views: std::collections::HashSet<Vec<u32>> =
        tree.views().map(|view| view.tokens()).collect();
    whole.retain(|call| !views.contains(call));
    assert!(whole.is_empty(), "calls are missing: {whole:?}");
    let mut sampled = std::collections::HashSet::new();
    assert!(
        tree.generations()
            .flat_map(|generation| &generation.output)
            .all(|segment| sampled.insert(*segment))
    );
});

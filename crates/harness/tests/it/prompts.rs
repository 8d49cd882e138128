//! Whatever prompts a log gives, every call's context holds exactly the ids of its prompt, and
//! nothing is trained twice.
use std::collections::HashSet;

use pleach_harness::{Harness, Input, ReadOptions, convert_from};
use pleach_tree::{BranchTree, View};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

/// What a harness may do to a context between two calls.
#[derive(Debug, Clone)]
enum Change {
    Append(Vec<u32>),
    Cut(Index, Index),
    Replace(Index, Index, Vec<u32>),
    Insert(Index, Vec<u32>),
    /// Back to an earlier prompt, and on from there.
    Back(Index, Vec<u32>),
    Repeat,
    Anew(Vec<u32>),
}

fn ids(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u32>> {
    // Few values, so that what stands twice is common.
    prop_oneof![
        prop::collection::vec(0_u32..8, len.clone()),
        prop::collection::vec(0_u32..5_000, len)
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    prop_oneof![
        3 => ids(1..30).prop_map(Change::Append),
        2 => (index(), index()).prop_map(|(from, to)| Change::Cut(from, to)),
        2 => (index(), index(), ids(1..20)).prop_map(|(from, to, new)| Change::Replace(from, to, new)),
        1 => (index(), ids(1..5)).prop_map(|(at, new)| Change::Insert(at, new)),
        1 => (index(), ids(0..5)).prop_map(|(at, new)| Change::Back(at, new)),
        1 => Just(Change::Repeat),
        1 => ids(1..30).prop_map(Change::Anew),
    ]
}

fn span(len: usize, from: Index, to: Index) -> std::ops::Range<usize> {
    let (from, to) = (from.index(len + 1), to.index(len + 1));
    from.min(to)..from.max(to)
}

/// Prompts and completions of a rollout.
fn calls(first: Vec<u32>, changes: Vec<(Change, Vec<u32>)>) -> Vec<(Vec<u32>, Vec<u32>)> {
    let mut calls: Vec<(Vec<u32>, Vec<u32>)> = vec![(first, vec![7, 7, 1])];
    for (change, said) in changes {
        let (prompt, before) = calls.last().unwrap();
        let mut view: Vec<u32> = prompt.iter().chain(before).copied().collect();
        match change {
            Change::Append(new) => view.extend(new),
            Change::Cut(from, to) => drop(view.drain(span(view.len(), from, to))),
            Change::Replace(from, to, new) => drop(view.splice(span(view.len(), from, to), new)),
            Change::Insert(at, new) => drop(view.splice(span(view.len(), at, at), new)),
            Change::Back(at, new) => {
                view.clone_from(&calls[at.index(calls.len())].0);
                view.extend(new);
            }
            Change::Repeat => view.clone_from(prompt),
            Change::Anew(new) => view = new,
        }
        if view.is_empty() {
            view.push(3);
        }
        calls.push((view, said));
    }
    calls
}

fn log(calls: &[(Vec<u32>, Vec<u32>)], named: bool) -> Vec<u8> {
    let line = |(prompt, said): &(Vec<u32>, Vec<u32>)| {
        let mut step = json!({"prompt_ids": prompt, "completion_ids": said});
        if named {
            step["rollout_id"] = "q".into();
        }
        step.to_string() + "\n"
    };
    calls.iter().map(line).collect::<String>().into_bytes()
}

fn check(calls: &[(Vec<u32>, Vec<u32>)], named: bool) -> Result<(), TestCaseError> {
    let input = Input::memory("steps.jsonl", log(calls, named), []);
    let conversion = convert_from(&input, Some(Harness::Rl), ReadOptions::STRICT).unwrap();
    let tree = BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT);
    let (tree, _) = tree.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let repeated = conversion
        .report
        .diagnostics
        .iter()
        .filter(|found| found.to_string().contains("repeated-call"))
        .count();
    let mut left = calls.iter();
    let mut skipped = 0;
    for view in tree.views() {
        loop {
            let (prompt, said) = left.next().unwrap();
            let whole: Vec<u32> = prompt.iter().chain(said).copied().collect();
            if holds(view, &whole, said.len()) {
                break;
            }
            // Only a call that stands above, word for word, may be passed over.
            skipped += 1;
            prop_assert!(
                calls.iter().filter(|call| **call == (prompt.clone(), said.clone())).count() > 1
            );
        }
    }
    skipped += left.count();
    prop_assert_eq!(skipped, repeated);
    let mut sampled = HashSet::new();
    prop_assert!(
        tree.generations()
            .flat_map(|generation| &generation.output)
            .all(|segment| sampled.insert(*segment))
    );
    Ok(())
}

fn holds(view: View<'_>, whole: &[u32], said: usize) -> bool {
    view.tokens().iter().copied().eq(whole.iter().copied()) && view.output().count() == said
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn contexts_hold_what_the_log_says(
        first in ids(1..80),
        changes in prop::collection::vec((change(), ids(1..40)), 0..12),
        named in any::<bool>(),
    ) {
        check(&calls(first, changes), named)?;
    }
}

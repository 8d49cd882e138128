//! Drawn trees reach every operation, place, kind and shape that the properties speak of.

use std::collections::BTreeSet;

use crate::drawn::tree_of;
use pleach_layout::Layouts;
use pleach_tests::{Oracle, Trees, trees};
use pleach_tree::{Record, Segment};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

fn seen_in(records: &[Record]) -> BTreeSet<String> {
    let oracle = Oracle::of(records);
    let mut seen: BTreeSet<String> =
        records.iter().map(|record| record.tag().to_string()).collect();
    for record in records {
        match record {
            Record::Segment(segment) => seen.extend(of_segment(segment)),
            Record::Evict(evict) => {
                for entry in &evict.evicted {
                    seen.insert(if entry.tokens.is_some() {
                        "range".into()
                    } else {
                        "whole segment".into()
                    });
                }
                if let Some(replacement) = &evict.replacement {
                    let each = evict.evicted.len() == replacement.segments.len()
                        && evict.evicted.len() > 1;
                    seen.insert(format!(
                        "{:?}{}",
                        replacement.place,
                        if each { " one each" } else { "" }
                    ));
                    seen.insert(format!("{:?}", replacement.kind));
                    let sampled =
                        |id| oracle.calls.iter().any(|call| call.generation.output.contains(id));
                    seen.extend(
                        replacement
                            .segments
                            .iter()
                            .any(sampled)
                            .then(|| "sampled replacement".to_string()),
                    );
                } else {
                    seen.insert("no replacement".into());
                }
            }
            Record::Append(append) => {
                let came_back =
                    append.segments.iter().any(|id| left_before(&oracle, id.0, append.context.0));
                seen.extend(came_back.then(|| "span that comes back".to_string()));
                seen.extend(append.from.is_none().then(|| "root".to_string()));
            }
            Record::Fork(fork) => drop(seen.insert(format!("{:?}", fork.reason))),
            _ => {}
        }
    }
    seen
}

fn of_segment(segment: &Segment) -> Vec<String> {
    let weights = segment.loss.iter().flatten().map(|run| run.weight);
    let mut seen: Vec<String> = weights
        .map(|weight| {
            if weight == 0.0 || weight == 1.0 {
                format!("weight {weight}")
            } else {
                "fractional weight".into()
            }
        })
        .collect();
    seen.push(format!("{} tokens", segment.extent().min(2)));
    seen.push(format!("{:?}", segment.origin));
    seen.extend(segment.logprobs.is_some().then(|| "logprobs".to_string()));
    seen
}

fn left_before(oracle: &Oracle, segment: u32, context: u32) -> bool {
    let made = oracle
        .records
        .iter()
        .position(|record| matches!(record, Record::Append(append) if append.context.0 == context));
    let above = oracle.records[..made.unwrap_or(0)].iter();
    above
        .into_iter()
        .any(|record| matches!(record, Record::Evict(evict) if evict.evicted.iter().any(|entry| entry.segment.0 == segment)))
}

#[test]
fn five_hundred_drawn_trees_hold_every_kind_of_thing() {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..500 {
        let records = trees(Trees::default()).new_tree(&mut runner).unwrap().current();
        seen.extend(seen_in(&records));
        let tree = tree_of(&records);
        let layouts = Layouts::new(&tree).unwrap();
        let packed = layouts.packed().unwrap();
        let depth = packed.sequences[0].positions.iter().max().copied().unwrap_or(0);
        let children =
            |parent: i32| packed.parents.iter().flatten().filter(|&&found| found == parent).count();
        seen.extend((depth > 40).then(|| "deep".to_string()));
        seen.extend((children(-1) > 2).then(|| "forest".to_string()));
        seen.extend(
            (0..packed.tokens() as i32)
                .any(|token| children(token) > 3)
                .then(|| "star".to_string()),
        );
        let terms = packed.sequences[0].terms.iter();
        let sources: BTreeSet<(u32, u32)> =
            terms.clone().map(|term| (term.source, term.target)).collect();
        seen.extend((sources.len() < terms.len()).then(|| "merged siblings".to_string()));
        seen.insert(format!("union exact: {}", layouts.certificate().union_is_exact));
        seen.extend(
            (layouts.segments().unwrap().sequences.len() > 3).then(|| "K above 2".to_string()),
        );
    }
    let wanted = [
        "header",
        "segment",
        "append",
        "evict",
        "replace",
        "fork",
        "generation",
        "outcome",
        "x-note",
        "root",
        "range",
        "whole segment",
        "no replacement",
        "sampled replacement",
        "span that comes back",
        "Head",
        "InPlace",
        "BeforeFirst",
        "AfterKept",
        "Index(0)",
        "Index(1)",
        "InPlace one each",
        "Summary",
        "Placeholder",
        "Truncation",
        "Index",
        "None",
        "Rewind",
        "Retry",
        "Subagent",
        "Summarizer",
        "Resume",
        "0 tokens",
        "1 tokens",
        "2 tokens",
        "Policy",
        "Environment",
        "Harness",
        "Human",
        "ExternalModel",
        "logprobs",
        "weight 0",
        "weight 1",
        "fractional weight",
        "deep",
        "forest",
        "star",
        "merged siblings",
        "union exact: true",
        "union exact: false",
        "K above 2",
    ];
    let lacking: Vec<&str> = wanted.into_iter().filter(|&wanted| !seen.contains(wanted)).collect();
    assert_eq!(lacking, Vec::<&str>::new(), "seen: {seen:?}");
}

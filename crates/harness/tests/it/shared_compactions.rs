//! Real sessions, held against what their files say when they are read without the adapter:
//! compactions, rewinds and sizes.
//!
//! The files lie beside the repository and not in it; without them every test says that it is
//! skipped.

use std::collections::HashSet;

use crate::shared::{Session, path, session, sessions, text};
use pleach_harness::{ReadOptions, convert};
use pleach_tree::{Generation, Operation, Record};
use serde_json::Value;

#[test]
fn the_automatic_compaction_is_the_summarisers_and_keeps_nothing() {
    let Some(session) = session("auto-compact-dangling-parent") else { return };
    let evicts: Vec<_> = session
        .tree
        .contexts()
        .filter_map(|context| match session.tree.operation(context.id().unwrap()) {
            Some(Operation::Evict(evict)) => Some(evict),
            _ => None,
        })
        .collect();
    assert_eq!(evicts.len(), 1);
    let generation =
        session.tree.generation(evicts[0].by.as_ref().unwrap().generation.unwrap()).unwrap();
    let spoken = session.lines[0][..753]
        .iter()
        .filter(|line| line["type"] == "user" || line["type"] == "assistant")
        .count();
    assert_eq!(
        (generation.thread.as_str(), evicts[0].evicted.len()),
        ("agent-acompact-e1f845", spoken + 3),
        "three reminders that only the summariser's file has"
    );
    let seen = session.context(generation);
    assert_eq!(seen.len(), spoken + 4, "the evicted list and the prompt");
    assert_eq!(session.tree.spans(evicts[0].context).unwrap().len(), 5);
    let summary: String = session
        .tree
        .spans(evicts[0].context)
        .unwrap()
        .iter()
        .map(|span| text(session.tree.segment(span.segment).unwrap()))
        .collect();
    assert_eq!(summary, session.lines[0][754]["message"]["content"].as_str().unwrap());
    let threads: HashSet<&str> =
        session.tree.generations().map(|generation| generation.thread.as_str()).collect();
    assert_eq!(threads, HashSet::from(["main", "agent-a2898e3", "agent-acompact-e1f845"]));
}

#[test]
fn microcompactions_replace_exactly_the_results_that_they_list() {
    for (name, count) in [("one-microcompact", 1), ("three-microcompacts", 3)] {
        let Some(session) = session(name) else { continue };
        let boundaries =
            session.lines[0].iter().filter(|line| line["subtype"] == "microcompact_boundary");
        let listed: Vec<Vec<&str>> = boundaries
            .map(|line| &line["microcompactMetadata"]["compactedToolIds"])
            .map(|ids| ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect())
            .collect();
        let evicted: Vec<Vec<&str>> = session
            .conversion
            .records
            .iter()
            .filter_map(|record| match record {
                Record::Evict(evict) => Some(evict),
                _ => None,
            })
            .map(|evict| {
                evict
                    .evicted
                    .iter()
                    .map(|gone| {
                        session.tree.segment(gone.segment).unwrap().result_of.as_deref().unwrap()
                    })
                    .collect()
            })
            .collect();
        assert_eq!(evicted, listed);
        assert_eq!(evicted.len(), count);
    }
}

#[test]
fn reconstructed_sizes_follow_recorded_usage() {
    for session in sessions().filter(|session| !session.name.starts_with("rewind")) {
        let usage = session.conversion.usage.as_ref().unwrap();
        let checked: usize = usage.eras.iter().map(|era| era.calls.len()).sum();
        assert_eq!(checked, session.calls(), "every call has usage");
        for era in &usage.eras {
            assert!(
                (0.25..0.4).contains(&era.tokens_per_byte),
                "{}: {}",
                session.name,
                era.tokens_per_byte
            );
            assert!(era.hidden_tokens > 10_000.0, "system prompt and tools");
            assert!(era.calls.iter().all(|call| !call.deviates), "{}: {era:?}", session.name);
        }
    }
}

#[test]
fn a_result_that_is_lost_shows_as_a_deviation_from_recorded_usage() {
    let Some(path) = path("one-microcompact") else { return };
    let folder = tempfile::tempdir().unwrap();
    let short = std::fs::read_to_string(path)
        .unwrap()
        .split('\n')
        .map(shorten)
        .collect::<Vec<_>>()
        .join("\n");
    std::fs::write(folder.path().join("s.jsonl"), short).unwrap();
    let conversion = convert(folder.path().join("s.jsonl"), ReadOptions::STRICT).unwrap();
    let deviating = conversion
        .usage
        .unwrap()
        .eras
        .iter()
        .flat_map(|era| &era.calls)
        .filter(|call| call.deviates)
        .count();
    assert!(deviating > 0);
    assert!(
        conversion
            .report
            .diagnostics
            .iter()
            .any(|found| found.to_string().contains("usage-deviates"))
    );
}

/// Empties the largest results of the session.
fn shorten(line: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else { return line.into() };
    for block in value["message"]["content"].as_array_mut().into_iter().flatten() {
        if block["tool_use_id"] == "toolu_015yhXG6KKxQNmKetNhyYbh6"
            || block["tool_use_id"] == "toolu_01DXd31ambKc1n94THneFMXX"
        {
            block["content"] = Value::from("");
        }
    }
    value.to_string()
}

fn threads_of(session: &Session) -> Vec<(String, String)> {
    let keys = |generation: &Generation| {
        let keys: Vec<&str> = session
            .context(generation)
            .iter()
            .map(|segment| segment.source.as_ref().unwrap().key.as_str())
            .collect();
        keys.join(" ")
    };
    session
        .tree
        .generations()
        .map(|generation| (generation.thread.clone(), keys(generation)))
        .collect()
}

#[test]
fn a_rewind_before_a_compaction_leaves_the_branch_that_was_given_up_out_of_it() {
    let Some(session) = session("rewind_then_compact") else { return };
    let threads = threads_of(&session);
    let threads: Vec<(&str, &str)> =
        threads.iter().map(|(thread, keys)| (thread.as_str(), keys.as_str())).collect();
    assert_eq!(
        threads,
        [
            ("main", "u1"),
            ("main~1", "u1 msg_a1 b1u"),
            ("main", "u1 msg_a1 b2u"),
            ("main", "u1 msg_a1 b2u msg_b2a b2u2"),
            ("main", "cs p1u"),
        ]
    );
}

#[test]
fn a_preserved_tail_stands_behind_the_summary_and_a_line_written_late_was_sampled_before_it() {
    let Some(session) = session("rewind_then_compact_preserved") else { return };
    let threads = threads_of(&session);
    let threads: Vec<(&str, &str)> =
        threads.iter().map(|(thread, keys)| (thread.as_str(), keys.as_str())).collect();
    assert_eq!(
        threads,
        [
            ("main", "u1"),
            ("main~1", "u1 msg_a1 b1u"),
            ("main", "u1 msg_a1 b2u"),
            ("main", "u1 msg_a1 b2u msg_b2a b2u2"),
            ("main", "cs msg_b2a b2u2 msg_b2a2 p1u"),
        ]
    );
}

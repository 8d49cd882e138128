//! Real sessions, held against what their files say when they are read without the adapter.
//!
//! The files lie beside the repository and not in it; without them every test says that it is skipped.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use pleach_harness::{Conversion, HarnessError, ReadOptions, convert};
use pleach_tree::{BranchTree, Fidelity, Generation, Operation, Origin, Record, Segment, Severity};
use serde_json::Value;

const SESSIONS: [&str; 5] = [
    "auto-compact-dangling-parent",
    "one-microcompact",
    "three-microcompacts",
    "rewind_then_compact",
    "rewind_then_compact_preserved",
];

fn path(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/transcripts/claude-code");
    let path = folder.join(name).with_extension("jsonl");
    if !path.exists() {
        eprintln!("skipped: {name} is not there");
        return None;
    }
    Some(path)
}

struct Session {
    name: &'static str,
    conversion: Conversion,
    tree: BranchTree,
    /// The lines of each of its files.
    lines: Vec<Vec<Value>>,
}

fn sessions() -> impl Iterator<Item = Session> {
    SESSIONS.into_iter().filter_map(session)
}

fn session(name: &'static str) -> Option<Session> {
    let path = path(name)?;
    let conversion = convert(&path, ReadOptions::LENIENT).unwrap();
    let (tree, _) = BranchTree::from_records(conversion.records.clone(), name, ReadOptions::STRICT).unwrap();
    let read = |file: &String| {
        let text = std::fs::read_to_string(path.with_file_name("").join(file)).unwrap();
        text.split('\n').filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let lines = tree.header().files.iter().map(read).collect();
    Some(Session { name, conversion, tree, lines })
}

impl Session {
    fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.tree.records().iter().filter_map(|record| match record {
            Record::Segment(segment) => Some(segment),
            _ => None,
        })
    }

    fn line(&self, segment: &Segment) -> &Value {
        let source = segment.source.as_ref().unwrap();
        &self.lines[source.file as usize][source.line as usize - 1]
    }

    fn context(&self, generation: &Generation) -> Vec<&Segment> {
        let spans = self.tree.spans(generation.context).unwrap();
        spans.iter().map(|span| self.tree.segment(span.segment).unwrap()).collect()
    }

    fn calls(&self) -> usize {
        let calls: HashSet<&str> = self.lines.iter().flatten().filter_map(call_of).collect();
        calls.len()
    }
}

/// The message id of a line of a call.
fn call_of(line: &Value) -> Option<&str> {
    (line["type"] == "assistant" && line["message"]["model"] != "<synthetic>").then(|| line["message"]["id"].as_str().unwrap())
}

fn blocks(line: &Value) -> impl Iterator<Item = &Value> {
    line["message"]["content"].as_array().into_iter().flatten()
}

fn text(segment: &Segment) -> &str {
    segment.text.as_deref().unwrap()
}

#[test]
fn sound_files_convert_strictly_and_the_dangling_parent_is_the_only_repair() {
    for name in SESSIONS {
        let Some(path) = path(name) else { continue };
        match convert(&path, ReadOptions::STRICT) {
            Ok(conversion) => assert_eq!(conversion.report.of(Severity::Repaired).count(), 0, "{name}"),
            Err(HarnessError::Rejected(report)) => {
                assert_eq!(name, "auto-compact-dangling-parent");
                let errors: Vec<_> = report.of(Severity::Error).collect();
                assert_eq!(errors.len(), 1);
                assert_eq!((errors[0].location.line, errors[0].location.key.as_str()), (754, "logicalParentUuid"));
                assert!(errors[0].location.file.ends_with("auto-compact-dangling-parent.jsonl"));
            }
            Err(error) => panic!("{error}"),
        }
    }
    for session in sessions() {
        let repairs = session.conversion.report.of(Severity::Repaired).count();
        let (wanted, fidelity) = match session.name {
            "auto-compact-dangling-parent" => (1, Fidelity::Inferred),
            _ => (0, Fidelity::Message),
        };
        assert_eq!((repairs, session.tree.header().fidelity), (wanted, fidelity), "{}", session.name);
    }
}

#[test]
fn every_call_is_one_generation_and_says_what_its_lines_say() {
    for session in sessions() {
        assert_eq!(session.tree.generation_count(), session.calls(), "{}", session.name);
        for generation in session.tree.generations() {
            let output: Vec<&Segment> = generation.output.iter().map(|&id| session.tree.segment(id).unwrap()).collect();
            let id = &output[0].source.as_ref().unwrap().key;
            let lines = session.lines.iter().flatten().filter(|line| call_of(line) == Some(id));
            let mut said = String::new();
            for block in lines.flat_map(blocks) {
                match block["type"].as_str().unwrap() {
                    "text" => said += block["text"].as_str().unwrap(),
                    "thinking" => said += block["thinking"].as_str().unwrap(),
                    "tool_use" => {
                        let segment =
                            output.iter().find(|segment| segment.calls.contains(&block["id"].as_str().unwrap().into()));
                        let call: Value = serde_json::from_str(text(segment.unwrap())).unwrap();
                        assert_eq!(
                            (&call["id"], &call["name"], &call["input"]),
                            (&block["id"], &block["name"], &block["input"])
                        );
                        said += text(segment.unwrap());
                    }
                    other => panic!("{other}"),
                }
            }
            assert_eq!(output.iter().map(|segment| text(segment)).collect::<String>(), said);
            let reasons = output.iter().any(|segment| segment.origin == Origin::ExternalModel);
            assert_eq!(generation.unrecorded, if reasons { vec!["reasoning".to_owned()] } else { Vec::new() });
        }
    }
}

#[test]
fn every_source_key_is_the_uuid_the_call_the_cleared_call_or_the_message() {
    for session in sessions() {
        for segment in session.segments() {
            let key = session.tree.segment(segment.id).unwrap().source.as_ref().unwrap().key.as_str();
            let line = session.line(segment);
            let wanted = match line["type"].as_str().unwrap() {
                "assistant" => line["message"]["id"].as_str().unwrap().to_owned(),
                "system" => format!("{}#cleared", segment.result_of.as_ref().unwrap()),
                _ => segment.result_of.clone().unwrap_or_else(|| line["uuid"].as_str().unwrap().to_owned()),
            };
            assert_eq!(key, wanted, "{}", session.name);
        }
    }
}

#[test]
fn no_result_of_a_call_that_a_request_holds_is_missing_from_the_request() {
    for session in sessions() {
        let answered: HashMap<&str, String> = session.lines.iter().flatten().flat_map(blocks).filter_map(answer).collect();
        let mut seen = HashSet::new();
        for generation in session.tree.generations() {
            let context = session.context(generation);
            let results: HashMap<&str, &Segment> =
                context.iter().filter_map(|segment| Some((segment.result_of.as_deref()?, *segment))).collect();
            for call in context.iter().flat_map(|segment| &segment.calls) {
                let result =
                    results.get(call.as_str()).unwrap_or_else(|| panic!("{}: {} lacks {call}", session.name, generation.id));
                if result.source.as_ref().unwrap().key == *call {
                    assert_eq!(text(result), answered[call.as_str()], "{}: {call}", session.name);
                }
                seen.insert(call.clone());
            }
        }
        // Only results behind the last call of their thread were in no request.
        let unseen: Vec<&&str> = answered.keys().filter(|call| !seen.contains(**call)).collect();
        assert_eq!(unseen.len(), if session.name == "three-microcompacts" { 5 } else { 0 }, "{}: {unseen:?}", session.name);
    }
}

fn answer(block: &Value) -> Option<(&str, String)> {
    let call = block["tool_use_id"].as_str()?;
    let text = match &block["content"] {
        Value::String(text) => text.clone(),
        blocks => {
            let texts: Vec<&str> = blocks.as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap()).collect();
            texts.join("\n")
        }
    };
    Some((call, text))
}

#[test]
fn no_request_holds_a_line_that_was_written_behind_its_first_line() {
    for session in sessions() {
        for generation in session.tree.generations() {
            let first = session.tree.segment(generation.output[0]).unwrap().source.as_ref().unwrap();
            for segment in session.context(generation) {
                let source = segment.source.as_ref().unwrap();
                // The one line that is preserved behind its boundary was sampled before it.
                let late = source.key == "msg_b2a2" || first.key == "msg_b2a2";
                assert!(late || source.file != first.file || source.line < first.line, "{}: {source:?}", session.name);
            }
        }
    }
}

#[test]
fn every_line_of_a_person_stands_in_the_context_of_the_call_that_answers_it() {
    for session in sessions() {
        for (line, next) in session.lines[0].iter().zip(session.lines[0].iter().skip(1)) {
            let (Some(given), Some(call)) = (line["message"]["content"].as_str(), call_of(next)) else { continue };
            let generation = session
                .tree
                .generations()
                .find(|generation| session.tree.segment(generation.output[0]).unwrap().source.as_ref().unwrap().key == call)
                .unwrap();
            let context = session.context(generation);
            let uuid = line["uuid"].as_str().unwrap();
            let found: Vec<&&Segment> = context.iter().filter(|segment| segment.source.as_ref().unwrap().key == uuid).collect();
            assert_eq!(found.len(), 1, "{}: {uuid}", session.name);
            assert_eq!(text(found[0]), given);
        }
    }
}

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
    let generation = session.tree.generation(evicts[0].by.as_ref().unwrap().generation.unwrap()).unwrap();
    let spoken = session.lines[0][..753].iter().filter(|line| line["type"] == "user" || line["type"] == "assistant").count();
    assert_eq!((generation.thread.as_str(), evicts[0].evicted.len()), ("agent-acompact-e1f845", spoken));
    let seen = session.context(generation);
    assert_eq!(seen.len(), spoken + 4, "the evicted list, three reminders and the prompt");
    assert_eq!(session.tree.spans(evicts[0].context).unwrap().len(), 5);
    let summary: String = session
        .tree
        .spans(evicts[0].context)
        .unwrap()
        .iter()
        .map(|span| text(session.tree.segment(span.segment).unwrap()))
        .collect();
    assert_eq!(summary, session.lines[0][754]["message"]["content"].as_str().unwrap());
    let threads: HashSet<&str> = session.tree.generations().map(|generation| generation.thread.as_str()).collect();
    assert_eq!(threads, HashSet::from(["main", "agent-a2898e3", "agent-acompact-e1f845"]));
}

#[test]
fn microcompactions_replace_exactly_the_results_that_they_list() {
    for (name, count) in [("one-microcompact", 1), ("three-microcompacts", 3)] {
        let Some(session) = session(name) else { continue };
        let boundaries = session.lines[0].iter().filter(|line| line["subtype"] == "microcompact_boundary");
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
                    .map(|gone| session.tree.segment(gone.segment).unwrap().result_of.as_deref().unwrap())
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
            assert!((0.25..0.4).contains(&era.tokens_per_byte), "{}: {}", session.name, era.tokens_per_byte);
            assert!(era.hidden_tokens > 10_000.0, "system prompt and tools");
            assert!(era.calls.iter().all(|call| !call.deviates), "{}: {era:?}", session.name);
        }
    }
}

#[test]
fn a_result_that_is_lost_shows_as_a_deviation_from_recorded_usage() {
    let Some(path) = path("one-microcompact") else { return };
    let folder = tempfile::tempdir().unwrap();
    let short = std::fs::read_to_string(path).unwrap().split('\n').map(shorten).collect::<Vec<_>>().join("\n");
    std::fs::write(folder.path().join("s.jsonl"), short).unwrap();
    let conversion = convert(folder.path().join("s.jsonl"), ReadOptions::STRICT).unwrap();
    let deviating = conversion.usage.unwrap().eras.iter().flat_map(|era| &era.calls).filter(|call| call.deviates).count();
    assert!(deviating > 0);
    assert!(conversion.report.diagnostics.iter().any(|found| found.to_string().contains("usage-deviates")));
}

/// Empties the largest results of the session.
fn shorten(line: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else { return line.into() };
    for block in value["message"]["content"].as_array_mut().into_iter().flatten() {
        if block["tool_use_id"] == "toolu_015yhXG6KKxQNmKetNhyYbh6" || block["tool_use_id"] == "toolu_01DXd31ambKc1n94THneFMXX"
        {
            block["content"] = Value::from("");
        }
    }
    value.to_string()
}

fn threads_of(session: &Session) -> Vec<(String, String)> {
    let keys = |generation: &Generation| {
        let keys: Vec<&str> =
            session.context(generation).iter().map(|segment| segment.source.as_ref().unwrap().key.as_str()).collect();
        keys.join(" ")
    };
    session.tree.generations().map(|generation| (generation.thread.clone(), keys(generation))).collect()
}

#[test]
fn a_rewind_before_a_compaction_leaves_the_branch_that_was_given_up_out_of_it() {
    let Some(session) = session("rewind_then_compact") else { return };
    let threads = threads_of(&session);
    let threads: Vec<(&str, &str)> = threads.iter().map(|(thread, keys)| (thread.as_str(), keys.as_str())).collect();
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
    let threads: Vec<(&str, &str)> = threads.iter().map(|(thread, keys)| (thread.as_str(), keys.as_str())).collect();
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

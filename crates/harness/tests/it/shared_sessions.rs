//! Real sessions, held against what their files say when they are read without the adapter.
//!
//! The files lie beside the repository and not in it; without them every test says that it is
//! skipped.

use std::collections::{HashMap, HashSet};

use crate::shared::{SESSIONS, Session, call_of, path, sessions, text};
use pleach_harness::{HarnessError, ReadOptions, convert};
use pleach_tree::{Fidelity, Origin, Record, Segment, Severity};
use serde_json::Value;

fn blocks(line: &Value) -> impl Iterator<Item = &Value> {
    line["message"]["content"].as_array().into_iter().flatten()
}

fn segments(session: &Session) -> impl Iterator<Item = &Segment> {
    session.tree.records().iter().filter_map(|record| match record {
        Record::Segment(segment) => Some(segment),
        _ => None,
    })
}

fn line<'s>(session: &'s Session, segment: &Segment) -> &'s Value {
    let source = segment.source.as_ref().unwrap();
    &session.lines[source.file as usize][source.line as usize - 1]
}

#[test]
fn sound_files_convert_strictly_and_the_dangling_parent_is_the_only_repair() {
    for name in SESSIONS {
        let Some(path) = path(name) else { continue };
        match convert(&path, ReadOptions::STRICT) {
            Ok(conversion) => {
                assert_eq!(conversion.report.of(Severity::Repaired).count(), 0, "{name}")
            }
            Err(HarnessError::Rejected(report)) => {
                assert_eq!(name, "auto-compact-dangling-parent");
                let errors: Vec<_> = report.of(Severity::Error).collect();
                assert_eq!(errors.len(), 1);
                assert_eq!(
                    (errors[0].location.line, errors[0].location.key.as_str()),
                    (754, "logicalParentUuid")
                );
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
        assert_eq!(
            (repairs, session.tree.header().fidelity),
            (wanted, fidelity),
            "{}",
            session.name
        );
    }
}

#[test]
fn every_call_is_one_generation_and_says_what_its_lines_say() {
    for session in sessions() {
        assert_eq!(session.tree.generation_count(), session.calls(), "{}", session.name);
        for generation in session.tree.generations() {
            let output: Vec<&Segment> =
                generation.output.iter().map(|&id| session.tree.segment(id).unwrap()).collect();
            let id = &output[0].source.as_ref().unwrap().key;
            let lines = session.lines.iter().flatten().filter(|line| call_of(line) == Some(id));
            let mut said = String::new();
            for block in lines.flat_map(blocks) {
                match block["type"].as_str().unwrap() {
                    "text" => said += block["text"].as_str().unwrap(),
                    "thinking" => said += block["thinking"].as_str().unwrap(),
                    "tool_use" => {
                        let segment = output.iter().find(|segment| {
                            segment.calls.contains(&block["id"].as_str().unwrap().into())
                        });
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
            assert_eq!(
                generation.unrecorded,
                if reasons { vec!["reasoning".to_owned()] } else { Vec::new() }
            );
        }
    }
}

#[test]
fn every_source_key_is_the_uuid_the_call_the_cleared_call_or_the_message() {
    for session in sessions() {
        for segment in segments(&session) {
            let key =
                session.tree.segment(segment.id).unwrap().source.as_ref().unwrap().key.as_str();
            let line = line(&session, segment);
            let wanted = match line["type"].as_str().unwrap() {
                "assistant" => line["message"]["id"].as_str().unwrap().to_owned(),
                "system" => format!("{}#cleared", segment.result_of.as_ref().unwrap()),
                _ => segment
                    .result_of
                    .clone()
                    .unwrap_or_else(|| line["uuid"].as_str().unwrap().to_owned()),
            };
            assert_eq!(key, wanted, "{}", session.name);
        }
    }
}

#[test]
fn no_result_of_a_call_that_a_request_holds_is_missing_from_the_request() {
    for session in sessions() {
        let answered: HashMap<&str, String> =
            session.lines.iter().flatten().flat_map(blocks).filter_map(answer).collect();
        let mut seen = HashSet::new();
        for generation in session.tree.generations() {
            let context = session.context(generation);
            let results: HashMap<&str, &Segment> = context
                .iter()
                .filter_map(|segment| Some((segment.result_of.as_deref()?, *segment)))
                .collect();
            for call in context.iter().flat_map(|segment| &segment.calls) {
                let result = results
                    .get(call.as_str())
                    .unwrap_or_else(|| panic!("{}: {} lacks {call}", session.name, generation.id));
                if result.source.as_ref().unwrap().key == *call {
                    assert_eq!(text(result), answered[call.as_str()], "{}: {call}", session.name);
                }
                seen.insert(call.clone());
            }
        }
        // Only results behind the last call of their thread were in no request.
        let unseen: Vec<&&str> = answered.keys().filter(|call| !seen.contains(**call)).collect();
        assert_eq!(
            unseen.len(),
            if session.name == "three-microcompacts" { 5 } else { 0 },
            "{}: {unseen:?}",
            session.name
        );
    }
}

fn answer(block: &Value) -> Option<(&str, String)> {
    let call = block["tool_use_id"].as_str()?;
    let text = match &block["content"] {
        Value::String(text) => text.clone(),
        blocks => {
            let texts: Vec<&str> = blocks
                .as_array()
                .unwrap()
                .iter()
                .map(|block| block["text"].as_str().unwrap())
                .collect();
            texts.join("\n")
        }
    };
    Some((call, text))
}

#[test]
fn no_request_holds_a_line_that_was_written_behind_its_first_line() {
    for session in sessions() {
        for generation in session.tree.generations() {
            let first =
                session.tree.segment(generation.output[0]).unwrap().source.as_ref().unwrap();
            for segment in session.context(generation) {
                let source = segment.source.as_ref().unwrap();
                // The one line that is preserved behind its boundary was sampled before it.
                let late = source.key == "msg_b2a2" || first.key == "msg_b2a2";
                assert!(
                    late || source.file != first.file || source.line < first.line,
                    "{}: {source:?}",
                    session.name
                );
            }
        }
    }
}

#[test]
fn every_line_of_a_person_stands_in_the_context_of_the_call_that_answers_it() {
    for session in sessions() {
        for (line, next) in session.lines[0].iter().zip(session.lines[0].iter().skip(1)) {
            let (Some(given), Some(call)) = (line["message"]["content"].as_str(), call_of(next))
            else {
                continue;
            };
            let generation = session
                .tree
                .generations()
                .find(|generation| {
                    session.tree.segment(generation.output[0]).unwrap().source.as_ref().unwrap().key
                        == call
                })
                .unwrap();
            let context = session.context(generation);
            let uuid = line["uuid"].as_str().unwrap();
            let found: Vec<&&Segment> = context
                .iter()
                .filter(|segment| segment.source.as_ref().unwrap().key == uuid)
                .collect();
            assert_eq!(found.len(), 1, "{}: {uuid}", session.name);
            assert_eq!(text(found[0]), given);
        }
    }
}

//! Trajectories of SWE-agent: the context of a call is its query, whatever history processors did
//! to it.
use pleach_harness::{Harness, ReadOptions, detect_bytes};
use pleach_tree::{Record, ReplacementKind};
use serde_json::{Value, json};

use crate::damage::fixture;
use crate::told::{convert_text, found, rejected, tree};

fn sample() -> Value {
    serde_json::from_slice(&fixture("swe_agent.json")).unwrap()
}

/// The texts of the context of every call.
fn contexts(value: &Value) -> Vec<Vec<String>> {
    let conversion = convert_text(&value.to_string(), None, ReadOptions::STRICT).unwrap();
    let tree = tree(&conversion);
    let texts = |context| -> Vec<String> {
        let spans = tree.spans(context).unwrap();
        spans.iter().map(|span| tree.segment(span.segment).unwrap().text.clone().unwrap()).collect()
    };
    tree.generations().map(|call| texts(call.context)).collect()
}

fn warnings(value: &Value) -> String {
    let conversion = convert_text(&value.to_string(), None, ReadOptions::STRICT).unwrap();
    found(&conversion.report).join("\n")
}

#[test]
fn a_call_sees_its_query_with_every_tool_call_as_it_was_sent() {
    let list = r#"{"id":"c1","name":"bash","input":{"command":"ls"}}"#;
    let read = r#"{"id":"c2","name":"bash","input":{"command":"cat a.py"}}"#;
    let head = ["You fix bugs.", "Fix a.py"];
    let listed = ["I list the files.", list];
    let elided = ["Old environment output: (1 lines omitted)"];
    let after = ["I read it.", read, "OBSERVATION: x = 1"];
    let third = [&head[..], &listed, &elided, &after].concat();
    let refused = ["I edit.", "Your output could not be parsed."];
    let seen = contexts(&sample());
    assert_eq!(seen.len(), 4, "a step that the harness wrote is no call");
    assert_eq!(seen[0], head);
    assert_eq!(seen[2], third);
    assert_eq!(seen[3], [&third[..], &refused].concat());
}

#[test]
fn an_old_observation_leaves_for_the_line_that_stands_for_it() {
    let text = sample().to_string();
    let conversion = convert_text(&text, None, ReadOptions::STRICT).unwrap();
    let evictions: Vec<_> = conversion
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Evict(evict) => Some(evict),
            _ => None,
        })
        .collect();
    let [evict] = evictions.as_slice() else { panic!("{evictions:?}") };
    let put = evict.replacement.as_ref().unwrap();
    assert_eq!((evict.evicted.len(), put.segments.len()), (1, 1));
    assert_eq!(put.kind, ReplacementKind::Placeholder);
}

#[test]
fn what_is_known_of_an_answer_that_was_refused_is_its_text() {
    let conversion = convert_text(&sample().to_string(), None, ReadOptions::STRICT).unwrap();
    let tree = tree(&conversion);
    let calls: Vec<_> = tree.generations().collect();
    assert_eq!(calls[2].unrecorded, ["tool_calls"]);
    assert!(calls[1].unrecorded.is_empty());
    assert_eq!(calls[1].output.len(), 2, "text and a tool call");
    assert!(calls.iter().all(|call| call.policy.as_deref() == Some("m-1")));
    let found = warnings(&sample());
    assert!(found.contains("trajectory[4].query: warning[harness]: no-query"), "{found}");
    assert!(found.contains("trajectory[0]: warning[harness]: tools-not-recorded"), "{found}");
}

#[test]
fn attempts_are_rollouts_and_the_steps_beside_them_are_one_of_them() {
    let run = sample();
    let mut both = run.clone();
    both["attempts"] = json!([run, run]);
    let conversion = convert_text(&both.to_string(), None, ReadOptions::STRICT).unwrap();
    let tree = tree(&conversion);
    let rollouts: Vec<&str> = tree.generations().map(|call| call.rollout.as_str()).collect();
    assert_eq!(rollouts, ["r0", "r0", "r0", "r0", "r1", "r1", "r1", "r1"]);
    let only = json!({"attempts": [run]});
    assert_eq!(detect_bytes(only.to_string().as_bytes()), Some(Harness::SweAgent));
}

#[test]
fn steps_without_queries_are_read_from_the_history_and_said_to_be() {
    let mut run = sample();
    for step in run["trajectory"].as_array_mut().unwrap() {
        step.as_object_mut().unwrap().shift_remove("query");
    }
    let history = run["history"].as_array_mut().unwrap();
    let mut demo = history[2].clone();
    demo["is_demo"] = true.into();
    history.insert(2, demo);
    history.push(json!({"role": "user", "content": "other", "agent": "helper"}));
    let seen = contexts(&run);
    assert_eq!(seen.len(), 4, "a demonstration is no call");
    assert_eq!(seen[0].len(), 4);
    assert!(seen[3].iter().all(|text| text != "other"));
    let found = warnings(&run);
    assert!(found.contains("history: warning[harness]: queries-not-recorded"), "{found}");
}

#[test]
fn thinking_is_seen_where_it_is_sent_and_leaves_where_it_is_not() {
    let mut run = sample();
    let block = json!([{"type": "thinking", "thinking": "first the files", "signature": "s"}]);
    let history = run["history"].as_array_mut().unwrap();
    history[2]["thinking_blocks"] = block.clone();
    run["trajectory"][1]["query"][2]["thinking_blocks"] = block;
    let seen = contexts(&run);
    assert_eq!(seen[1][2], "first the files");
    assert!(!seen[2].contains(&"first the files".to_owned()));
    let conversion = convert_text(&run.to_string(), None, ReadOptions::STRICT).unwrap();
    let tree = tree(&conversion);
    assert_eq!(tree.generations().next().unwrap().unrecorded, ["reasoning"]);
}

#[test]
fn steps_that_are_none_are_faults_with_their_keys() {
    let mut run = sample();
    run["trajectory"][1] = "ls".into();
    let error = rejected(&run.to_string(), Harness::SweAgent);
    assert!(error.contains("log.jsonl:1: trajectory[1]: error[harness]: no-step"), "{error}");
    let error = rejected(&format!("{}\n{{\"a\":1}}", sample()), Harness::SweAgent);
    assert!(error.contains("log.jsonl:2: trajectory: error[harness]: no-trajectory"), "{error}");
}

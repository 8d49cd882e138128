//! Trajectories of mini-SWE-agent: one list in which nothing leaves.
use pleach_harness::{Harness, ReadOptions, detect_bytes};
use serde_json::{Value, json};

use crate::damage::fixture;
use crate::told::{convert_text, found, rejected, told, tree};

fn sample() -> Value {
    serde_json::from_slice(&fixture("mini_swe_agent.json")).unwrap()
}

fn warnings(value: &Value) -> String {
    let conversion = convert_text(&value.to_string(), None, ReadOptions::STRICT).unwrap();
    found(&conversion.report).join("\n")
}

#[test]
fn an_answer_that_could_not_be_parsed_is_a_call_that_no_later_one_sees() {
    let conversion = convert_text(&sample().to_string(), None, ReadOptions::STRICT).unwrap();
    let tree = tree(&conversion);
    let text = |id| tree.segment(id).unwrap().text.clone().unwrap();
    let calls: Vec<_> = tree.generations().collect();
    assert_eq!(calls.len(), 3);
    assert_eq!(text(calls[1].output[0]), "It is fixed.");
    let last: Vec<String> =
        tree.spans(calls[2].context).unwrap().iter().map(|span| text(span.segment)).collect();
    assert!(!last.contains(&"It is fixed.".to_owned()), "{last:?}");
    assert_eq!(last.last().unwrap(), "Call the tool.");
    assert!(calls.iter().all(|call| call.policy.as_deref() == Some("m-1")));
}

#[test]
fn an_answer_that_is_lost_is_said_to_be() {
    let mut run = sample();
    run["messages"][4]["extra"].as_object_mut().unwrap().shift_remove("response");
    let found = warnings(&run);
    assert!(found.contains("messages[4]: warning[harness]: failed-call"), "{found}");
    run["messages"][4]["extra"]["model_response"] = "It is fixed.".into();
    let conversion = convert_text(&run.to_string(), None, ReadOptions::STRICT).unwrap();
    assert_eq!(tree(&conversion).generations().len(), 3);
}

#[test]
fn a_trajectory_of_the_first_version_is_read_without_its_mark() {
    let run = json!({"info": {"mini_version": "1.9"}, "messages": [
        {"role": "system", "content": "s"}, {"role": "user", "content": "u"},
        {"role": "assistant", "content": "ls"}, {"role": "user", "content": "done"}]});
    assert_eq!(detect_bytes(run.to_string().as_bytes()), Some(Harness::MiniSweAgent));
    let conversion = convert_text(&run.to_string(), None, ReadOptions::STRICT).unwrap();
    assert_eq!(tree(&conversion).generations().len(), 1);
    assert!(conversion.report.diagnostics.is_empty());
}

#[test]
fn whole_responses_and_the_outputs_of_their_calls_are_the_same_as_messages() {
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}});
    let chat = json!({"trajectory_format": "mini-swe-agent-1.1", "messages": [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "a"},
        {"role": "assistant", "content": "done"}]});
    let said = |text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
    let responses = json!({"trajectory_format": "mini-swe-agent-1.1", "messages": [
        {"role": "user", "content": "u"},
        {"object": "response", "output": [
            said("I look."), {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"}]},
        {"type": "function_call_output", "call_id": "c", "output": "a"},
        {"object": "response", "output": [said("done")]}]});
    let of = |run: &Value| told(&run.to_string(), Harness::MiniSweAgent);
    assert_eq!(of(&responses), of(&chat));
}

#[test]
fn what_is_not_known_is_named() {
    let mut run = sample();
    run["segments"] = json!([]);
    run["messages"][1]["role"] = "judge".into();
    let found = warnings(&run);
    assert!(found.contains("segments: warning[harness]: unknown-key"), "{found}");
    assert!(found.contains("type \"judge\" is not known"), "{found}");
    assert!(found.contains("messages[2]: warning[harness]: tools-not-recorded"), "{found}");
    run["messages"][1] = "u".into();
    let error = rejected(&run.to_string(), Harness::MiniSweAgent);
    assert!(error.contains("log.jsonl:1: messages[1]: error[harness]: no-message"), "{error}");
}

//! What records of gateways and of trainers that capture every call become: the contexts are the
//! recorded prompts, and what a record says of its parent or of a compaction is the reading.
use crate::damage::fixture;
use crate::told::{convert_text, rejected, told, told_of, trained_twice, tree};
use pleach_harness::{Harness, Input, ReadOptions, detect};
use pleach_tree::Record;
use serde_json::{Value, json};

fn lines() -> Vec<Value> {
    let text = String::from_utf8(fixture("captures.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn line(at: usize) -> Value {
    lines().swap_remove(at)
}

#[test]
fn every_shape_of_a_capture_is_known_by_itself_indented_and_in_a_list() {
    for value in lines() {
        let indented = serde_json::to_string_pretty(&value).unwrap();
        for text in [value.to_string(), indented, json!([value]).to_string()] {
            let input = Input::memory("log.json", text.clone().into(), []);
            assert_eq!(detect(&input).unwrap(), Harness::Rl, "{text}");
            let conversion = convert_text(&text, None, ReadOptions::STRICT).unwrap();
            assert!(trained_twice(&tree(&conversion)).is_empty());
            assert!(tree(&conversion).generations().len() > 0, "{text}");
        }
    }
}

#[test]
fn a_session_in_one_answer_is_what_its_records_are_in_files_of_their_own() {
    let session = line(0);
    let records: String = session["completions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record.to_string() + "\n")
        .collect();
    assert_eq!(told(&session.to_string(), Harness::Rl), told(&records, Harness::Rl));
}

#[test]
fn a_record_that_its_gateway_marks_as_unfit_is_a_fault_and_left_out() {
    let mut session = line(0);
    session["completions"][2]["is_valid"] = json!(false);
    session["completions"][1]["generation_token_ids"] = Value::Null;
    insta::assert_snapshot!(rejected(&session.to_string(), Harness::Rl));
    let lenient = convert_text(&session.to_string(), None, ReadOptions::LENIENT).unwrap();
    assert_eq!(tree(&lenient).generations().len(), 1);
}

#[test]
fn a_call_whose_parent_is_named_forks_from_it_also_where_a_sibling_went_on_alike() {
    let shared: Vec<u32> = (200..230).collect();
    let entry = |call: &str, prompt: &[u32], said: &[u32], parent: Option<&str>| {
        json!({"rollout_id": "g", "model_call_id": call, "prompt_token_ids": prompt,
            "generation_token_ids": said, "generation_log_probs": vec![-0.5; said.len()], "parent_call_id": parent})
        .to_string()
            + "\n"
    };
    let behind = |first: u32| [&[1, 2, 10, 11, first], shared.as_slice()].concat();
    let log = entry("a", &[1, 2], &[10, 11], None)
        + &entry("b", &behind(3), &[12], Some("a"))
        + &entry("c", &behind(4), &[13], Some("a"));
    let conversion = convert_text(&log, None, ReadOptions::STRICT).unwrap();
    assert!(!conversion.records.iter().any(|record| matches!(record, Record::Evict(_))));
    assert!(conversion.records.iter().any(|record| matches!(record, Record::Fork(_))));
}

#[test]
fn a_delta_is_read_behind_its_parent_and_one_without_it_is_a_fault() {
    let mut graph = line(5);
    let whole: String = [
        json!({"trace_id": "t1", "session_id": "task:0", "lineage_id": "l0", "prompt_token_ids": (1..16).collect::<Vec<u32>>(),
            "completion_token_ids": [20, 21, 22, 23], "logprobs": [-0.25, -0.25, -0.25, -0.25], "weight_version": 3}),
        json!({"trace_id": "t2", "session_id": "task:0", "lineage_id": "l0", "prompt_token_ids": (1..16).chain(20..24).chain(30..44).collect::<Vec<u32>>(),
            "completion_token_ids": (50..56).collect::<Vec<u32>>(), "logprobs": [-0.25, -0.25, -0.25, -0.25, -0.25, -0.25], "weight_version": 3}),
    ]
    .iter()
    .map(|record| record.to_string() + "\n")
    .collect();
    graph["deltas"].as_array_mut().unwrap().truncate(2);
    assert_eq!(told(&graph.to_string(), Harness::Rl), told(&whole, Harness::Rl));
    graph["deltas"][1]["parent_trace_id"] = json!("t9");
    insta::assert_snapshot!(rejected(&graph.to_string(), Harness::Rl));
}

#[test]
fn a_version_that_is_newer_than_what_was_read_is_a_warning_at_its_key() {
    let found = |at: usize, key: &[&str]| {
        let mut value = line(at);
        let place = key.iter().fold(&mut value, |value, key| &mut value[*key]);
        *place = json!(9);
        told(&value.to_string(), Harness::Rl)
    };
    for (at, key, last) in [
        (1, &["schema_version"][..], 3),
        (5, &["version"], 1),
        (6, &["training_traces", "schema_version"], 1),
    ] {
        let told = found(at, key);
        let warning = format!(
            "{}: warning[harness]: unknown-version: version 9 is not known; it is read as version {last}",
            key.join(".")
        );
        assert!(told.contains(&warning), "{told}");
    }
}

#[test]
fn traces_whose_lists_spans_or_weights_do_not_fit_are_faults() {
    let mut rollout = line(6);
    let traces = &mut rollout["training_traces"]["traces"];
    traces[0]["sampled_spans"][1]["end"] = json!(60);
    traces[1]["loss_mask"][0] = json!(1);
    traces[2]["generation_logprobs"] = json!([0.0]);
    insta::assert_snapshot!(rejected(&rollout.to_string(), Harness::Rl));
    let lenient = convert_text(&rollout.to_string(), None, ReadOptions::LENIENT).unwrap();
    assert_eq!(tree(&lenient).generations().len(), 2);
}

#[test]
fn a_compaction_is_by_the_policy_that_witnesses_it_and_a_rewrite_without_one_is_a_fault() {
    let told = told(&line(7).to_string(), Harness::Rl);
    assert!(told.contains("by Rule drop_observations, Inferred"), "{told}");
    let mut undeclared = line(7);
    undeclared["response"]["model_call_metadata"][2] =
        undeclared["response"]["model_call_metadata"][1].clone();
    insta::assert_snapshot!(rejected(&undeclared.to_string(), Harness::Rl));
    let mut evidence = line(7);
    let output = evidence["response"]["output"].take();
    let metadata = evidence["response"]["model_call_metadata"].take();
    let calls = metadata.as_array().unwrap().iter().zip(&output.as_array().unwrap()[1..]);
    let full = calls.map(|(call, item)| {
        let mut call = call.clone();
        call["prompt_token_ids"] = item["prompt_token_ids"].clone();
        call["sampled_token_ids"] = item["generation_token_ids"].clone();
        call["sampled_logprobs"] = item["generation_log_probs"].clone();
        call
    });
    evidence["response"]["completion_evidence"] = full.collect();
    evidence["response"]["output"] = json!([]);
    let read = convert_text(&evidence.to_string(), None, ReadOptions::STRICT).unwrap();
    assert_eq!(told_of(&read), told, "evidence of calls is read as their items are");
}

#[test]
fn a_response_without_ids_says_how_to_capture_them() {
    let log = json!({"responses_create_params": {}, "_ng_task_index": 0, "reward": 0.0, "response": {"output": [{"type": "message"}]}});
    let faults = rejected(&log.to_string(), Harness::Rl);
    assert!(
        faults.contains("no-tokens: no item of the response has token ids; run it with"),
        "{faults}"
    );
}

#[test]
fn samples_that_were_gathered_for_a_tree_are_the_rows_by_themselves() {
    let row = line(8);
    let gathered = json!({"samples": [row], "tokens": 8, "trained": 3, "load": 36});
    assert_eq!(told(&gathered.to_string(), Harness::Rl), told(&row.to_string(), Harness::Rl));
}

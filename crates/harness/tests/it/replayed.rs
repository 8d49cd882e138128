//! Runs of which only raw outputs are recorded, replayed: MemexRL, TC-RAG and AgentFold.

use crate::told::{convert_text, rejected, told, told_of, trained_twice, tree};
use pleach_harness::{Harness, ReadOptions};
use serde_json::{Value, json};

fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

fn call(name: &str, arguments: Value) -> Value {
    message(
        "assistant",
        &format!(
            "hm\n<tool_call>\n{}\n</tool_call>",
            json!({"name": name, "arguments": arguments})
        ),
    )
}

fn compress() -> Value {
    call(
        "CompressExperience",
        json!({"summary": "Index map:\n- ctx_a - rooms", "db_blocks": [{"db_index": "ctx_a", "db_content": "shelf_1"}]}),
    )
}

fn begun() -> Vec<Value> {
    vec![
        message("system", "be brief"),
        message("user", "find the lamp"),
        call("act", json!({"action": "look"})),
        message("user", "shelf_1, desk_1"),
    ]
}

#[test]
fn segments_of_memexrl_give_the_context_behind_a_compression_word_for_word() {
    let first = [begun(), vec![compress()]].concat();
    let index =
        message("user", "=== SUMMARY ===\n[Compressed 3 messages]\n\nIndex map:\n- ctx_a - rooms");
    let second = [
        begun()[..2].to_vec(),
        vec![
            index,
            call("ReadExperience", json!({"db_index": "ctx_a"})),
            message("user", "shelf_1"),
            message("assistant", "done"),
        ],
    ]
    .concat();
    let log = json!({"sft_segments": [
        {"messages": first, "segment_type": "pre_compression", "num_messages": 5},
        {"messages": second, "segment_type": "post_compression", "num_messages": 6}]});
    let conversion = convert_text(&log.to_string(), None, ReadOptions::STRICT).unwrap();
    insta::assert_snapshot!(told_of(&conversion));
    assert!(trained_twice(&tree(&conversion)).is_empty());
    let lines = format!("{}\n{}\n", log["sft_segments"][0], log["sft_segments"][1]);
    assert_eq!(told(&lines, Harness::MemexRl), told_of(&conversion));
}

#[test]
fn one_list_of_memexrl_is_played_and_a_refused_compression_removes_nothing() {
    let refused = [compress(), message("user", "Error: db_blocks must be a non-empty list")];
    let more = [compress(), message("user", "compressed"), message("assistant", "done")];
    let quoted =
        message("user", &compress()["content"].as_str().unwrap().replace("hm", "you wrote"));
    let messages = [begun(), refused.to_vec(), vec![quoted], more.to_vec()].concat();
    insta::assert_snapshot!(told(
        &json!({"harness": "memexrl", "messages": messages}).to_string(),
        Harness::MemexRl
    ));
}

#[test]
fn a_stack_of_tc_rag_pops_at_its_tail_only() {
    let steps = json!([
        {"output": "Thought: I should search.\nAction: find\nAction Input: {\"query\": \"lamp\"}", "observation": "nothing of use"},
        {"output": "Backtrack: the search was too broad"},
        {"output": "Final Answer: the desk"},
        {"output": "Final Answer: the shelf"},
    ]);
    let run = json!({"system": "use tools", "question": "where is the lamp?", "steps": steps});
    let conversion = convert_text(&run.to_string(), None, ReadOptions::STRICT).unwrap();
    insta::assert_snapshot!(told_of(&conversion));
}

fn folding(range: [u32; 2], summary: &str, rest: &str) -> Value {
    json!({"output": format!("<think>hm</think>{}{rest}", json!({"range": range, "summary": summary})), "observation": format!("seen by {rest}")})
}

fn run(steps: &[Value]) -> String {
    json!({"harness": "agentfold", "question": "where is the lamp?", "steps": steps}).to_string()
}

#[test]
fn agentfold_folds_steps_into_a_summary_and_summaries_into_one_that_evicts_them() {
    let first = json!({"output": "look", "observation": "a desk"});
    let steps = [
        first,
        folding([1, 1], "desk seen", "go on"),
        folding([2, 2], "went on", "stop"),
        folding([1, 3], "desk, then nothing", "answer"),
    ];
    insta::assert_snapshot!(told(&run(&steps), Harness::AgentFold));
}

#[test]
fn a_range_that_no_blocks_make_up_and_a_missing_directive_are_faults() {
    let first = json!({"output": "look", "observation": "a desk"});
    let steps = [
        first.clone(),
        folding([1, 1], "desk", "go"),
        folding([1, 2], "both", "on"),
        folding([2, 3], "half", "end"),
        first,
    ];
    insta::assert_snapshot!(rejected(&run(&steps), Harness::AgentFold));
    insta::assert_snapshot!(told_of(
        &convert_text(&run(&steps), None, ReadOptions::LENIENT).unwrap()
    ));
}

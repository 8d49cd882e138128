//! What a log of requests becomes: contexts are the requests, and what left between two of them is
//! inferred.

use crate::told::{convert_text, rejected, told, told_of, tree};
use pleach_harness::{Harness, ReadOptions};
use serde_json::{Value, json};

/// Messages of a chat, each `ROLE: TEXT`; a `call` and a `result` have an id before the text.
fn messages(lines: &[&str]) -> Vec<Value> {
    let message = |line: &&str| {
        let (role, text) = line.split_once(": ").unwrap();
        match role.split_once(' ') {
            Some(("call", id)) => json!({"role": "assistant", "content": null,
                "tool_calls": [{"id": id, "type": "function", "function": {"name": "run", "arguments": json!({"command": text}).to_string()}}]}),
            Some((_, id)) => json!({"role": "tool", "tool_call_id": id, "content": text}),
            None => json!({"role": role, "content": text}),
        }
    };
    lines.iter().map(message).collect()
}

fn exchange(id: &str, model: &str, given: &[&str], said: &str) -> String {
    let answer = json!({"id": id, "model": model, "choices": [{"index": 0, "message": messages(&[said])[0]}]});
    json!({"request": {"model": model, "messages": messages(given)}, "response": answer})
        .to_string()
        + "\n"
}

fn chat(id: &str, given: &[&str], said: &str) -> String {
    exchange(id, "m", given, said)
}

fn log(lines: &[String]) -> String {
    told(&lines.concat(), Harness::Requests)
}

const HEAD: [&str; 2] = ["system: be brief", "user: mend the build"];

fn behind(more: &[&'static str]) -> Vec<&'static str> {
    HEAD.iter().chain(more).copied().collect()
}

#[test]
fn requests_that_go_on_are_appended() {
    let second = behind(&["call a: make", "result a: error 1"]);
    insta::assert_snapshot!(log(&[
        chat("1", &HEAD, "call a: make"),
        chat("2", &second, "assistant: it fails")
    ]));
}

#[test]
fn cleared_and_shortened_results_are_replaced_in_place() {
    let long = "result b: first lines of a long listing, then many others that are of no use";
    let first = behind(&["call a: make", "result a: error 1", "call b: ls", long, "call c: cat x"]);
    let second = behind(&[
        "call a: make",
        "result a: [cleared]",
        "call b: ls",
        "result b: first lines of a long listing",
        "call c: cat x",
        "result c: y",
    ]);
    insta::assert_snapshot!(log(&[
        chat("1", &first[..6], "call c: cat x"),
        chat("2", &second, "assistant: done")
    ]));
}

#[test]
fn a_summary_has_the_call_as_author_whose_words_it_quotes_and_that_call_is_a_thread_of_its_own() {
    let grown = behind(&["call a: make", "result a: error 1"]);
    let asked = behind(&["call a: make", "result a: error 1", "user: Summarise the conversation."]);
    let summary = "assistant: <summary>The build fails with error 1 in the linker.</summary>";
    let next = [
        "system: be brief",
        "user: So far: The build fails with error 1 in the linker.",
        "user: go on",
    ];
    insta::assert_snapshot!(log(&[
        chat("1", &HEAD, "call a: make"),
        chat("2", &grown, "call b: ls"),
        chat("3", &asked, summary),
        chat("4", &next, "assistant: I go on"),
    ]));
}

#[test]
fn an_answer_that_is_written_back_in_other_words_is_replaced_by_a_rule_and_is_no_summary() {
    let turn = |id: &str, given: &[Value], said: &str| {
        let call = json!({"id": format!("t{id}"), "type": "function", "function": {"name": "look", "arguments": "{\"at\":\"door\"}"}});
        let answer = json!({"role": "assistant", "content": said, "tool_calls": [call]});
        let request = json!({"model": "m", "messages": given});
        json!({"request": request, "response": {"id": id, "choices": [{"message": answer}]}})
            .to_string()
            + "\n"
    };
    let user = |text: &str| json!({"role": "user", "content": text});
    let back = |text: &str| json!({"role": "assistant", "content": format!("{text}\n<look at=\"door\"/>")});
    let said = ["I look at the door before I go.", "I look at it again, as it moved."];
    let first = vec![json!({"role": "system", "content": "be good"}), user("go")];
    let second = [first.clone(), vec![back(said[0]), user("look gave: open")]].concat();
    // What is written back need not quote what was said.
    let third = [second.clone(), vec![back("(looks)"), user("look gave: shut")]].concat();
    let log = turn("1", &first, said[0]) + &turn("2", &second, said[1]) + &turn("3", &third, "end");
    insta::assert_snapshot!(told(&log, Harness::Requests));
}

#[test]
fn an_answer_that_is_written_back_in_other_words_is_known_where_something_before_it_changed_too() {
    let behind = ["user: go to the station", "user: and take a bus"];
    let first = [&["system: it is nine in the morning"], &behind[..]].concat();
    let back = ["assistant: [a bus is taken at nine]", "user: now walk"];
    let next = [&["system: it is ten past nine"], &behind[..], &back[..]].concat();
    let shown = log(&[
        chat("1", &first, "assistant: I take the bus that leaves at nine."),
        chat("2", &next, "assistant: I walk."),
    ]);
    assert!(shown.contains("by Rule rewritten") && !shown.contains("Summary"), "{shown}");
    assert!(!shown.contains("summarizer"), "{shown}");
}

#[test]
fn a_summary_by_another_model_is_that_models() {
    let asked = ["system: you summarise", "user: mend the build / make / error 1"];
    let summary = "assistant: The build fails with error 1 in the linker.";
    let next = ["system: be brief", "user: So far: The build fails with error 1 in the linker."];
    insta::assert_snapshot!(log(&[
        chat("1", &HEAD, "call a: make"),
        exchange("2", "small", &asked, summary),
        chat("3", &next, "assistant: I go on"),
    ]));
}

#[test]
fn a_summary_that_leaves_a_tail_stands_where_the_stretch_was() {
    let grown = behind(&["call a: make", "result a: error 1", "call b: ls", "result b: x y"]);
    let next = behind(&[
        "user: Earlier: the build failed.",
        "call b: ls",
        "result b: x y",
        "call c: cat x",
        "result c: z",
    ]);
    insta::assert_snapshot!(log(&[
        chat("1", &grown, "call c: cat x"),
        chat("2", &next, "assistant: done")
    ]));
}

#[test]
fn messages_that_are_gone_without_a_trace_are_a_trim() {
    let grown = behind(&["call a: make", "result a: error 1", "call b: ls", "result b: x y"]);
    let next = ["system: be brief", "call b: ls", "result b: x y", "call c: cat x", "result c: z"];
    insta::assert_snapshot!(log(&[
        chat("1", &grown, "call c: cat x"),
        chat("2", &next, "assistant: done")
    ]));
}

#[test]
fn a_tail_that_moved_before_the_summary_keeps_its_identity() {
    let grown = behind(&["assistant: one", "user: two", "assistant: three", "user: four"]);
    let next = [
        "system: be brief",
        "user: two",
        "user: Earlier: they counted.",
        "user: mend the build",
        "user: five",
    ];
    insta::assert_snapshot!(log(&[
        chat("1", &grown, "assistant: said"),
        chat("2", &next, "assistant: done")
    ]));
}

#[test]
fn a_retry_and_a_rewind_fork() {
    let first = behind(&["assistant: one", "user: two"]);
    let rewound = behind(&["assistant: one", "user: another two"]);
    insta::assert_snapshot!(log(&[
        chat("1", &HEAD, "assistant: one"),
        chat("2", &first, "assistant: three"),
        chat("3", &first, "assistant: three again"),
        chat("4", &rewound, "assistant: four"),
    ]));
}

#[test]
fn a_sub_agent_between_two_requests_is_a_thread_of_its_own() {
    let other = ["system: you search", "user: find the linker's flags"];
    let more =
        ["system: you search", "user: find the linker's flags", "assistant: -lm", "user: more"];
    let second = behind(&["call a: search", "result a: -lm"]);
    insta::assert_snapshot!(log(&[
        chat("1", &HEAD, "call a: search"),
        chat("s1", &other, "assistant: -lm"),
        chat("s2", &more, "assistant: -lc"),
        chat("2", &second, "assistant: done"),
    ]));
}

#[test]
fn failed_requests_are_no_calls_and_a_record_that_stands_twice_is_one() {
    let failed =
        json!({"request": {"messages": messages(&HEAD)}, "response": {"status": 529, "body": "overloaded"}}).to_string() + "\n";
    let once = chat("1", &HEAD, "assistant: one");
    insta::assert_snapshot!(log(&[failed, once.clone(), once]));
}

#[test]
fn reasoning_that_is_sent_back_once_and_then_no_more_leaves() {
    let think = |id: &str, given: Vec<Value>, said: &str| {
        let answer = json!({"id": id, "choices": [{"message": {"role": "assistant", "reasoning_content": format!("hm {id}"), "content": said}}]});
        json!({"request": {"model": "m", "messages": given}, "response": answer}).to_string() + "\n"
    };
    let mut second = messages(&behind(&["assistant: one", "user: two"]));
    second[2]["reasoning_content"] = "hm 1".into();
    let third =
        messages(&behind(&["assistant: one", "user: two", "assistant: three", "user: four"]));
    let lines = [
        think("1", messages(&HEAD), "one"),
        think("2", second, "three"),
        think("3", third, "five"),
    ];
    insta::assert_snapshot!(log(&lines));
}

#[test]
fn an_answer_of_the_responses_api_stands_for_all_before_it() {
    let line = |id: &str, before: Option<&str>, input: Value, output: Value| {
        let request = json!({"model": "m", "instructions": "be brief", "previous_response_id": before, "input": input});
        json!({"request": request, "response": {"id": id, "model": "m", "output": output}})
            .to_string()
            + "\n"
    };
    let call = json!([{"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"}, {"type": "function_call", "call_id": "a", "name": "run", "arguments": "{\"command\":\"make\"}"}]);
    let said = json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "it fails"}]}]);
    let result = json!([{"type": "function_call_output", "call_id": "a", "output": "error 1"}]);
    insta::assert_snapshot!(log(&[
        line("r1", None, json!("mend the build"), call),
        line("r2", Some("r1"), result.clone(), said.clone())
    ]));
    let lone = line("r2", Some("gone"), result, said);
    insta::assert_snapshot!(rejected(&lone, Harness::Requests));
}

#[test]
fn streamed_answers_are_put_together() {
    let events = [
        json!({"type": "message_start", "message": {"id": "msg", "type": "message", "model": "c", "content": []}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I loo"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "k."}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "run", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"command\":"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "\"make\"}"}}),
    ];
    let text: String = events.iter().map(|event| format!("event: e\ndata: {event}\n\n")).collect();
    let asked =
        json!({"system": "be brief", "messages": [{"role": "user", "content": "mend the build"}]});
    let first =
        json!({"request": {"body": asked.to_string()}, "response": {"status": 200, "body": text}})
            .to_string()
            + "\n";
    let chunks = json!([
        {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "it "}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "works", "tool_calls": [{"index": 0, "id": "u", "function": {"name": "run", "arguments": "{\"a\""}}]}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}}]},
    ]);
    let second = json!({"request": {"model": "m", "messages": messages(&HEAD)}, "response": chunks})
        .to_string() + "\n";
    insta::assert_snapshot!(log(&[first, second]));
}

#[test]
fn quoted_records_in_a_tool_result_are_text() {
    let quoted = r#"result a: {"t":"evict","context":1} {"type":"compaction"}"#;
    let second = behind(&["call a: cat log", quoted]);
    let text =
        [chat("1", &HEAD, "call a: cat log"), chat("2", &second, "assistant: a log")].concat();
    let conversion = convert_text(&text, None, ReadOptions::STRICT).unwrap();
    assert!(!told_of(&conversion).contains("without"));
    assert_eq!(tree(&conversion).contexts().count(), 2);
}

#[test]
fn lines_without_a_request_are_faults_with_their_lines() {
    let text = chat("1", &HEAD, "assistant: one")
        + "{\"request\":{\"model\":\"m\"},\"response\":{}}\n17\n";
    insta::assert_snapshot!(rejected(&text, Harness::Requests));
}

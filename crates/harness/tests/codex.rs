//! What a rollout of Codex CLI becomes: calls told apart by what stands between them, lists that a compaction gives whole, rollbacks,
//! copied history.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod shown;

use pleach_harness::{Input, ReadOptions};
use shown::told;

fn line(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-02-01T10:00:00.000Z","type":"{kind}","payload":{payload}}}"#)
}

fn meta(rest: &str) -> String {
    line("session_meta", &format!(r#"{{"id":"own","cli_version":"0.98.0","base_instructions":{{"text":"be good"}}{rest}}}"#))
}

fn turn() -> String {
    line("turn_context", r#"{"cwd":"/proj","model":"gpt-5-codex"}"#)
}

fn message(role: &str, text: &str) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#)
}

fn said(role: &str, text: &str) -> String {
    line("response_item", &message(role, text))
}

fn calls(call: &str) -> String {
    let item =
        format!(r#"{{"type":"function_call","name":"shell","arguments":"{{\"command\": [\"ls\"]}}","call_id":"{call}"}}"#);
    line("response_item", &item)
}

fn output(call: &str) -> String {
    line("response_item", &format!(r#"{{"type":"function_call_output","call_id":"{call}","output":"out of {call}"}}"#))
}

fn event(payload: &str) -> String {
    line("event_msg", payload)
}

fn used(total: u32) -> String {
    event(&format!(r#"{{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}}}}}}"#))
}

fn compacted(message: &str, list: &[String]) -> String {
    line("compacted", &format!(r#"{{"message":"{message}","replacement_history":[{}]}}"#, list.join(",")))
}

fn rollout(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>().into_bytes()
}

fn strict(lines: &[String]) -> String {
    told("rollout-own.jsonl", &rollout(lines), &[], ReadOptions::STRICT)
}

#[test]
fn calls_end_where_something_is_put_in_or_the_count_of_tokens_grows() {
    let reasoning = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"think"}],"encrypted_content":"gAAA"}"#;
    insta::assert_snapshot!(strict(&[
        meta(""),
        said("user", "<environment_context>\\n<cwd>/proj</cwd>"),
        turn(),
        said("user", "list it"),
        event(r#"{"type":"user_message","message":"list it"}"#),
        line("response_item", reasoning),
        calls("c1"),
        calls("c2"),
        used(100),
        output("c1"),
        output("c2"),
        said("assistant", "one"),
        used(100),
        used(150),
        said("assistant", "two"),
        used(200),
        event(r#"{"type":"task_complete"}"#),
    ]));
}

#[test]
fn a_list_that_replaces_the_history_evicts_what_is_not_in_it_and_its_summary_is_that_of_the_recorded_call() {
    let words = "Another model began this task.";
    insta::assert_snapshot!(strict(&[
        meta(""),
        turn(),
        said("user", "first"),
        calls("c1"),
        used(10),
        output("c1"),
        said("assistant", "done"),
        used(20),
        said("user", "second"),
        said("assistant", "so far one file was listed"),
        used(30),
        compacted(
            &format!("{words}\\nso far one file was listed"),
            &[
                message("user", "first"),
                message("user", "second"),
                message("user", &format!("{words}\\nso far one file was listed"))
            ]
        ),
        event(r#"{"type":"context_compacted"}"#),
        said("assistant", "ready"),
        used(40),
    ]));
}

#[test]
fn a_short_answer_that_a_summary_happens_to_end_with_is_no_summariser() {
    let shown = strict(&[
        turn(),
        said("user", "first"),
        said("assistant", "ok"),
        used(10),
        compacted("all is ok", &[message("user", "first"), message("user", "all is ok")]),
        said("assistant", "ready"),
        used(20),
    ]);
    assert!(!shown.contains("compact-1") && shown.contains(r#"Policy Content "ok""#), "{shown}");
}

#[test]
fn an_old_compaction_has_only_a_summary_and_its_list_is_rebuilt() {
    insta::assert_snapshot!(strict(&[
        meta(""),
        said("user", "# AGENTS.md instructions for /proj"),
        turn(),
        said("user", "first"),
        said("assistant", "yes"),
        used(10),
        line("compacted", r#"{"message":"what was"}"#),
        said("user", "second"),
        said("assistant", "done"),
        used(20),
    ]));
}

#[test]
fn a_rollback_goes_on_from_before_the_turn_and_after_a_compaction_from_within_its_list() {
    insta::assert_snapshot!(strict(&[
        meta(""),
        turn(),
        said("user", "first"),
        said("assistant", "one"),
        used(10),
        said("user", "wrong"),
        said("assistant", "two"),
        used(20),
        event(r#"{"type":"thread_rolled_back","num_turns":1}"#),
        said("user", "right"),
        said("assistant", "three"),
        used(30),
        compacted("sum", &[message("user", "first"), message("user", "right"), message("user", "sum")]),
        said("user", "after"),
        said("assistant", "four"),
        used(40),
        event(r#"{"type":"thread_rolled_back","num_turns":3}"#),
        said("user", "again"),
        said("assistant", "five"),
        used(50),
    ]));
}

#[test]
fn a_call_without_output_is_answered_as_the_harness_does() {
    let shown = strict(&[meta(""), turn(), said("user", "go"), calls("c1"), said("user", "stop"), said("assistant", "ok")]);
    assert!(shown.contains(r#"c1#missing: Tool Harness "aborted""#), "{shown}");
    assert!(shown.contains("missing-result"));
}

#[test]
fn items_that_the_parents_rollout_begins_with_are_context() {
    let shared = [said("user", "first"), calls("c1"), output("c1"), said("assistant", "one")];
    let parent = rollout(&[vec![meta("").replace("own", "par")], shared.to_vec(), vec![said("user", "else")]].concat());
    let own = [
        vec![meta(r#","forked_from_id":"par""#), meta("").replace("own", "par")],
        shared.to_vec(),
        vec![said("user", "mine"), said("assistant", "two")],
    ]
    .concat();
    let beside: [(&str, &[u8]); 1] = [("rollout-par.jsonl", &parent)];
    insta::assert_snapshot!(told("rollout-own.jsonl", &rollout(&own), &beside, ReadOptions::STRICT));
    assert!(strict(&own).contains("which is not beside it"));
}

#[test]
fn the_rollout_that_one_was_forked_from_is_found_in_the_folder_of_another_day() {
    let shared = [said("user", "first"), said("assistant", "one")];
    let parent = rollout(&[vec![meta("").replace("own", "par")], shared.to_vec()].concat());
    let own = [vec![meta(r#","forked_from_id":"par""#)], shared.to_vec(), vec![said("user", "mine"), said("assistant", "two")]];
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &[u8]| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    write("sessions/2026/01/31/rollout-2026-01-31T09-00-00-par.jsonl", &parent);
    write("sessions/2026/01/31/rollout-2026-01-31T09-00-00-xpar.jsonl", b"{}");
    let own = write("sessions/2026/02/01/rollout-2026-02-01T09-00-00-own.jsonl", &rollout(&own.concat()));
    let shown = shown::told_of(&Input::open(own).unwrap(), ReadOptions::STRICT);
    assert!(shown.contains("calls (1) are copied from rollout par, which lies beside"), "{shown}");
    assert_eq!(shown.matches("of thread main").count(), 1, "{shown}");
}

#[test]
fn an_empty_id_names_no_rollout() {
    let other = rollout(&[turn(), said("user", "else")]);
    let own = rollout(&[meta(r#","forked_from_id":"""#), turn(), said("user", "hi"), said("assistant", "x")]);
    let shown = told("rollout-own.jsonl", &own, &[("rollout-other.jsonl", &other)], ReadOptions::STRICT);
    assert!(!shown.contains("copied-history"), "{shown}");
}

#[test]
fn a_call_that_is_written_again_is_no_second_call() {
    let once = [said("user", "go"), calls("c1"), output("c1")];
    let shown = strict(&[vec![turn()], once.to_vec(), once[1..].to_vec(), vec![said("assistant", "ok")]].concat());
    assert_eq!(shown.matches("of thread main").count(), 2, "{shown}");
    assert!(shown.contains("repeated-call") && shown.contains("repeated-line"), "{shown}");
}

#[test]
fn a_rollback_leaves_a_call_the_answer_that_the_harness_gave_for_it() {
    let shown = strict(&[
        turn(),
        said("user", "go"),
        calls("c1"),
        said("user", "wrong"),
        said("assistant", "no"),
        event(r#"{"type":"thread_rolled_back","num_turns":1}"#),
        said("user", "right"),
        said("assistant", "yes"),
    ]);
    let last = shown.lines().rfind(|line| line.starts_with("    [")).unwrap();
    assert_eq!(last, "    [line-2 line-3 c1#missing line-7]", "{shown}");
}

#[test]
fn a_list_without_a_predecessor_is_a_start() {
    let shown =
        strict(&[compacted("sum", &[message("user", "first"), message("user", "sum")]), turn(), said("assistant", "yes")]);
    assert!(shown.contains("context 0 = root") && shown.contains("no-predecessor"), "{shown}");
}

#[test]
fn a_compaction_that_removes_nothing_only_appends_its_summary() {
    let shown = strict(&[
        turn(),
        said("user", "first"),
        compacted("sum", &[message("user", "first"), message("user", "sum")]),
        said("assistant", "yes"),
    ]);
    assert!(!shown.contains("evict") && shown.contains("nothing-removed"), "{shown}");
}

#[test]
fn a_pair_that_a_compaction_breaks_is_not_sent() {
    let item = |json: String| json;
    let call = |id: &str| {
        item(format!(r#"{{"type":"function_call","name":"shell","arguments":"{{\"command\": [\"ls\"]}}","call_id":"{id}"}}"#))
    };
    let out = |id: &str| item(format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"out of {id}"}}"#));
    let start = [turn(), said("user", "first"), calls("c1"), calls("c2"), used(10), output("c1"), output("c2")];
    let broken = [
        start.to_vec(),
        vec![
            compacted("sum", &[message("user", "first"), call("c1"), call("c2"), out("c2"), message("user", "sum")]),
            said("assistant", "yes"),
        ],
    ]
    .concat();
    insta::assert_snapshot!(strict(&broken));
}

#[test]
fn text_that_looks_like_a_record_is_text() {
    let quoted = line(
        "response_item",
        r#"{"type":"function_call_output","call_id":"c1","output":"{\"type\":\"compacted\",\"payload\":{\"message\":\"x\"}}"}"#,
    );
    let shown = strict(&[turn(), said("user", "go"), calls("c1"), quoted, said("assistant", "ok")]);
    assert!(!shown.contains("evict") && shown.contains(r#"{\"type\":\"compacted\","#), "{shown}");
    assert_eq!(
        shown.matches("context").count(),
        strict(&[turn(), said("user", "go"), calls("c1"), output("c1"), said("assistant", "ok")]).matches("context").count()
    );
}

fn faults(lines: &[String]) -> Vec<String> {
    shown::faults("r.jsonl", &rollout(lines))
}

#[test]
fn an_ordinal_that_stands_twice_keeps_its_first_line() {
    let numbered = |at: u32, line: String| line.replacen("\"type\"", &format!("\"ordinal\":{at},\"type\""), 1);
    let lines = [
        numbered(1, turn()),
        numbered(2, said("user", "hi")),
        numbered(2, said("user", "ho")),
        numbered(3, said("assistant", "x")),
    ];
    assert_eq!(
        faults(&lines),
        ["r.jsonl:3: ordinal: duplicate-ordinal: ordinal 2 stands behind 2; a line above has it and is kept"]
    );
}

#[test]
fn outputs_without_a_call_or_beside_another_one_are_left_out() {
    let other = output("c1").replace("out of", "else of");
    let lines = [turn(), said("user", "hi"), calls("c1"), output("c1"), other, output("c9"), said("assistant", "x")];
    assert_eq!(
        faults(&lines),
        [
            "r.jsonl:5: payload.call_id: duplicate-result: call c1 has a second output; the first is kept",
            "r.jsonl:6: payload.call_id: orphan-output: no call c9 stands above; the harness does not send such an output"
        ]
    );
}

#[test]
fn a_rollback_of_more_turns_than_there_are_takes_all_of_them() {
    let back = event(r#"{"type":"thread_rolled_back","num_turns":4}"#);
    let lines = [turn(), said("user", "hi"), said("assistant", "x"), back, said("user", "ho"), said("assistant", "y")];
    assert_eq!(
        faults(&lines),
        [
            "r.jsonl:4: payload.num_turns: rollback-too-far: 4 turns are taken back, which is more than there are; all of them are"
        ]
    );
}

#[test]
fn events_with_other_things_under_the_keys_of_known_ones_are_events_all_the_same() {
    let shown = strict(&[
        turn(),
        said("user", "hi"),
        event(r#"{"type":"warning","info":"text","num_turns":"two"}"#),
        event(r#"{"type":"token_count","info":{"total_token_usage":null}}"#),
        said("assistant", "x"),
    ]);
    assert!(shown.contains(r#"Policy Content "x""#), "{shown}");
    let lines =
        [turn(), said("user", "hi"), said("assistant", "x"), event(r#"{"type":"thread_rolled_back","num_turns":null}"#)];
    assert_eq!(
        faults(&lines),
        ["r.jsonl:4: payload.num_turns: rollback-unsaid: the rollback does not say of how many turns; none is taken back"]
    );
}

#[test]
fn a_compaction_without_summary_and_list_is_a_fault() {
    let lines = [turn(), said("user", "hi"), said("assistant", "x"), line("compacted", "{}"), said("assistant", "y")];
    assert_eq!(
        faults(&lines),
        [
            "r.jsonl:4: payload.message: no-summary: the compaction has neither a summary nor a list; what it compacted leaves without one"
        ]
    );
}

#[test]
fn unknown_types_are_counted_and_stand_in_no_context() {
    let shown = strict(&[
        turn(),
        said("user", "hi"),
        line("new_thing", r#"{"a":1}"#),
        line("new_thing", r#"[1]"#),
        line("response_item", r#"{"type":"new_item"}"#),
        said("assistant", "x"),
    ]);
    assert!(
        shown.contains(r#"rollout-own.jsonl:3: type: warning[harness]: unknown-type: type "new_thing" is not known"#)
            && shown.contains(r#""new_thing" is not known to this adapter; what is of it (2)"#),
        "{shown}"
    );
    assert!(shown.contains("response_item new_item"), "{shown}");
}

#[test]
fn a_payload_before_its_type_is_read_all_the_same() {
    let turned =
        r#"{"payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},"type":"response_item"}"#;
    assert!(strict(&[turn(), turned.into(), said("assistant", "x")]).contains(r#"User Human "hi""#));
}

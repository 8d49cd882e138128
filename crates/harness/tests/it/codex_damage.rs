//! What is wrong with a rollout of Codex CLI is named with its line, and what only looks wrong is
//! read as it is.
use crate::shown;

use crate::rollout::{calls, compacted, event, line, message, meta, output, rollout, said, turn};
use crate::shown::told;
use pleach_harness::ReadOptions;

fn strict(lines: &[String]) -> String {
    told("rollout-own.jsonl", &rollout(lines), &[], ReadOptions::STRICT)
}

fn faults(lines: &[String]) -> Vec<String> {
    shown::faults("r.jsonl", &rollout(lines))
}

#[test]
fn an_ordinal_that_stands_twice_keeps_its_first_line() {
    let numbered =
        |at: u32, line: String| line.replacen("\"type\"", &format!("\"ordinal\":{at},\"type\""), 1);
    let lines = [
        numbered(1, turn()),
        numbered(2, said("user", "hi")),
        numbered(2, said("user", "ho")),
        numbered(3, said("assistant", "x")),
    ];
    assert_eq!(
        faults(&lines),
        [
            "r.jsonl:3: ordinal: duplicate-ordinal: ordinal 2 stands behind 2; a line above has it and is kept"
        ]
    );
}

#[test]
fn outputs_without_a_call_or_beside_another_one_are_left_out() {
    let other = output("c1").replace("out of", "else of");
    let lines = [
        turn(),
        said("user", "hi"),
        calls("c1"),
        output("c1"),
        other,
        output("c9"),
        said("assistant", "x"),
    ];
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
    let lines = [
        turn(),
        said("user", "hi"),
        said("assistant", "x"),
        back,
        said("user", "ho"),
        said("assistant", "y"),
    ];
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
    let lines = [
        turn(),
        said("user", "hi"),
        said("assistant", "x"),
        event(r#"{"type":"thread_rolled_back","num_turns":null}"#),
    ];
    assert_eq!(
        faults(&lines),
        [
            "r.jsonl:4: payload.num_turns: rollback-unsaid: the rollback does not say of how many turns; none is taken back"
        ]
    );
}

#[test]
fn a_compaction_without_summary_and_list_is_a_fault() {
    let lines = [
        turn(),
        said("user", "hi"),
        said("assistant", "x"),
        line("compacted", "{}"),
        said("assistant", "y"),
    ];
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
    let turned = r#"{"payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},"type":"response_item"}"#;
    assert!(
        strict(&[turn(), turned.into(), said("assistant", "x")]).contains(r#"User Human "hi""#)
    );
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
        strict(&[turn(), said("user", "go"), calls("c1"), output("c1"), said("assistant", "ok")])
            .matches("context")
            .count()
    );
}

#[test]
fn a_call_without_output_is_answered_as_the_harness_does() {
    let shown = strict(&[
        meta(""),
        turn(),
        said("user", "go"),
        calls("c1"),
        said("user", "stop"),
        said("assistant", "ok"),
    ]);
    assert!(shown.contains(r#"c1#missing: Tool Harness "aborted""#), "{shown}");
    assert!(shown.contains("missing-result"));
}

#[test]
fn a_call_that_is_written_again_is_no_second_call() {
    let once = [said("user", "go"), calls("c1"), output("c1")];
    let shown = strict(
        &[vec![turn()], once.to_vec(), once[1..].to_vec(), vec![said("assistant", "ok")]].concat(),
    );
    assert_eq!(shown.matches("of thread main").count(), 2, "{shown}");
    assert!(shown.contains("repeated-call") && shown.contains("repeated-line"), "{shown}");
}

#[test]
fn history_that_is_written_again_under_the_same_ids_is_there_once() {
    let with_id = |id: &str, role: &str, text: &str| {
        line("response_item", &message(role, text).replacen('{', &format!(r#"{{"id":"{id}","#), 1))
    };
    let once = [with_id("m1", "user", "hi"), with_id("m2", "assistant", "hello")];
    let more = [said("user", "and?"), said("assistant", "done")];
    let shown = strict(&[vec![turn()], once.to_vec(), once.to_vec(), more.to_vec()].concat());
    assert_eq!(shown.matches("of thread main").count(), 2, "{shown}");
    assert_eq!(shown.matches("repeated-line").count(), 2, "{shown}");
    assert!(
        shown.contains(
            "rollout-own.jsonl:4: payload.id: warning[harness]: repeated-line: item m1 stands above"
        ),
        "{shown}"
    );
}

#[test]
fn an_id_that_a_server_gives_twice_is_no_repetition_and_neither_is_what_a_rollback_or_a_compaction_took_out()
 {
    let with_id = |id: &str, role: &str, text: &str| {
        line("response_item", &message(role, text).replacen('{', &format!(r#"{{"id":"{id}","#), 1))
    };
    let once = [turn(), with_id("m1", "user", "hi"), with_id("m2", "assistant", "hello")];
    let other = [said("user", "and?"), with_id("m2", "assistant", "done")];
    let shown = strict(&[once.to_vec(), other.to_vec()].concat());
    assert_eq!(
        (shown.matches("of thread main").count(), shown.contains("repeated")),
        (2, false),
        "{shown}"
    );
    let again = [with_id("m1", "user", "hi"), with_id("m3", "assistant", "anew")];
    for out in [
        event(r#"{"type":"thread_rolled_back","num_turns":1}"#),
        compacted("sum", &[message("user", "sum")]),
    ] {
        let shown = strict(&[once.to_vec(), vec![out], again.to_vec()].concat());
        assert!(
            !shown.contains("repeated") && shown.matches(r#"m1: User Human "hi""#).count() == 2,
            "{shown}"
        );
    }
}

#[test]
fn a_list_without_a_predecessor_is_a_start() {
    let shown = strict(&[
        compacted("sum", &[message("user", "first"), message("user", "sum")]),
        turn(),
        said("assistant", "yes"),
    ]);
    assert!(shown.contains("context 0 = root") && shown.contains("no-predecessor"), "{shown}");
}

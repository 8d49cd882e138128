//! What a session of Pi becomes: branches by parents, compactions with the summary first, broken
//! calls that no later request shows.
use crate::shown;

use crate::damaged::damaged;
use crate::shown::told;
use pleach_harness::{Input, ReadOptions, convert_from};
use pleach_tree::{BranchTree, Operation, Origin};

/// A session of version 3 with these entries.
fn session(entries: &[&str]) -> Vec<u8> {
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-02-01T10:00:00Z","cwd":"/proj"}"#;
    entries.iter().fold(format!("{header}\n"), |text, entry| text + entry + "\n").into_bytes()
}

fn entry(id: &str, parent: &str, rest: &str) -> String {
    let parent = if parent.is_empty() { "null".into() } else { format!("{parent:?}") };
    format!(r#"{{"id":"{id}","parentId":{parent},"timestamp":"2026-02-01T10:00:01Z",{rest}}}"#)
}

fn user(id: &str, parent: &str, text: &str) -> String {
    entry(
        id,
        parent,
        &format!(r#""type":"message","message":{{"role":"user","content":"{text}"}}"#),
    )
}

fn says(id: &str, parent: &str, text: &str, stop: &str) -> String {
    let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
    let message =
        format!(r#"{{"role":"assistant","model":"m","stopReason":"{stop}","content":{content}}}"#);
    entry(id, parent, &format!(r#""type":"message","message":{message}"#))
}

fn calls(id: &str, parent: &str, tools: &[&str]) -> String {
    let tool = |call: &&str| {
        format!(r#"{{"type":"toolCall","id":"{call}","name":"read","arguments":{{"path": "a"}}}}"#)
    };
    let content = tools.iter().map(tool).collect::<Vec<_>>().join(",");
    let message = format!(
        r#"{{"role":"assistant","model":"m","stopReason":"toolUse","content":[{content}]}}"#
    );
    entry(id, parent, &format!(r#""type":"message","message":{message}"#))
}

fn result(id: &str, parent: &str, call: &str) -> String {
    let content = r#"[{"type":"text","text":"out"}]"#;
    let message = format!(
        r#"{{"role":"toolResult","toolCallId":"{call}","toolName":"read","content":{content},"isError":false}}"#
    );
    entry(id, parent, &format!(r#""type":"message","message":{message}"#))
}

fn compaction(id: &str, parent: &str, first: &str) -> String {
    entry(
        id,
        parent,
        &format!(
            r#""type":"compaction","summary":"sum","firstKeptEntryId":"{first}","tokensBefore":9"#
        ),
    )
}

fn strict(entries: &[&str]) -> String {
    told("s.jsonl", &session(entries), &[], ReadOptions::STRICT)
}

#[test]
fn a_compaction_keeps_its_tail_behind_the_summary_and_a_nested_one_evicts_that_summary() {
    let entries = [
        user("u1", "", "hi"),
        calls("a1", "u1", &["c1", "c2"]),
        result("r1", "a1", "c1"),
        result("r2", "r1", "c2"),
        says("a2", "r2", "done", "stop"),
        user("u2", "a2", "on"),
        compaction("k1", "u2", "a2"),
        says("a3", "k1", "yes", "stop"),
        user("u3", "a3", "more"),
        compaction("k2", "u3", "u2"),
        says("a4", "k2", "end", "stop"),
    ];
    insta::assert_snapshot!(strict(&entries.each_ref().map(String::as_str)));
}

#[test]
fn a_left_branch_is_a_thread_of_its_own_and_its_summary_stands_in_the_one_that_goes_on() {
    let entries = [
        user("u1", "", "hi"),
        says("a1", "u1", "first", "stop"),
        user("u2", "a1", "wrong"),
        says("a2", "u2", "way", "stop"),
        entry("b", "a1", r#""type":"branch_summary","fromId":"a2","summary":"left""#),
        entry("l", "b", r#""type":"label","targetId":"a1","label":"x""#),
        user("u3", "l", "right"),
        says("a3", "u3", "way", "stop"),
    ];
    insta::assert_snapshot!(strict(&entries.each_ref().map(String::as_str)));
}

#[test]
fn a_broken_call_is_no_context_and_a_call_without_a_result_is_answered_by_the_harness() {
    let entries = [
        user("u1", "", "hi"),
        says("a1", "u1", "half a", "aborted"),
        user("u2", "a1", "again"),
        calls("a2", "u2", &["c1", "c2"]),
        result("r1", "a2", "c1"),
        entry(
            "sh",
            "r1",
            r#""type":"message","message":{"role":"bashExecution","command":"ls","output":"x","exitCode":1}"#,
        ),
        entry(
            "no",
            "sh",
            r#""type":"message","message":{"role":"bashExecution","command":"id","output":"y","exitCode":0,"excludeFromContext":true}"#,
        ),
        says("a3", "no", "ok", "stop"),
    ];
    insta::assert_snapshot!(strict(&entries.each_ref().map(String::as_str)));
}

#[test]
fn text_in_a_result_that_looks_like_an_entry_is_text() {
    let quoted = r#""type":"message","message":{"role":"toolResult","toolCallId":"c1","content":[{"type":"text","text":"{\"type\":\"compaction\",\"firstKeptEntryId\":\"u1\"}"}]}"#;
    let entries = [
        user("u1", "", "hi"),
        calls("a1", "u1", &["c1"]),
        entry("r1", "a1", quoted),
        says("a2", "r1", "ok", "stop"),
    ];
    assert!(!strict(&entries.each_ref().map(String::as_str)).contains("evict"));
}

fn faults(entries: &[&str]) -> Vec<String> {
    shown::faults("s.jsonl", &session(entries))
}

#[test]
fn entries_that_hang_nowhere_are_faults_and_those_that_stand_twice_are_one() {
    let gone = [
        user("u1", "", "hi"),
        says("a1", "u1", "x", "stop"),
        user("u2", "gone", "on"),
        says("a2", "u2", "y", "stop"),
    ];
    assert_eq!(
        faults(&gone.each_ref().map(String::as_str)),
        [
            "s.jsonl:4: parentId: dangling-parent: the parent gone is not in the file above; the entry before it is taken"
        ]
    );
    let again = [user("u1", "", "hi"), user("u1", "", "hi"), says("a1", "u1", "x", "stop")];
    let shown = strict(&again.each_ref().map(String::as_str));
    assert!(
        shown.contains("[u1]")
            && shown.contains("repeated-line: the entry u1 repeats one that stands above"),
        "{shown}"
    );
}

#[test]
fn an_id_that_several_entries_have_means_the_nearest_one_above() {
    let marker = |parent: &str| entry("mark", parent, r#""type":"custom","customType":"end""#);
    let entries = [
        user("u1", "", "hi"),
        says("a1", "u1", "x", "stop"),
        marker("a1"),
        user("u2", "mark", "on"),
        says("a2", "u2", "y", "stop"),
        marker("a2"),
        user("u3", "mark", "and on"),
        says("a3", "u3", "z", "stop"),
        compaction("k", "a3", "mark"),
        says("a4", "k", "end", "stop"),
    ];
    insta::assert_snapshot!(strict(&entries.each_ref().map(String::as_str)));
}

#[test]
fn what_openclaw_wrote_in_the_place_of_an_answer_is_the_harness_s_and_no_call() {
    let written = |id: &str, parent: &str, model: &str| {
        let message = format!(
            r#"{{"role":"assistant","provider":"openclaw","model":"{model}","stopReason":"stop","content":[{{"type":"text","text":"sent"}}]}}"#
        );
        entry(id, parent, &format!(r#""type":"message","message":{message}"#))
    };
    let entries = [
        user("u1", "", "hi"),
        says("a1", "u1", "sent", "stop"),
        written("w1", "a1", "delivery-mirror"),
        written("w2", "w1", "gateway-injected"),
        user("u2", "w2", "on"),
        says("a2", "u2", "y", "stop"),
    ];
    insta::assert_snapshot!(strict(&entries.each_ref().map(String::as_str)));
    let later = entries.map(|entry| entry.replace("2026-02", "2026-08"));
    let shown = strict(&later.each_ref().map(String::as_str));
    assert!(shown.contains("[u1 a1 u2]") && shown.contains("harness-message"), "{shown}");
}

#[test]
fn a_result_answers_one_call_where_several_have_its_id() {
    let entries = [
        user("u1", "", "hi"),
        calls("a1", "u1", &["c1"]),
        result("r1", "a1", "c1"),
        calls("a2", "r1", &["c1", "c1"]),
        result("r2", "a2", "c1"),
        says("a3", "r2", "y", "stop"),
    ];
    let shown = strict(&entries.each_ref().map(String::as_str));
    assert_eq!(shown.matches("Tool Environment").count(), 2, "{shown}");
    assert!(shown.contains("missing-result: calls (c1) have no result"), "{shown}");
}

#[test]
fn a_first_kept_entry_that_is_not_there_leaves_the_summary_alone() {
    let entries = [
        user("u1", "", "hi"),
        says("a1", "u1", "x", "stop"),
        compaction("k", "a1", "gone"),
        says("a2", "k", "y", "stop"),
    ];
    assert_eq!(
        faults(&entries.each_ref().map(String::as_str)),
        [
            "s.jsonl:4: firstKeptEntryId: first-kept-missing: the first kept entry is not in the file above; nothing but the summary is kept"
        ]
    );
}

#[test]
fn a_result_whose_call_a_compaction_took_is_sent_as_it_is_and_is_a_warning() {
    let entries = [
        user("u1", "", "hi"),
        calls("a1", "u1", &["c1", "c2"]),
        result("r1", "a1", "c1"),
        result("r2", "r1", "c2"),
        compaction("k", "r2", "r2"),
        says("a2", "k", "y", "stop"),
    ];
    let text = session(&entries.each_ref().map(String::as_str));
    let conversion =
        convert_from(&Input::memory("s.jsonl", text, []), None, ReadOptions::STRICT).unwrap();
    let (_, report) =
        BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT).unwrap();
    let codes: Vec<&str> = report.diagnostics.iter().map(|found| found.fault.code()).collect();
    assert_eq!(codes, ["orphan-result"]);
}

#[test]
fn calls_of_the_session_that_this_one_was_branched_from_are_context_where_that_one_lies_beside() {
    let start = [user("u1", "", "hi"), says("a1", "u1", "x", "stop")];
    let rest = [user("u2", "a1", "on"), says("a2", "u2", "y", "stop")];
    let header = r#"{"type":"session","version":3,"id":"t","timestamp":"2026-02-01T11:00:00Z","cwd":"/proj","parentSession":"/x/s.jsonl"}"#;
    let child = format!("{header}\n{}\n{}\n{}\n{}\n", start[0], start[1], rest[0], rest[1]);
    let parent = session(&start.each_ref().map(String::as_str));
    let beside = told("t.jsonl", child.as_bytes(), &[("s.jsonl", &parent)], ReadOptions::STRICT);
    insta::assert_snapshot!(beside);
    let alone = told("t.jsonl", child.as_bytes(), &[], ReadOptions::STRICT);
    assert!(alone.contains("generation 1") && alone.contains("copied-history"), "{alone}");
}

#[test]
fn a_broken_call_in_a_kept_tail_stays_out_of_the_context() {
    let entries = [
        user("u1", "", "hi"),
        says("a1", "u1", "half a", "aborted"),
        user("u2", "a1", "again"),
        compaction("k", "u2", "a1"),
        says("a2", "k", "y", "stop"),
    ];
    let shown = strict(&entries.each_ref().map(String::as_str));
    assert!(shown.contains("[k k k u2]"), "{shown}");
}

#[test]
fn a_copied_call_that_was_broken_is_no_context_and_one_without_a_result_is_answered_by_the_harness()
{
    let start = [
        user("u1", "", "hi"),
        says("a1", "u1", "half a", "aborted"),
        user("u2", "a1", "again"),
        calls("a2", "u2", &["c1"]),
    ];
    let rest = [user("u3", "a2", "on"), says("a3", "u3", "y", "stop")];
    let header = r#"{"type":"session","version":3,"id":"t","timestamp":"2026-02-01T11:00:00Z","cwd":"/proj","parentSession":"/x/s.jsonl"}"#;
    let child = format!("{header}\n{}\n{}\n", start.join("\n"), rest.join("\n"));
    let parent = session(&start.each_ref().map(String::as_str));
    let shown = told("t.jsonl", child.as_bytes(), &[("s.jsonl", &parent)], ReadOptions::STRICT);
    assert!(
        shown.contains("[u1 u2 a2 c1#missing u3]") && shown.contains("calls (2) are copied"),
        "{shown}"
    );
}

#[test]
fn the_shared_session_of_version_1_has_two_compactions_the_second_of_which_evicts_the_first_summary()
 {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/transcripts/pi/two-nested-compactions.jsonl");
    if !path.exists() {
        eprintln!("skipped: the shared session is not there");
        return;
    }
    let conversion = convert_from(&Input::open(&path).unwrap(), None, ReadOptions::STRICT).unwrap();
    let (tree, _) =
        BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT).unwrap();
    assert_eq!(tree.generations().count(), 434 + 31 + 18 + 1);
    let evictions: Vec<_> = tree
        .contexts()
        .filter_map(|context| match tree.operation(context.id()?)? {
            Operation::Evict(evict) => Some(evict),
            _ => None,
        })
        .collect();
    assert_eq!(evictions.len(), 2);
    let summary = &evictions[0].replacement.as_ref().unwrap().segments;
    assert!(
        summary.iter().all(|id| evictions[1].evicted.iter().any(|evicted| evicted.segment == *id))
    );
    assert!(summary.iter().any(|id| tree.segment(*id).unwrap().origin == Origin::ExternalModel));
}

#[test]
fn a_session_whose_parent_is_damaged_is_read_as_its_own() {
    let start = [user("u1", "", "hi"), says("a1", "u1", "x", "stop")];
    let header = r#"{"type":"session","version":3,"id":"t","timestamp":"2026-02-01T11:00:00Z","cwd":"/proj","parentSession":"/x/s.jsonl"}"#;
    let child = format!("{header}\n{}\n{}\n", start[0], start[1]);
    for parent in damaged(&session(&start.each_ref().map(String::as_str))) {
        let shown = told("t.jsonl", child.as_bytes(), &[("s.jsonl", &parent)], ReadOptions::STRICT);
        assert_eq!(shown.matches("of thread main").count(), 1, "{shown}");
        assert!(
            shown.contains("s.jsonl:1: warning[harness]: unread-beside: it lies beside"),
            "{shown}"
        );
    }
}

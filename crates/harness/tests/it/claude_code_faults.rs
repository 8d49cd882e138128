//! What is wrong with a Claude Code session: strict reading rejects it and names code, file, line,
//! key and message; lenient reading says the same as a repair, lowers the fidelity, and gives
//! records that a strict tree takes.

use crate::lines::{boundary, calls, clears, lines, result, says, summary, user};
use pleach_harness::claude_code::{SessionInput, convert_readers};
use pleach_harness::{Conversion, HarnessError, ReadOptions};
use pleach_tree::{BranchTree, Fidelity, Record, Report, Severity};

fn read(text: &[u8], options: ReadOptions) -> Result<Conversion, HarnessError> {
    let main = SessionInput { reader: text, name: "in/s.jsonl".into(), listed: "s.jsonl".into() };
    convert_readers(main, std::iter::empty(), options)
}

fn of(report: &Report, severity: Severity) -> Vec<String> {
    report
        .of(severity)
        .map(|found| format!("{}: {}: {}", found.location, found.fault.code(), found.fault))
        .collect()
}

/// Faults under strict reading; lenient reading must call the same ones repaired.
fn faults(text: impl AsRef<[u8]>) -> Vec<String> {
    let text = text.as_ref();
    let Err(HarnessError::Rejected(report)) = read(text, ReadOptions::STRICT) else {
        panic!("strict reading must reject it")
    };
    let errors = of(&report, Severity::Error);
    let repaired = read(text, ReadOptions::LENIENT).unwrap();
    assert_eq!(of(&repaired.report, Severity::Repaired), errors);
    let Record::Header(header) = &repaired.records[0] else { panic!("the header stands first") };
    assert_eq!(header.fidelity, Fidelity::Inferred);
    BranchTree::from_records(repaired.records, "records", ReadOptions::STRICT).unwrap();
    errors
}

fn warnings(text: impl AsRef<[u8]>) -> Vec<String> {
    let conversion = read(text.as_ref(), ReadOptions::STRICT).unwrap();
    BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT).unwrap();
    of(&conversion.report, Severity::Warning)
}

#[test]
fn a_parent_that_is_not_there_is_the_line_before() {
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        user("v", "gone", "on"),
        says("b", "v", "m2"),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:3: parentUuid: harness: dangling-parent: the parent gone is not in the file; line 2 before it is taken"
        ]
    );
}

#[test]
fn a_first_line_without_its_parent_is_a_start() {
    let text = lines([user("u", "gone", "hi"), says("a", "u", "m1")]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:1: parentUuid: harness: dangling-parent: the parent gone is not in the file; nothing stands before it, so it is taken as a start"
        ]
    );
}

#[test]
fn lines_in_a_circle_start_at_one_of_them() {
    let text = lines([user("u", "v", "hi"), user("v", "u", "on"), says("a", "v", "m1")]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:2: parentUuid: harness: parent-cycle: the line is its own ancestor; it is taken as a start"
        ]
    );
}

#[test]
fn two_lines_with_one_uuid_are_the_first() {
    let text = lines([user("u", "", "hi"), user("u", "", "other"), says("a", "u", "m1")]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:2: uuid: harness: duplicate-uuid: line 1 has the same uuid and other content; the first is kept"
        ]
    );
}

#[test]
fn a_line_that_is_repeated_is_no_fault_and_stands_once() {
    let text = lines([user("u", "", "hi"), user("u", "", "hi"), says("a", "u", "m1")]);
    assert_eq!(
        warnings(text),
        [
            "in/s.jsonl:2: uuid: harness: repeated-line: the line repeats line 1, which holds its place"
        ]
    );
}

#[test]
fn a_line_without_a_uuid_is_known_by_its_number() {
    let text =
        lines([r#"{"type":"user","message":{"content":"hi"}}"#.into(), says("a", "line-1", "m1")]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:1: uuid: harness: no-uuid: the line has no uuid; the number of the line stands for it"
        ]
    );
}

#[test]
fn a_message_without_an_id_is_a_call_of_its_own() {
    let text = lines([
        user("u", "", "hi"),
        r#"{"type":"assistant","uuid":"a","parentUuid":"u","message":{"content":[{"type":"text","text":"x"}]}}"#.into(),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:2: message.id: harness: no-message-id: the message has no id; the line is taken as a call of its own"
        ]
    );
}

#[test]
fn content_of_an_unknown_shape_is_empty() {
    let text = lines([
        user("u", "", "hi"),
        r#"{"type":"user","uuid":"v","parentUuid":"u","message":{"content":7}}"#.into(),
        says("a", "v", "m1"),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:2: message.content: harness: odd-content: the content is neither text nor blocks; it is taken as empty"
        ]
    );
}

#[test]
fn a_call_with_nothing_before_it_carries_no_loss() {
    let text = lines([
        r#"{"type":"assistant","uuid":"a","parentUuid":null,"message":{"id":"m1","content":"x"}}"#
            .into(),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:1: parentUuid: harness: empty-context: nothing stands before the call; its text carries no loss"
        ]
    );
}

#[test]
fn the_second_result_of_a_call_is_left_out() {
    let text = lines([
        user("u", "", "hi"),
        calls("a", "u", "m1", "c"),
        result("r", "a", "c"),
        result("q", "r", "c"),
        says("b", "q", "m2"),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:4: message.content: harness: duplicate-result: call c has a second result; the first is kept"
        ]
    );
}

#[test]
fn a_call_without_a_result_is_a_warning_where_the_conversation_went_on() {
    let text = lines([user("u", "", "hi"), calls("a", "u", "m1", "c"), says("b", "a", "m2")]);
    assert_eq!(
        warnings(text),
        [
            "in/s.jsonl:2: message.content: harness: missing-result: call c has no result in the file although the conversation went on"
        ]
    );
}

#[test]
fn clearing_a_result_that_is_not_in_the_context_is_passed_over() {
    let text = lines([
        user("u", "", "hi"),
        calls("a", "u", "m1", "c"),
        result("r", "a", "c"),
        clears("x", "r", "d"),
        says("b", "x", "m2"),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:4: microcompactMetadata.compactedToolIds: harness: cleared-missing: the result of call d is not in the context; it is passed over"
        ]
    );
}

#[test]
fn a_boundary_whose_logical_parent_stands_behind_it_follows_the_line_before() {
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        boundary("b", r#""v""#, ""),
        summary("s", "b"),
        user("v", "s", "on"),
        says("c", "v", "m2"),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:3: logicalParentUuid: harness: dangling-logical-parent: the logical parent v stands behind the boundary, on line 5; line 2, the last one before the boundary, is taken"
        ]
    );
}

#[test]
fn a_boundary_without_a_logical_parent_follows_the_line_before() {
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        boundary("b", "null", ""),
        summary("s", "b"),
        says("c", "s", "m2"),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:3: logicalParentUuid: harness: dangling-logical-parent: no logical parent is recorded; line 2, the last one before the boundary, is taken"
        ]
    );
}

#[test]
fn a_boundary_without_a_summary_leaves_nothing_but_what_it_preserves() {
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        boundary("b", r#""a""#, ""),
        user("v", "b", "on"),
        says("c", "v", "m2"),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:3: subtype: harness: no-summary: no summary follows the boundary; what it compacted leaves without one"
        ]
    );
}

#[test]
fn a_preserved_line_that_is_not_there_is_left_out() {
    let kept = r#","preservedMessages":{"anchorUuid":"s","uuids":["gone","a"]}"#;
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        boundary("b", r#""a""#, kept),
        summary("s", "b"),
        says("c", "a", "m2"),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:3: compactMetadata: harness: preserved-missing: the preserved line gone is not in the file; it is left out"
        ]
    );
}

/// Place and code of the only fault; the messages of damaged lines are pinned where they are
/// written.
fn damage(text: impl AsRef<[u8]>) -> String {
    let found = faults(text);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].split(": ").take(2).collect::<Vec<_>>().join(": ")
}

#[test]
fn damaged_lines_are_named_as_in_every_file_of_lines() {
    let sound = lines([user("u", "", "hi"), says("a", "u", "m1")]);
    let truncated = format!("{sound}{}", &says("b", "a", "m2")[..40]);
    assert_eq!(damage(truncated), "in/s.jsonl:3: truncated-line");
    let glued = format!("{}{}\n", user("u", "", "hi"), says("a", "u", "m1"));
    assert_eq!(damage(glued), "in/s.jsonl:1: glued-records");
    assert_eq!(damage(sound.replacen('\n', "\0\0\n", 1)), "in/s.jsonl:1: nul-bytes");
    assert_eq!(damage(sound.replace("hi", "\\ud83d")), "in/s.jsonl:1: lone-surrogate");
    assert_eq!(damage(format!("{{\"type\" \"user\"}}\n{sound}")), "in/s.jsonl:1: json");
    let start =
        b"{\"type\":\"user\",\"uuid\":\"u\",\"message\":{\"content\":\"\xff\"}}\n".as_slice();
    assert_eq!(
        damage([start, says("a", "u", "m1").as_bytes()].concat()),
        "in/s.jsonl:1: invalid-utf8"
    );
}

#[test]
fn a_line_with_a_field_of_the_wrong_type_is_left_out_and_names_the_key() {
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        r#"{"type":"user","uuid":5}"#.into(),
        "[null]".into(),
    ]);
    assert_eq!(
        faults(text),
        [
            "in/s.jsonl:3: uuid: field: invalid type: integer `5`, expected a string",
            "in/s.jsonl:4: field: invalid type: sequence, expected a line of a session, which is a JSON object"
        ]
    );
}

#[test]
fn a_result_that_is_written_behind_the_next_call_stands_before_it_and_is_a_warning() {
    let text = lines([
        user("u", "", "hi"),
        calls("a", "u", "m1", "c"),
        says("b", "a", "m2"),
        result("r", "a", "c"),
    ]);
    assert_eq!(
        warnings(text),
        [
            "in/s.jsonl:4: uuid: harness: late-line: the line was written behind the call that goes on from it, and stands before that call"
        ]
    );
}

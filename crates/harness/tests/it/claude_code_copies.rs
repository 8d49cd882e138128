//! History that stands in several files, or twice in one, is trained once: resumed sessions, copies
//! of a file, lines of a sub-agent's file that are those of the session, parts and messages that
//! are written again, two processes on one file.

use crate::damaged::damaged;
use crate::lines::{boundary, calls, lines, result, says, summary, user};
use crate::seen::{U, built, codes, marked, read, seen};
use pleach_harness::{Input, ReadOptions, convert_from};

#[test]
fn of_sessions_that_each_repeat_the_one_before_every_call_is_trained_in_one() {
    let a = lines([user(U, "", "hi"), says("a", U, "m1")]);
    let b = a.clone() + &lines([user("v", "a", "on"), says("b", "v", "m2")]);
    let c = b.clone() + &lines([user("w", "b", "go"), says("c", "w", "m3")]);
    let others = [("a.jsonl", a.as_str()), ("b.jsonl", b.as_str()), ("c.jsonl", c.as_str())];
    let own = |at: usize| {
        let beside: Vec<_> = others
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != at)
            .map(|(_, file)| *file)
            .collect();
        seen(&read(others[at].0, others[at].1, &beside).0)
    };
    assert_eq!(own(0), ["main: U > m1"]);
    assert_eq!(own(1), ["main: U m1 v > m2"]);
    assert_eq!(own(2), ["main: U m1 v m2 w > m3"]);
}

#[test]
fn a_session_that_begins_with_a_long_prompt_is_known_in_the_one_that_resumes_it() {
    let a = lines([user(U, "", &"long ".repeat(20_000)), says("a", U, "m1")]);
    let b = a.clone() + &lines([user("v", "a", "on"), says("b", "v", "m2")]);
    assert_eq!(seen(&read("b.jsonl", &b, &[("a.jsonl", &a)]).0), ["main: U m1 v > m2"]);
}

#[test]
fn a_copy_of_a_file_has_no_calls_of_its_own() {
    let text = lines([user(U, "", "hi"), says("a", U, "m1")]);
    let (tree, report) = read("s copy.jsonl", &text, &[("s.jsonl", &text)]);
    assert_eq!((seen(&tree).len(), codes(&report)), (1, vec![]), "the copy's name comes first");
    let (tree, report) = read("s.jsonl", &text, &[("s copy.jsonl", &text)]);
    assert_eq!(
        (seen(&tree).len(), codes(&report)),
        (0, vec!["copied-history".to_owned(), "no-calls".to_owned()])
    );
}

#[test]
fn lines_that_were_forked_from_another_session_say_so_where_that_one_is_not_beside() {
    let forked = |line: String| {
        line.replacen("{\"type\"", r#"{"forkedFrom":{"sessionId":"p","messageUuid":"x"},"type""#, 1)
    };
    let text = lines([
        forked(user("u", "", "hi")),
        forked(says("a", "u", "m1")),
        user("v", "a", "on"),
        says("b", "v", "m2"),
    ]);
    let (tree, report) = read("s.jsonl", &text, &[]);
    assert_eq!((seen(&tree).len(), codes(&report)), (2, vec!["copied-history".to_owned()]));
    let parent = lines([user("x", "", "hi"), says("y", "x", "m1")]);
    let (tree, _) = read("s.jsonl", &text, &[("p.jsonl", &parent)]);
    assert_eq!(seen(&tree), ["main: u m1 v > m2"]);
}

#[test]
fn a_background_agents_file_that_begins_with_the_sessions_lines_goes_on_from_them() {
    let main = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        user("v", "a", "on"),
        says("b", "v", "m2"),
    ]);
    let agent = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        user("x", "a", "sub"),
        says("y", "x", "m3"),
    ]);
    let (tree, report) = read("s.jsonl", &main, &[("s/subagents/agent-7.jsonl", &agent)]);
    assert_eq!(seen(&tree), ["main: u > m1", "main: u m1 v > m2", "agent-7: u m1 x > m3"]);
    assert_eq!(codes(&report), ["copied-history"]);
}

#[test]
fn a_history_that_is_appended_again_under_the_same_ids_stands_once() {
    let start = lines([user("u", "", "hi"), says("a", "u", "m1")]);
    let (tree, report) = read(
        "s.jsonl",
        &(start.clone() + &start + &lines([user("v", "a", "on"), says("b", "v", "m2")])),
        &[],
    );
    assert_eq!(seen(&tree), ["main: u > m1", "main: u m1 v > m2"]);
    assert_eq!(codes(&report), ["repeated-line", "repeated-line"]);
}

#[test]
fn a_history_that_is_written_again_under_other_uuids_has_each_call_once() {
    let again = lines([
        user("u2", "", "hi"),
        says("a2", "u2", "m1"),
        user("v2", "a2", "on"),
        says("b2", "v2", "m2"),
        user("w", "b2", "go"),
        says("c", "w", "m3"),
    ]);
    let once = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        user("v", "a", "on"),
        says("b", "v", "m2"),
    ]);
    let (tree, report) = read("s.jsonl", &(once + &again), &[]);
    assert_eq!(seen(&tree), ["main: u > m1", "main: u m1 v > m2", "main: u m1 v m2 w > m3"]);
    assert_eq!(codes(&report), ["repeated-part", "repeated-part"]);
}

#[test]
fn a_part_that_is_streamed_twice_stands_once() {
    let text = lines([
        user("u", "", "hi"),
        calls("a", "u", "m1", "c"),
        calls("b", "a", "m1", "c"),
        result("r", "b", "c"),
        says("d", "r", "m2"),
    ]);
    let (tree, report) = read("s.jsonl", &text, &[]);
    assert_eq!(seen(&tree), ["main: u > m1", "main: u m1 c > m2"]);
    assert_eq!(codes(&report), ["repeated-part"]);
}

#[test]
fn a_branch_that_writes_every_message_twice_has_each_call_once() {
    let text = lines([
        user("u", "", "hi"),
        user("u2", "", "hi"),
        says("a", "u", "m1"),
        says("a2", "u2", "m1"),
        user("v", "a", "on"),
        user("v2", "a2", "on"),
        says("b", "v", "m2"),
        says("b2", "v2", "m2"),
    ]);
    let (tree, _) = read("s.jsonl", &text, &[]);
    assert_eq!(seen(&tree), ["main: u > m1", "main: u m1 v > m2"]);
}

#[test]
fn two_processes_on_one_file_are_two_branches() {
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        user("v", "a", "one"),
        user("w", "a", "two"),
        says("b", "v", "m2"),
        says("c", "w", "m3"),
        user("x", "b", "on"),
        says("d", "x", "m4"),
    ]);
    let (tree, _) = read("s.jsonl", &text, &[]);
    let expected =
        ["main: u > m1", "main: u m1 v > m2", "main~1: u m1 w > m3", "main: u m1 v m2 x > m4"];
    assert_eq!(seen(&tree), expected);
}

#[test]
fn a_second_compaction_that_goes_on_from_before_the_first_is_a_branch() {
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        boundary("x", r#""a""#, ""),
        summary("s", "x"),
        says("b", "s", "m2"),
    ]) + &lines([boundary("y", r#""a""#, ""), summary("t", "y"), says("c", "t", "m3")]);
    let (tree, _) = read("s.jsonl", &text, &[]);
    assert_eq!(seen(&tree), ["main: u > m1", "main~1: s > m2", "main: t > m3"]);
}

#[test]
fn a_file_beside_that_is_damaged_is_a_warning_that_names_it() {
    let text = lines([user(U, "", "hi"), says("a", U, "m1")]);
    for name in ["a.jsonl.gz", "s/subagents/agent-7.jsonl.gz"] {
        for beside in damaged(&marked(&text)) {
            let input = Input::memory("s.jsonl", marked(&text), [(name.to_owned(), beside)]);
            let (tree, report) = built(convert_from(&input, None, ReadOptions::STRICT).unwrap());
            assert_eq!(seen(&tree), ["main: U > m1"], "{name}");
            let found = report.to_string();
            assert!(
                found.starts_with(&format!("{name}:1: warning[harness]: unread-beside: ")),
                "{found}"
            );
            assert!(found.contains("its gzip stream is damaged behind"), "{found}");
            assert!(
                name != "a.jsonl.gz" || codes(&report) == ["unread-beside"],
                "its calls are nowhere else: {found}"
            );
        }
    }
}

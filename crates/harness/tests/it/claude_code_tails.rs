//! What stands where after a full compaction: preserved lines in their order directly behind the
//! summary, or before it where the boundary is their anchor, and every later line behind them.

use crate::lines::{boundary, calls, clears, lines, result, says, summary, user};
use pleach_harness::ReadOptions;
use pleach_harness::claude_code::{SessionInput, convert_readers};
use pleach_tree::{BranchTree, Operation};

fn read(main: &str, others: &[(&str, String)]) -> BranchTree {
    let input = |listed: &str, text: &str| SessionInput {
        reader: std::io::Cursor::new(text.to_owned()),
        name: listed.into(),
        listed: listed.into(),
    };
    let others: Vec<_> = others.iter().map(|(name, text)| input(name, text)).collect();
    let conversion = convert_readers(input("s.jsonl", main), others, ReadOptions::STRICT).unwrap();
    BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT).unwrap().0
}

/// The thread of every call and the keys of its context.
fn seen(tree: &BranchTree) -> Vec<String> {
    let shown = tree.generations().map(|generation| {
        let spans = tree.spans(generation.context).unwrap();
        let keys = spans
            .iter()
            .map(|span| tree.segment(span.segment).unwrap().source.as_ref().unwrap().key.as_str());
        format!("{}: {}", generation.thread, keys.collect::<Vec<_>>().join(" "))
    });
    shown.collect()
}

/// The operations that are no append.
fn operations(tree: &BranchTree) -> Vec<&'static str> {
    let all = tree.contexts().filter_map(|context| tree.operation(context.id()?));
    let named = all.filter_map(|operation| match operation {
        Operation::Append(_) => None,
        Operation::Evict(_) => Some("evict"),
        Operation::Replace(_) => Some("replace"),
        Operation::Fork(_) => Some("fork"),
    });
    named.collect()
}

fn kept(anchor: &str, uuids: &[&str]) -> String {
    format!(r#","preservedMessages":{{"anchorUuid":"{anchor}","uuids":{uuids:?}}}"#)
}

fn ends(head: &str, tail: &str) -> String {
    format!(r#","preservedSegment":{{"headUuid":"{head}","anchorUuid":"s","tailUuid":"{tail}"}}"#)
}

fn start() -> [String; 4] {
    [user("u", "", "hi"), says("a", "u", "m1"), user("v", "a", "on"), says("b", "v", "m2")]
}

#[test]
fn lines_whose_anchor_is_the_boundary_stand_before_the_summary() {
    let text = lines(start())
        + &lines([
            boundary("x", r#""b""#, &kept("x", &["u", "a"])),
            summary("s", "x"),
            user("w", "s", "go"),
            says("c", "w", "m3"),
        ]);
    let tree = read(&text, &[]);
    assert_eq!(seen(&tree)[2], "main: u m1 s w");
    assert_eq!(operations(&tree), ["evict"]);
}

#[test]
fn a_run_of_late_lines_was_sampled_before_the_boundary_one_after_the_other() {
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        boundary("x", r#""a""#, &kept("s", &["v", "b"])),
        summary("s", "x"),
    ]) + &lines([
        user("v", "s", "on"),
        says("b", "v", "m2"),
        user("w", "b", "go"),
        says("c", "w", "m3"),
    ]);
    let tree = read(&text, &[]);
    assert_eq!(seen(&tree), ["main: u", "main: u m1 v", "main: s v m2 w"]);
}

#[test]
fn a_late_tail_that_is_given_by_its_ends_keeps_the_run_from_head_to_tail() {
    let text = lines(start())
        + &lines([
            user("w", "b", "go"),
            boundary("x", r#""w""#, &ends("v", "c")),
            summary("s", "x"),
            says("c", "s", "m3"),
        ])
        + &lines([user("y", "c", "and"), says("d", "y", "m4")]);
    let tree = read(&text, &[]);
    assert_eq!(seen(&tree)[2..], ["main: u m1 v m2 w", "main: s v m2 w m3 y"]);
}

#[test]
fn an_order_that_the_context_does_not_have_is_a_list_of_its_own() {
    let text = lines(start())
        + &lines([
            boundary("x", r#""b""#, &kept("s", &["b", "u"])),
            summary("s", "x"),
            user("w", "s", "go"),
            says("c", "w", "m3"),
        ]);
    let tree = read(&text, &[]);
    assert_eq!(seen(&tree)[2], "main: s m2 u w");
    assert_eq!(operations(&tree), ["replace"]);
}

#[test]
fn a_preserved_line_that_an_earlier_compaction_took_out_comes_back() {
    let text = lines(start())
        + &lines([
            boundary("x", r#""b""#, ""),
            summary("s", "x"),
            user("w", "s", "go"),
            says("c", "w", "m3"),
        ])
        + &lines([
            boundary("y", r#""c""#, &kept("t", &["v", "w"])),
            summary("t", "y"),
            user("z", "t", "end"),
            says("d", "z", "m4"),
        ]);
    let tree = read(&text, &[]);
    assert_eq!(seen(&tree)[2..], ["main: s w", "main: t v w z"]);
    assert_eq!(operations(&tree), ["evict", "replace"]);
}

#[test]
fn a_result_that_was_cleared_is_preserved_as_what_was_left_of_it() {
    let text = lines([
        user("u", "", "hi"),
        calls("a", "u", "m1", "c"),
        result("r", "a", "c"),
        clears("k", "r", "c"),
        says("b", "k", "m2"),
    ]) + &lines([
        boundary("x", r#""b""#, &kept("s", &["a", "r", "b"])),
        summary("s", "x"),
        user("w", "b", "go"),
        says("d", "w", "m3"),
    ]);
    assert_eq!(
        seen(&read(&text, &[])),
        ["main: u", "main: u m1 c#cleared", "main: s m1 c#cleared m2 w"]
    );
}

#[test]
fn going_back_to_before_a_compaction_forks_from_the_context_it_had() {
    let text = lines(start())
        + &lines([
            boundary("x", r#""b""#, ""),
            summary("s", "x"),
            user("w", "s", "go"),
            says("c", "w", "m3"),
        ])
        + &lines([user("z", "a", "else"), says("d", "z", "m4")]);
    let tree = read(&text, &[]);
    assert_eq!(seen(&tree), ["main: u", "main~1: u m1 v", "main~1: s w", "main: u m1 z"]);
    assert_eq!(operations(&tree), ["evict", "fork"]);
}

#[test]
fn a_sub_agents_own_compaction_has_a_summariser_of_its_own() {
    let agent = lines([
        user("h", "", "count"),
        says("i", "h", "n1"),
        boundary("x", r#""i""#, ""),
        summary("s", "x"),
        user("j", "s", "go"),
        says("k", "j", "n2"),
    ]);
    let summariser = lines([user("q", "i", "sum up"), says("p", "q", "n3").replace("said", "sum")]);
    let others =
        [("s/subagents/agent-7.jsonl", agent), ("s/subagents/agent-acompact-1.jsonl", summariser)];
    let tree = read(&lines([user("u", "", "hi"), says("a", "u", "m1")]), &others);
    assert_eq!(
        seen(&tree),
        ["main: u", "agent-7: h", "agent-acompact-1: h n1 q", "agent-7: n3 j"],
        "the summary is the summariser's text and nothing else"
    );
}

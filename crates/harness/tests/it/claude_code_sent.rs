//! What of a session a request holds, and where: results of calls whose ids stand twice, messages
//! that no model sampled, attachments, prompts that are recorded whole, text that was queued.

use crate::lines::{calls, clears, lines, says, user};
use pleach_harness::claude_code::{SessionInput, convert_readers};
use pleach_harness::{Conversion, ReadOptions};
use pleach_tree::{BranchTree, Origin, Role, Segment, Severity};

fn converted(main: &str, others: &[(&str, String)]) -> (Conversion, BranchTree) {
    let input = |listed: &str, text: &str| SessionInput {
        reader: std::io::Cursor::new(text.to_owned()),
        name: listed.into(),
        listed: listed.into(),
    };
    let others: Vec<_> = others.iter().map(|(name, text)| input(name, text)).collect();
    let conversion = convert_readers(input("s.jsonl", main), others, ReadOptions::STRICT).unwrap();
    let records = conversion.records.clone();
    let tree = BranchTree::from_records(records, "records", ReadOptions::STRICT).unwrap().0;
    (conversion, tree)
}

/// What each call saw.
fn contexts(tree: &BranchTree) -> Vec<Vec<&Segment>> {
    let seen = tree.generations().map(|generation| {
        let spans = tree.spans(generation.context).unwrap();
        spans.iter().map(|span| tree.segment(span.segment).unwrap()).collect()
    });
    seen.collect()
}

/// The texts that each call saw.
fn texts(tree: &BranchTree) -> Vec<Vec<&str>> {
    contexts(tree)
        .into_iter()
        .map(|context| context.iter().map(|segment| segment.text.as_deref().unwrap()).collect())
        .collect()
}

fn warnings(conversion: &Conversion) -> Vec<String> {
    let all = conversion.report.of(Severity::Warning);
    all.map(|found| format!("{}: {}", found.location, found.fault)).collect()
}

/// The result of a tool call.
fn answer(uuid: &str, parent: &str, call: &str, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"{text}"}}]}}}}"#
    )
}

#[test]
fn a_result_answers_the_newest_open_call_of_its_id() {
    let text = lines([
        user("u", "", "sow"),
        calls("a", "u", "m1", "c1"),
        answer("r", "a", "c1", "beans"),
        user("v", "r", "again"),
        calls("b", "v", "m2", "c1"),
        answer("q", "b", "c1", "peas"),
        says("c", "q", "m3"),
    ]);
    let (conversion, tree) = converted(&text, &[]);
    let call = r#"{"id":"c1","name":"Read","input":{}}"#;
    assert_eq!(texts(&tree)[1], ["sow", call, "beans", "again"]);
    assert_eq!(texts(&tree)[2], ["sow", call, "beans", "again", call, "peas"]);
    assert_eq!(warnings(&conversion), [""; 0]);
}

#[test]
fn every_result_of_an_id_that_is_cleared_leaves() {
    let text = lines([
        user("u", "", "sow"),
        calls("a", "u", "m1", "c1"),
        answer("r", "a", "c1", "beans"),
        calls("b", "r", "m2", "c1"),
        answer("q", "b", "c1", "peas"),
        clears("x", "q", "c1"),
        says("c", "x", "m3"),
    ]);
    let (_, tree) = converted(&text, &[]);
    let cleared = "[Old tool result content cleared]";
    let call = r#"{"id":"c1","name":"Read","input":{}}"#;
    assert_eq!(texts(&tree)[2], ["sow", call, cleared, call, cleared]);
}

/// A message of the model that stands for none.
fn notice(uuid: &str, parent: &str, text: &str, more: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":"{parent}"{more},"message":{{"id":"n-{uuid}","model":"<synthetic>","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

#[test]
fn a_message_that_no_model_sampled_stands_in_the_context_and_is_no_call() {
    let text = lines([
        user("u", "", "sow"),
        notice("n", "u", "Nothing to say.", ""),
        user("v", "n", "go on"),
        says("a", "v", "m1"),
    ]);
    let (conversion, tree) = converted(&text, &[]);
    let seen = &contexts(&tree)[0];
    let seen: Vec<_> = seen.iter().map(|said| (said.role, said.origin)).collect();
    let notice = (Role::Assistant, Origin::Harness);
    assert_eq!(seen, [(Role::User, Origin::Human), notice, (Role::User, Origin::Human)]);
    assert_eq!(texts(&tree), [["sow", "Nothing to say.", "go on"]]);
    assert_eq!(warnings(&conversion), [""; 0]);
}

#[test]
fn an_error_of_the_api_stands_in_no_context_and_a_notice_at_the_end_is_seen_by_nobody() {
    let text = lines([
        user("u", "", "sow"),
        notice("e", "u", "API Error", r#","isApiErrorMessage":true"#),
        says("a", "e", "m1"),
        notice("n", "a", "Nothing to say.", ""),
    ]);
    let (_, tree) = converted(&text, &[]);
    assert_eq!(texts(&tree), [["sow"]]);
}

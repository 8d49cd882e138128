//! Damage to a Claude Code session that is not a fault of one line: pairs that compactions tore,
//! compactions that change nothing or failed, bytes that no writer meant.

use crate::lines::{boundary, calls, lines, result, says, summary, user};
use pleach_harness::claude_code::{SessionInput, convert_readers};
use pleach_harness::{Conversion, ReadOptions};
use pleach_tree::{BranchTree, Operation, Report, Severity};

fn read(
    text: impl AsRef<[u8]>,
    others: &[(&str, String)],
    options: ReadOptions,
) -> (Conversion, BranchTree, Report) {
    let input = |listed: &str, text: &[u8]| SessionInput {
        reader: std::io::Cursor::new(text.to_vec()),
        name: listed.into(),
        listed: listed.into(),
    };
    let others: Vec<_> = others.iter().map(|(name, text)| input(name, text.as_bytes())).collect();
    let conversion = convert_readers(input("s.jsonl", text.as_ref()), others, options).unwrap();
    let (tree, report) =
        BranchTree::from_records(conversion.records.clone(), "records", ReadOptions::STRICT)
            .unwrap();
    (conversion, tree, report)
}

fn strict(text: impl AsRef<[u8]>) -> (Conversion, BranchTree, Report) {
    read(text, &[], ReadOptions::STRICT)
}

fn seen(tree: &BranchTree) -> Vec<String> {
    let shown = tree.generations().map(|generation| {
        let spans = tree.spans(generation.context).unwrap();
        let keys = spans
            .iter()
            .map(|span| tree.segment(span.segment).unwrap().source.as_ref().unwrap().key.as_str());
        keys.collect::<Vec<_>>().join(" ")
    });
    shown.collect()
}

fn codes(report: &Report) -> Vec<String> {
    report
        .diagnostics
        .iter()
        .map(|found| format!("{}: {}", found.location.line, found.fault.code()))
        .collect()
}

fn kept(uuids: &[&str]) -> String {
    format!(r#","preservedMessages":{{"anchorUuid":"s","uuids":{uuids:?}}}"#)
}

#[test]
fn a_result_whose_call_a_compaction_took_is_sent_and_is_a_warning() {
    let text = lines([
        user("u", "", "hi"),
        calls("a", "u", "m1", "c"),
        result("r", "a", "c"),
        boundary("x", r#""r""#, &kept(&["r"])),
        summary("s", "x"),
        says("b", "s", "m2"),
    ]);
    let (_, tree, report) = strict(text);
    assert_eq!(seen(&tree)[1], "s c");
    assert_eq!(
        report.diagnostics.iter().map(|found| found.fault.code()).collect::<Vec<_>>(),
        ["orphan-result"]
    );
}

#[test]
fn a_pair_that_is_torn_over_two_compactions_inside_a_parallel_batch_is_a_warning_for_the_half_that_is_left()
 {
    let start = lines([
        user("u", "", "hi"),
        calls("a", "u", "m1", "c"),
        calls("b", "a", "m1", "d"),
        result("r", "a", "c"),
        result("q", "b", "d"),
    ]);
    let first = lines([
        boundary("x", r#""q""#, &kept(&["a", "b", "r", "q"])),
        summary("s", "x"),
        says("e", "s", "m2"),
    ]);
    let second = lines([
        boundary("y", r#""e""#, r#","preservedMessages":{"anchorUuid":"t","uuids":["r","q"]}"#),
        summary("t", "y"),
        says("f", "t", "m3"),
    ]);
    let (_, tree, report) = strict(start + &first + &second);
    assert_eq!(seen(&tree), ["u", "s m1 m1 c d", "t c d"]);
    assert_eq!(
        report.diagnostics.iter().map(|found| found.fault.code()).collect::<Vec<_>>(),
        ["orphan-result", "orphan-result"]
    );
}

#[test]
fn a_summary_is_evicted_by_the_next_compaction() {
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        boundary("x", r#""a""#, ""),
        summary("s", "x"),
        user("v", "s", "on"),
        says("b", "v", "m2"),
    ]) + &lines([boundary("y", r#""b""#, ""), summary("t", "y"), says("c", "t", "m3")]);
    let (_, tree, _) = strict(text);
    assert_eq!(seen(&tree), ["u", "s v", "t"]);
}

#[test]
fn a_compaction_that_removes_nothing_is_a_list_with_the_summary_before_it() {
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        boundary("x", r#""a""#, &kept(&["u", "a"])),
        summary("s", "x"),
        says("b", "s", "m2"),
    ]);
    let (_, tree, _) = strict(text);
    assert_eq!(seen(&tree)[1], "s u m1");
    let evicts = tree
        .contexts()
        .filter(|context| {
            matches!(tree.operation(context.id().unwrap()), Some(Operation::Evict(_)))
        })
        .count();
    assert_eq!(evicts, 0);
}

#[test]
fn a_summariser_that_failed_wrote_nothing_and_changes_nothing() {
    let failed = r#"{"type":"assistant","uuid":"z","parentUuid":"y","isApiErrorMessage":true,"message":{"id":"m9","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}"#;
    let agent = lines([user("y", "a", "Summarise."), failed.into()]);
    let text = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        user("v", "a", "on"),
        says("b", "v", "m2"),
    ]);
    let (_, tree, _) =
        read(text, &[("s/subagents/agent-acompact-1.jsonl", agent)], ReadOptions::STRICT);
    assert_eq!(seen(&tree), ["u", "u m1 v"]);
}

#[test]
fn nul_blocks_in_the_middle_and_at_the_tail_are_dropped() {
    let sound = lines([user("u", "", "hi"), says("a", "u", "m1")]);
    let text = sound.replacen('\n', &format!("\n{}", "\0".repeat(4096)), 1) + &"\0".repeat(4096);
    let (conversion, tree, _) = read(&text, &[], ReadOptions::LENIENT);
    assert_eq!(codes(&conversion.report), ["2: nul-bytes", "3: nul-bytes"]);
    assert_eq!(seen(&tree), ["u"]);
}

#[test]
fn a_raw_line_separator_is_text_and_a_byte_order_mark_is_stripped() {
    let text =
        format!("\u{feff}{}", lines([user("u", "", "a\u{2028}b\u{85}c"), says("a", "u", "m1")]));
    let (conversion, tree, _) = strict(text);
    assert_eq!(conversion.report.of(Severity::Repaired).count(), 1);
    let span = tree.spans(tree.generations().next().unwrap().context).unwrap()[0];
    assert_eq!(tree.segment(span.segment).unwrap().text.as_deref(), Some("a\u{2028}b\u{85}c"));
}

#[test]
fn a_line_of_a_hundred_megabytes_is_read_and_one_over_the_limit_is_left_out() {
    let long = "x".repeat(100 << 20);
    let text = lines([user("u", "", "hi"), user("v", "u", &long), says("a", "v", "m1")]);
    let (_, tree, _) = strict(&text);
    assert_eq!(seen(&tree), ["u v"]);
    let limited = ReadOptions { max_line_bytes: 1 << 20, ..ReadOptions::LENIENT };
    let (conversion, tree, _) = read(&text, &[], limited);
    assert_eq!(codes(&conversion.report), ["2: line-too-long", "3: harness"]);
    assert_eq!(seen(&tree), ["u"]);
}

#[test]
fn unknown_types_and_subtypes_stand_in_no_context() {
    let odd = |rest: &str| format!(r#"{{"uuid":"o","parentUuid":"u",{rest}}}"#);
    let text = lines([
        user("u", "", "hi"),
        odd(r#""type":"system","subtype":"new_subtype","content":"x""#),
        says("a", "o", "m1"),
        r#"{"type":"new_type","x":[1]}"#.into(),
    ]);
    let (conversion, tree, _) = strict(text);
    assert_eq!(seen(&tree), ["u"]);
    assert_eq!(codes(&conversion.report), ["2: harness", "4: harness"]);
    let found: Vec<String> =
        conversion.report.diagnostics.iter().map(|found| found.fault.to_string()).collect();
    assert!(
        found[0].starts_with(r#"unknown-line-type: type "system/new_subtype" is not known"#),
        "{}",
        found[0]
    );
    assert!(
        found[1].starts_with(r#"unknown-line-type: type "new_type" is not known"#),
        "{}",
        found[1]
    );
}

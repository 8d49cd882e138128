//! Damaged and tangled logs of requests and tokens: what strict reading says of each, and what
//! lenient reading makes of it.

use crate::told::{convert_text, found, rejected, told, told_of, tree};
use pleach_harness::{Harness, HarnessError, Input, ReadOptions, convert_from};
use pleach_tree::{BranchTree, Fidelity, Record};
use serde_json::json;

fn exchange(id: &str, given: &[(&str, &str)], said: &str) -> String {
    let messages: Vec<_> =
        given.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    let answer =
        json!({"id": id, "choices": [{"message": {"role": "assistant", "content": said}}]});
    json!({"request": {"model": "m", "messages": messages}, "response": answer}).to_string()
}

const ASKED: [(&str, &str); 2] = [("system", "be brief"), ("user", "mend the build")];

fn grown(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    ASKED.iter().chain(more).copied().collect()
}

fn first() -> String {
    exchange("1", &ASKED, "one")
}

fn second() -> String {
    exchange("2", &grown(&[("assistant", "one"), ("user", "two")]), "three")
}

/// What is found in a log, under strict and under lenient reading.
fn faults(log: &[u8]) -> String {
    let input = Input::memory("log.jsonl", log.to_vec(), []);
    let strict = match convert_from(&input, Some(Harness::Requests), ReadOptions::STRICT) {
        Err(HarnessError::Rejected(report)) => found(&report),
        Ok(conversion) => found(&conversion.report),
        Err(other) => panic!("{other}"),
    };
    let lenient = convert_from(&input, Some(Harness::Requests), ReadOptions::LENIENT).unwrap();
    let calls = tree(&lenient).generations().len();
    [strict, vec![format!("lenient: {calls} calls")], found(&lenient.report)].concat().join("\n")
}

#[test]
fn nul_blocks_glued_records_and_a_cut_last_line_are_told_apart() {
    let nul = "\0".repeat(64);
    insta::assert_snapshot!(
        "nul_middle",
        faults(format!("{}\n{nul}{}\n", first(), second()).as_bytes())
    );
    insta::assert_snapshot!(
        "nul_tail",
        faults(format!("{}\n{}\n{nul}", first(), second()).as_bytes())
    );
    insta::assert_snapshot!("glued", faults(format!("{}{}\n", first(), second()).as_bytes()));
    let whole = format!("{}\n{}", first(), second());
    insta::assert_snapshot!("cut", faults(&whole.as_bytes()[..whole.len() - 9]));
}

#[test]
fn a_byte_order_mark_lone_surrogates_and_bytes_that_are_no_text_are_mended() {
    insta::assert_snapshot!("mark", faults(format!("\u{feff}{}\n", first()).as_bytes()));
    insta::assert_snapshot!("surrogate", faults(first().replace("mend", "m\\ud83dend").as_bytes()));
    let mut bytes = first().into_bytes();
    let at = bytes.windows(4).position(|window| window == b"mend").unwrap();
    bytes[at] = 0xff;
    insta::assert_snapshot!("bytes", faults(&bytes));
}

#[test]
fn a_raw_line_separator_inside_a_text_is_text() {
    let log = first().replace("mend", "m\u{2028}end");
    let conversion = convert_text(&log, None, ReadOptions::STRICT).unwrap();
    assert!(told_of(&conversion).contains("m\u{2028}end"));
    assert!(conversion.report.diagnostics.is_empty());
}

#[test]
fn a_line_of_a_hundred_megabytes_is_read_and_one_over_the_limit_is_a_fault() {
    let long = "x".repeat(100 << 20);
    let log = format!("{}\n{}\n", first(), exchange("2", &[("user", &long)], "long"));
    let conversion = convert_text(&log, Some(Harness::Requests), ReadOptions::STRICT).unwrap();
    assert_eq!(tree(&conversion).generations().len(), 2);
    let limited = ReadOptions { max_line_bytes: 1 << 20, ..ReadOptions::LENIENT };
    let conversion = convert_text(&log, Some(Harness::Requests), limited).unwrap();
    assert_eq!(tree(&conversion).generations().len(), 1);
    assert!(found(&conversion.report)[0].starts_with("log.jsonl:2: repaired[line-too-long]"));
}

#[test]
fn a_result_whose_call_was_compacted_away_is_sent_so_and_said_so() {
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a", "function": {"name": "run", "arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "error 1"});
    let said = json!({"role": "assistant", "content": "it fails"});
    let (system, user) = (
        json!({"role": "system", "content": "be brief"}),
        json!({"role": "user", "content": "mend the build"}),
    );
    let line = |id: &str, messages: serde_json::Value, said: &serde_json::Value| {
        json!({"request": {"model": "m", "messages": messages}, "response": {"id": id, "choices": [{"message": said}]}})
            .to_string()
    };
    let log = [
        line("1", json!([system, user, call, result]), &said),
        line("2", json!([system, user, result, said, user]), &said),
    ];
    let conversion = convert_text(&log.join("\n"), None, ReadOptions::STRICT).unwrap();
    let (_, report) =
        BranchTree::from_records(conversion.records.clone(), "records", ReadOptions::STRICT)
            .unwrap();
    insta::assert_snapshot!(format!("{}\n{}", told_of(&conversion), found(&report).join("\n")));
}

#[test]
fn nested_summaries_and_rewinds_around_compactions_keep_their_views() {
    let summary = ("user", "So far: the first try of the build failed.");
    let again = ("user", "So far: both tries of the build failed.");
    let compacted = [("system", "be brief"), summary, ("user", "go on")];
    let on = [&compacted[..], &[("assistant", "going"), ("user", "Summarise.")]].concat();
    let twice = [("system", "be brief"), again, ("user", "more")];
    let rewound = [&compacted[..], &[("assistant", "going"), ("user", "less")]].concat();
    let before = grown(&[("assistant", "one"), ("user", "another two")]);
    let asked = grown(&[
        ("assistant", "one"),
        ("user", "two"),
        ("assistant", "three"),
        ("user", "Summarise."),
    ]);
    let log = [
        first(),
        second(),
        exchange("3", &asked, "the first try of the build failed."),
        exchange("4", &compacted, "going"),
        exchange("5", &on, "both tries of the build failed."),
        exchange("6", &twice, "summarised twice"),
        exchange("7", &rewound, "rewound to behind the first compaction"),
        exchange("8", &before, "rewound to before it"),
    ];
    insta::assert_snapshot!(told(&log.join("\n"), Harness::Requests));
}

#[test]
fn two_processes_on_one_log_are_two_threads() {
    let other = |id: &str, more: &[(&str, &str)], said: &str| {
        let given: Vec<_> = [("system", "be brief"), ("user", "write the tests")]
            .iter()
            .chain(more)
            .copied()
            .collect();
        exchange(id, &given, said)
    };
    let log = [
        first(),
        other("b1", &[], "b one"),
        second(),
        other("b2", &[("assistant", "b one"), ("user", "b two")], "b three"),
    ];
    insta::assert_snapshot!(told(&log.join("\n"), Harness::Requests));
}

#[test]
fn a_log_that_is_appended_again_trains_nothing_twice() {
    let third =
        grown(&[("assistant", "one"), ("user", "two"), ("assistant", "three"), ("user", "four")]);
    let log = [first(), second(), first(), second(), exchange("3", &third, "five")];
    let conversion = convert_text(&log.join("\n"), None, ReadOptions::STRICT).unwrap();
    assert_eq!(tree(&conversion).generations().len(), 3);
    let repeated = conversion
        .report
        .diagnostics
        .iter()
        .filter(|found| found.to_string().contains("repeated-call"));
    assert_eq!(repeated.map(|found| found.location.line).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn token_ids_in_a_cut_file_are_read_up_to_the_cut() {
    let line = |prompt: &str| {
        format!("{{\"rollout_id\":\"q\",\"prompt_ids\":[{prompt}],\"completion_ids\":[9]}}\n")
    };
    let log = line("1,2") + &line("1,2,9,3")[..20];
    assert!(rejected(&log, Harness::Rl).contains("log.jsonl:2: error[truncated-line]"));
    let conversion = convert_text(&log, None, ReadOptions::LENIENT).unwrap();
    assert_eq!(tree(&conversion).generations().len(), 1);
    let Record::Header(header) = &conversion.records[0] else { panic!("a header stands first") };
    assert_eq!(header.fidelity, Fidelity::Inferred, "what was cut off may have been a call");
}

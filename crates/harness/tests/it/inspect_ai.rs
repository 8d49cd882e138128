//! What a log of inspect_ai becomes: whole prompts as ranges over a pool, compactions that the log
//! names, samples as rollouts.

use std::io::Write;
use std::path::Path;

use crate::shown::{faults, told};
use pleach_harness::{HarnessError, Input, ReadOptions, convert_from};
use pleach_tree::{BranchTree, ByKind, Operation, Record, ReplacementKind};

/// An archive with these entries: name, method, and text.
fn archive(entries: &[(&str, u16, &str)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, method, text) in entries {
        let packed = match method {
            0 => text.as_bytes().to_vec(),
            8 => {
                let mut encoder =
                    flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(text.as_bytes()).unwrap();
                encoder.finish().unwrap()
            }
            _ => zstd::encode_all(text.as_bytes(), 1).unwrap(),
        };
        let offset = u32::try_from(out.len()).unwrap();
        let mut fields = vec![20, 0, 0, 0];
        fields.extend(method.to_le_bytes());
        fields.extend([0; 8]);
        fields.extend(u32::try_from(packed.len()).unwrap().to_le_bytes());
        fields.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        fields.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        fields.extend([0; 2]);
        out.extend(b"PK\x03\x04");
        out.extend(&fields);
        out.extend(name.as_bytes());
        out.extend(packed);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&fields);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (start, size) =
        (u32::try_from(out.len()).unwrap(), u32::try_from(directory.len()).unwrap());
    let count = u16::try_from(entries.len()).unwrap();
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0; 2]);
    out
}

const HEADER: &str = r#"{"version":2,"eval":{"packages":{"inspect_ai":"0.3.285"}}}"#;

fn message(id: &str, role: &str, text: &str) -> String {
    let source = if role == "user" { r#","source":"input""# } else { "" };
    format!(r#"{{"id":"{id}","role":"{role}","content":"{text}"{source}}}"#)
}

fn calls(id: &str, call: &str) -> String {
    format!(
        r#"{{"id":"{id}","role":"assistant","content":"look","tool_calls":[{{"id":"{call}","function":"bash","arguments":{{"cmd":"ls"}},"type":"function"}}]}}"#
    )
}

fn result(id: &str, call: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","role":"tool","content":"{text}","tool_call_id":"{call}"}}"#)
}

fn model(span: &str, refs: &str, output: &str) -> String {
    format!(
        r#"{{"event":"model","span_id":"{span}","uuid":"e","model":"m/x","input":[],"input_refs":{refs},"output":{{"choices":[{{"message":{output}}}]}}}}"#
    )
}

fn compaction(kind: &str, strategy: &str) -> String {
    format!(
        r#"{{"event":"compaction","span_id":"a","type":"{kind}","source":"inspect","metadata":{{"strategy":"{strategy}","trigger":"threshold"}}}}"#
    )
}

fn sample(pool: &[String], events: &[String], rest: &str) -> String {
    format!(
        r#"{{"id":"q","epoch":1,"events_data":{{"messages":[{}]}},"events":[{}]{rest}}}"#,
        pool.join(","),
        events.join(",")
    )
}

fn log(sample: &str) -> Vec<u8> {
    archive(&[("_journal/start.json", 8, HEADER), ("samples/q_epoch_1.json", 93, sample)])
}

fn strict(sample: &str) -> String {
    told("log.eval", &log(sample), &[], ReadOptions::STRICT)
}

fn pool() -> Vec<String> {
    vec![
        message("s", "system", "be good"),
        message("u", "user", "go"),
        calls("a1", "c1"),
        result("t1", "c1", "out one"),
        calls("a2", "c2"),
        result("t2", "c2", "out two"),
    ]
}

#[test]
fn a_trim_is_by_the_rule_that_the_event_names() {
    let events = [
        model("a", "[[0,2]]", &calls("a1", "c1")),
        model("a", "[[0,4]]", &calls("a2", "c2")),
        compaction("trim", "CompactionTrim"),
        model("a", "[[0,2],[4,6]]", &message("a3", "assistant", "done")),
    ];
    let score = r#","scores":{"exact":{"value":"C"}}"#;
    insta::assert_snapshot!(strict(&sample(&pool(), &events, score)));
}

#[test]
fn an_edit_puts_placeholders_for_results() {
    let mut pool = pool();
    pool.push(result("t1b", "c1", "(removed)"));
    let events = [
        model("a", "[[0,2]]", &calls("a1", "c1")),
        model("a", "[[0,4]]", &calls("a2", "c2")),
        compaction("edit", "CompactionEdit"),
        model("a", "[[0,3],[6,7],[4,6]]", &message("a3", "assistant", "done")),
    ];
    insta::assert_snapshot!(strict(&sample(&pool, &events, "")));
}

#[test]
fn a_summary_is_by_the_call_before_its_event_whose_words_it_quotes() {
    let mut pool = pool();
    pool.push(message("ask", "user", "Summarise it."));
    pool.push(
        r#"{"id":"sum","role":"user","content":"attachment://0123456789abcdef0123456789abcdef","metadata":{"summary":true}}"#
            .into(),
    );
    let events = [
        r#"{"event":"span_begin","id":"a","type":"agent","name":"react"}"#.into(),
        model("a", "[[0,2]]", &calls("a1", "c1")),
        model("a", "[[0,4]]", &calls("a2", "c2")),
        model("a", "[[0,7]]", &message("x", "assistant", "listed twice")),
        compaction("summary", "CompactionSummary"),
        model("a", "[[0,2],[7,8]]", &message("a3", "assistant", "done")),
    ];
    let kept =
        r#","attachments":{"0123456789abcdef0123456789abcdef":"[SUMMARY]\nlisted twice\n[END]"}"#;
    insta::assert_snapshot!(strict(&sample(&pool, &events, kept)));
}

#[test]
fn a_call_that_goes_back_forks_and_a_span_of_its_own_is_a_thread_of_its_own() {
    let mut pool = pool();
    pool.push(message("other", "user", "judge"));
    let failed = r#"{"event":"model","span_id":"a","error":"overloaded","input":[],"input_refs":[[0,4]],"output":{"choices":[]}}"#;
    let events = [
        r#"{"event":"span_begin","id":"b","type":"agent","name":"judge"}"#.into(),
        model("a", "[[0,2]]", &calls("a1", "c1")),
        failed.into(),
        model("a", "[[0,4]]", &calls("a2", "c2")),
        model("b", "[[6,7]]", &message("j", "assistant", "fine")),
        model("a", "[[0,4]]", &message("a3", "assistant", "instead")),
    ];
    insta::assert_snapshot!(strict(&sample(&pool, &events, "")));
}

#[test]
fn references_and_attachments_that_are_not_there_are_faults() {
    let mut pool = pool();
    pool[1] = message("u", "user", "attachment://00000000000000000000000000000000");
    let text = sample(&pool, &[model("a", "[[0,2],[8,9]]", &message("a1", "assistant", "x"))], "");
    let name = "log.eval/samples/q_epoch_1.json";
    assert_eq!(
        faults("log.eval", &log(&text)),
        [
            format!(
                "{name}:1: events.input_refs: reference-outside: messages 8 to 9 are not all in the pool of 6; they are left out"
            ),
            format!(
                "{name}:1: attachments: missing-attachment: the attachment 00000000000000000000000000000000 is not in the sample; its mark stands for it"
            ),
        ]
    );
}

#[test]
fn an_entry_over_the_limit_or_of_an_unknown_method_is_left_out() {
    let text = sample(&pool(), &[model("a", "[[0,2]]", &calls("a1", "c1"))], "");
    let bytes = archive(&[
        ("samples/q_epoch_1.json", 93, &text),
        ("samples/q_epoch_2.json", 93, &" ".repeat(1 << 20)),
    ]);
    let small = ReadOptions { max_line_bytes: 1 << 16, ..ReadOptions::STRICT };
    let Err(HarnessError::Rejected(report)) =
        convert_from(&Input::memory("log.eval", bytes, []), None, small)
    else {
        panic!("must be rejected")
    };
    assert_eq!(report.diagnostics[0].location.to_string(), "log.eval:1: samples/q_epoch_2.json");
    assert_eq!(report.diagnostics[0].fault.code(), "line-too-long");
    let odd = archive(&[("samples/q_epoch_1.json", 14, &text)]);
    assert!(
        faults("log.eval", &odd)[0].contains("unknown-compression"),
        "{:?}",
        faults("log.eval", &odd)
    );
}

#[test]
fn an_archive_that_breaks_off_says_so() {
    let mut bytes = log(&sample(&pool(), &[], ""));
    bytes.truncate(bytes.len() - 30);
    let error = convert_from(&Input::memory("log.eval", bytes, []), None, ReadOptions::LENIENT)
        .unwrap_err();
    assert!(error.to_string().starts_with("log.eval: the archive is cut off behind"), "{error}");
}

#[test]
fn events_that_are_no_calls_keep_what_they_like_under_the_keys_of_calls() {
    let odd = [
        r#"{"event":"sandbox","span_id":"a","action":"exec","cmd":"ls","output":"one\n"}"#,
        r#"{"event":"tool","id":7,"input":"x","output":3,"pending":"no","input_refs":"none"}"#,
        r#"{"event":"info","source":{"a":1},"metadata":[],"name":["x"],"role":5}"#,
    ];
    let events = odd.map(str::to_owned).into_iter().chain([model(
        "a",
        "[[0,2]]",
        &message("a1", "assistant", "done"),
    )]);
    let shown = strict(&sample(&pool(), &events.collect::<Vec<_>>(), ""));
    assert!(shown.contains("Policy Content \"done\"") && !shown.contains("warning"), "{shown}");
    let call = r#"{"event":"model","span_id":"a","input":[],"output":"text"}"#.to_owned();
    let found = faults("log.eval", &log(&sample(&pool(), &[call], "")));
    assert!(found[0].contains("events[0].output: odd-field: invalid type: string"), "{found:?}");
}

#[test]
fn calls_of_scorers_and_of_models_in_another_role_are_no_generations() {
    let span = |id: &str, parent: &str, sort: &str| {
        format!(
            r#"{{"event":"span_begin","id":"{id}","parent_id":{parent},"type":"{sort}","name":"{sort}"}}"#
        )
    };
    let said = |id: &str| message(id, "assistant", id);
    let other = model("a", "[[0,2]]", &said("other")).replacen('{', r#"{"role":"grader","#, 1);
    let events = [
        span("a", "null", "solver"),
        span("b", "null", "scorers"),
        span("c", r#""b""#, "agent"),
        model("a", "[[0,2]]", &said("own")),
        other,
        model("b", "[[1,2]]", &said("grade")),
        model("c", "[[1,2]]", &said("inside")),
    ];
    let shown = strict(&sample(&pool(), &events, ""));
    assert!(shown.contains("Policy Content \"own\""), "{shown}");
    assert_eq!(shown.matches("generation").count(), 1, "{shown}");
    assert!(shown.contains("other-calls: calls (3) are a scorer's"), "{shown}");
}

fn shared(name: &str) -> Option<(Vec<Record>, BranchTree)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/transcripts/inspect-ai")
        .join(name);
    if !path.exists() {
        eprintln!("skipped: {name} is not there");
        return None;
    }
    let conversion = convert_from(&Input::open(&path).unwrap(), None, ReadOptions::STRICT).unwrap();
    let (tree, _) =
        BranchTree::from_records(conversion.records.clone(), "records", ReadOptions::STRICT)
            .unwrap();
    Some((conversion.records, tree))
}

fn evictions(tree: &BranchTree) -> Vec<(ReplacementKind, ByKind)> {
    let kind = |context: &pleach_tree::Context| match tree.operation(context.id()?)? {
        Operation::Evict(evict) => Some((
            evict.replacement.as_ref().map_or(ReplacementKind::None, |put| put.kind),
            evict.by.as_ref()?.kind,
        )),
        _ => None,
    };
    tree.contexts().filter_map(kind).collect()
}

#[test]
fn the_shared_logs_hold_eight_trims_four_edits_and_three_summaries() {
    let expected = [
        ("trim.eval", vec![(ReplacementKind::None, ByKind::Rule); 8], 11),
        ("edit.eval", vec![(ReplacementKind::Placeholder, ByKind::Rule); 4], 11),
        ("summary.eval", vec![(ReplacementKind::Summary, ByKind::Policy); 3], 14),
    ];
    for (name, operations, calls) in expected {
        let Some((_, tree)) = shared(name) else { return };
        assert_eq!(evictions(&tree), operations, "{name}");
        assert_eq!(tree.generations().count(), calls, "{name}");
    }
}

//! Lines that are JSON but no record, that are no JSON, and what surrounds them.
use insta::assert_snapshot;
use pleach_tree::{BranchTree, ReadOptions, SegmentId};

use super::{lenient, said, story, strict};

fn limited(bytes: &[u8], options: ReadOptions) -> String {
    said(bytes, ReadOptions { max_line_bytes: 80, ..options })
}

#[test]
fn a_line_over_the_limit_is_left_out() {
    let file = story(&format!(
        "{{\"t\":\"note\",\"text\":\"{}\"}}\n{{\"t\":\"append\",\"context\":2,\"from\":1,\"segments\":[]}}\n",
        "x".repeat(80)
    ));
    assert_snapshot!(limited(&file, ReadOptions::STRICT), @"f.jsonl:8: error[line-too-long]: the line is longer than the limit of 80 bytes; raise max_line_bytes, or cut the line");
    assert_snapshot!(limited(&file, ReadOptions::LENIENT), @"
    f.jsonl:8: repaired[line-too-long]: the line is longer than the limit of 80 bytes; left the line out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_raw_line_separator_in_a_string_is_text() {
    let file = story(
        "{\"t\":\"segment\",\"id\":3,\"role\":\"tool\",\"origin\":\"environment\",\"text\":\"a\u{2028}b\u{2029}c\"}\n",
    );
    let (tree, report) = BranchTree::read(file.as_slice(), "f.jsonl", ReadOptions::STRICT).unwrap();
    assert_eq!(report.diagnostics, []);
    assert_eq!(tree.segment(SegmentId(3)).unwrap().text.as_deref(), Some("a\u{2028}b\u{2029}c"));
}

#[test]
fn a_folder_in_place_of_a_file_and_a_path_without_one_are_named() {
    let open = |path: &str| BranchTree::open(path, ReadOptions::STRICT).unwrap_err().to_string();
    assert_snapshot!(open("src"), @"src: cannot be read: Is a directory (os error 21); check that the path exists and is a readable file");
    assert_snapshot!(open("no-such-file.jsonl"), @"no-such-file.jsonl: cannot be read: No such file or directory (os error 2); check that the path exists and is a readable file");
}

#[test]
fn a_forgotten_from_is_an_error_and_not_null() {
    let file = story(
        r#"{"t":"append","context":2,"segments":[]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: from: error[field]: missing field `from`; write the field as the record format describes it");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: from: repaired[field]: missing field `from`; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_missing_key_inside_a_record_is_named_with_its_path() {
    let file = story(
        r#"{"t":"evict","context":2,"from":1,"evicted":[{"segment":1},{"tokens":[0,1]}]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: evicted[1].segment: error[field]: missing field `segment`; write the field as the record format describes it");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: evicted[1].segment: repaired[field]: missing field `segment`; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_wrong_type_is_named_with_its_path() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"tool","origin":"environment","tokens":[1,"2"]}
"#,
    );
    assert_snapshot!(strict(&file), @r#"f.jsonl:8: tokens[1]: error[field]: invalid type: string "2", expected u32; write the field as the record format describes it"#);
    assert_snapshot!(lenient(&file), @r#"
    f.jsonl:8: tokens[1]: repaired[field]: invalid type: string "2", expected u32; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

#[test]
fn a_wrong_type_is_named_with_its_path_where_the_tag_comes_last() {
    let file = story(
        r#"{"id":3,"role":"tool","origin":"environment","tokens":[1,-2],"t":"segment"}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: tokens[1]: error[field]: invalid value: integer `-2`, expected u32; write the field as the record format describes it");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: tokens[1]: repaired[field]: invalid value: integer `-2`, expected u32; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn an_unknown_word_is_named_with_those_that_are_known() {
    let file = story(
        r#"{"t":"evict","context":2,"from":1,"evicted":[],"replacement":{"kind":"summary","segments":[],"place":"top"}}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: replacement.place: error[field]: unknown variant `top`, expected one of `head`, `in_place`, `before_first`, `after_kept`, `index`; write the field as the record format describes it");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: replacement.place: repaired[field]: unknown variant `top`, expected one of `head`, `in_place`, `before_first`, `after_kept`, `index`; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_number_beyond_its_type_is_named() {
    let file = story(
        r#"{"t":"append","context":4294967296,"from":1,"segments":[]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: context: error[field]: invalid value: integer `4294967296`, expected u32; write the field as the record format describes it");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: context: repaired[field]: invalid value: integer `4294967296`, expected u32; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_line_without_a_tag_is_named() {
    let file = story(
        r#"{"context":2,"from":1,"segments":[]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: t: error[field]: missing field `t`; write the field as the record format describes it");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: t: repaired[field]: missing field `t`; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_line_that_is_no_object_is_named() {
    let file = story(
        r#"[1,2]
"#,
    );
    assert_snapshot!(strict(&file), @r#"f.jsonl:8: error[field]: invalid type: sequence, expected a record, which is a JSON object with a tag "t"; write the field as the record format describes it"#);
    assert_snapshot!(lenient(&file), @r#"
    f.jsonl:8: repaired[field]: invalid type: sequence, expected a record, which is a JSON object with a tag "t"; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

#[test]
fn a_key_that_stands_twice_is_named() {
    let file = story(
        r#"{"t":"append","context":2,"context":3,"from":1,"segments":[]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: context: error[field]: duplicate field `context`; write the field as the record format describes it");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: context: repaired[field]: duplicate field `context`; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_tag_that_stands_twice_is_named() {
    let file = story(
        r#"{"t":"append","context":2,"from":1,"segments":[],"t":"note"}
{"t":"note","t":5}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: t: error[field]: duplicate field `t`; write the field as the record format describes it
    f.jsonl:9: t: error[field]: duplicate field `t`; write the field as the record format describes it
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: t: repaired[field]: duplicate field `t`; left the record out
    f.jsonl:9: t: repaired[field]: duplicate field `t`; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_line_that_is_not_json_is_named_with_the_byte() {
    let file = story(
        r#"{"t":"append" "context":2}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: error[json]: the line is not JSON: expected `,` or `}` at byte 15; mend the line, or read with ReadOptions::LENIENT");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: repaired[json]: the line is not JSON: expected `,` or `}` at byte 15; left the line out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn every_fault_of_a_file_is_listed() {
    let file = story(
        r#"{"t":"append","context":2,"segments":[]}
{"t":"append","context":3,"from":9,"segments":[77]}
nonsense
{"t":"fork","context":1,"from":1,"reason":"why"}
{"t":"generation","id":1,"context":1,"output":[78,79]}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: from: error[field]: missing field `from`; write the field as the record format describes it
    f.jsonl:9: from: error[missing-context]: context 9 is not defined above; a line may only refer to what stands above it: add or move the context's record
    f.jsonl:10: error[json]: the line is not JSON: expected ident at byte 2; mend the line, or read with ReadOptions::LENIENT
    f.jsonl:11: reason: error[field]: unknown variant `why`, expected one of `rewind`, `retry`, `subagent`, `summarizer`, `resume`; write the field as the record format describes it
    f.jsonl:12: output[0]: error[missing-segment]: segment 78 is not defined above; a line may only refer to what stands above it: add or move the segment's record
    f.jsonl:12: output[1]: error[missing-segment]: segment 79 is not defined above; a line may only refer to what stands above it: add or move the segment's record
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: from: repaired[field]: missing field `from`; left the record out
    f.jsonl:9: from: repaired[missing-context]: context 9 is not defined above; left the record out
    f.jsonl:10: repaired[json]: the line is not JSON: expected ident at byte 2; left the line out
    f.jsonl:11: reason: repaired[field]: unknown variant `why`, expected one of `rewind`, `retry`, `subagent`, `summarizer`, `resume`; left the record out
    f.jsonl:12: output[0]: repaired[missing-segment]: segment 78 is not defined above; went on without it
    f.jsonl:12: output[1]: repaired[missing-segment]: segment 79 is not defined above; went on without it
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/main:
    ");
}

#[test]
fn numbers_as_python_writes_them_are_named_at_their_key_and_the_tokens_kept() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[4,5],"logprobs":[-0.5,NaN],"x_note":"NaN"}
{"t":"generation","id":1,"context":1,"output":[3]}
{"t":"outcome","rollout":"r0","group":"g","reward":-Infinity,"status":"finished"}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: logprobs[1]: error[no-number]: NaN is no number that JSON has (1 in this list or object); write null or leave it out, as Python's json.dumps with allow_nan=False asks for, or read with ReadOptions::LENIENT
    f.jsonl:8: logprobs[1]: error[logprob]: log-probability NaN of token 1 is above 0 or not finite; give natural logarithms of probabilities
    f.jsonl:10: reward: error[no-number]: -Infinity is no number that JSON has (1 in this list or object); write null or leave it out, as Python's json.dumps with allow_nan=False asks for, or read with ReadOptions::LENIENT
    f.jsonl:10: reward: error[field]: invalid type: null, expected f64; write the field as the record format describes it
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: logprobs[1]: repaired[no-number]: NaN is no number that JSON has (1 in this list or object); read null for each
    f.jsonl:8: logprobs[1]: repaired[logprob]: log-probability NaN of token 1 is above 0 or not finite; dropped the log-probabilities
    f.jsonl:10: reward: repaired[no-number]: -Infinity is no number that JSON has (1 in this list or object); read null for each
    f.jsonl:10: reward: repaired[field]: invalid type: null, expected f64; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/main: 4:1 5:1
    ");
}

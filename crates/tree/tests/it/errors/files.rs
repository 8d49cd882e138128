//! Files that are no eviction records, or not as they should begin and end.
use insta::assert_snapshot;
use pleach_tree::{BranchTree, ReadOptions};

use super::{STORY, lenient, story, strict};

#[test]
fn an_unsupported_version_is_named() {
    let file = STORY.replacen("\"version\":1", "\"version\":2", 1);
    assert_snapshot!(strict(&file), @"f.jsonl:1: version: error[unsupported-version]: the records are of version 2, this program reads version 1; convert them with a version of pleach that reads both");
    assert_snapshot!(lenient(&file), @"f.jsonl:1: version: error[unsupported-version]: the records are of version 2, this program reads version 1; convert them with a version of pleach that reads both");
}

#[test]
fn a_gzip_file_is_named() {
    let file = b"\x1f\x8b\x08\0\0\0\0\0";
    assert_snapshot!(strict(file), @"f.jsonl:1: error[unknown-compression]: the file is compressed (gzip), which is not read here; decompress it first");
    assert_snapshot!(lenient(file), @"f.jsonl:1: error[unknown-compression]: the file is compressed (gzip), which is not read here; decompress it first");
}

#[test]
fn a_zstd_file_is_named() {
    let file = b"\x28\xb5\x2f\xfd\x04\x58\n\n";
    assert_snapshot!(strict(file), @"f.jsonl:1: error[unknown-compression]: the file is compressed (zstd), which is not read here; decompress it first");
    assert_snapshot!(lenient(file), @"f.jsonl:1: error[unknown-compression]: the file is compressed (zstd), which is not read here; decompress it first");
}

#[test]
fn a_bzip2_file_is_named() {
    let file = b"BZh91AY&SY";
    assert_snapshot!(strict(file), @"f.jsonl:1: error[unknown-compression]: the file is compressed (bzip2), which is not read here; decompress it first");
    assert_snapshot!(lenient(file), @"f.jsonl:1: error[unknown-compression]: the file is compressed (bzip2), which is not read here; decompress it first");
}

#[test]
fn an_xz_file_is_named() {
    let file = b"\xfd7zXZ\0";
    assert_snapshot!(strict(file), @"f.jsonl:1: error[unknown-compression]: the file is compressed (xz), which is not read here; decompress it first");
    assert_snapshot!(lenient(file), @"f.jsonl:1: error[unknown-compression]: the file is compressed (xz), which is not read here; decompress it first");
}

#[test]
fn a_file_without_a_header_says_how_to_begin() {
    let file = STORY.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>();
    assert_snapshot!(strict(&file), @r#"f.jsonl:1: error[missing-header]: the first record is not a header; begin the file with {"t":"header","version":1,...}"#);
    assert_snapshot!(lenient(&file), @r#"f.jsonl:1: error[missing-header]: the first record is not a header; begin the file with {"t":"header","version":1,...}"#);
}

#[test]
fn an_empty_file_has_no_header() {
    let file = "";
    assert_snapshot!(strict(file), @r#"f.jsonl:1: error[missing-header]: the first record is not a header; begin the file with {"t":"header","version":1,...}"#);
    assert_snapshot!(lenient(file), @r#"f.jsonl:1: error[missing-header]: the first record is not a header; begin the file with {"t":"header","version":1,...}"#);
}

#[test]
fn a_second_header_is_left_out() {
    let file = story(
        r#"{"t":"header","version":1,"harness":"other","fidelity":"message"}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: error[second-header]: a second header stands in the file; give each file one header, at its top");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: repaired[second-header]: a second header stands in the file; kept the first
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_file_without_a_last_newline_is_sound() {
    let file = STORY.trim_end();
    assert_snapshot!(strict(file), @"
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
    assert_snapshot!(lenient(file), @"
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn windows_line_ends_are_white_space() {
    let file = STORY.replace('\n', "\r\n");
    assert_snapshot!(strict(&file), @"
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
    assert_snapshot!(lenient(&file), @"
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_rejection_counts_what_stands_beside_its_faults() {
    let rejection = |unknown: usize| {
        let lines: String =
            (0..unknown).map(|at| format!("{{\"t\":\"unknown-{at}\"}}\n")).collect();
        let bytes = story(&format!("{lines}not JSON\n"));
        BranchTree::read(bytes.as_slice(), "f.jsonl", ReadOptions::STRICT).unwrap_err().to_string()
    };
    assert!(rejection(1).ends_with("\n(and 1 warning or repair)"), "{}", rejection(1));
    assert!(rejection(2).ends_with("\n(and 2 warnings or repairs)"), "{}", rejection(2));
    assert!(!rejection(0).contains("(and"), "{}", rejection(0));
}

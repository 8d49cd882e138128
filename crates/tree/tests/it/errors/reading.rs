//! Damage of a file: bytes that no writer meant.
use insta::assert_snapshot;

use super::{STORY, lenient, story, strict};

#[test]
fn a_byte_order_mark_is_stripped_in_both_modes() {
    let file = format!("\u{feff}{STORY}");
    assert_snapshot!(strict(&file), @"
    f.jsonl:1: repaired[byte-order-mark]: the file begins with a byte order mark; stripped it
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:1: repaired[byte-order-mark]: the file begins with a byte order mark; stripped it
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn nul_bytes_inside_a_line_are_dropped() {
    let file = STORY.replacen("\"harness\":", "\0\0\0\"harness\":", 1);
    assert_snapshot!(strict(&file), @"f.jsonl:1: error[nul-bytes]: the line holds NUL bytes (3); the file was cut by a crash or a full disk: restore it, or read with ReadOptions::LENIENT");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:1: repaired[nul-bytes]: the line holds NUL bytes (3); dropped them
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn nul_bytes_at_the_tail_of_a_file_are_dropped() {
    let file = story("\0\0\0\0\0\0\0\0");
    assert_snapshot!(strict(&file), @"f.jsonl:8: error[nul-bytes]: the line holds NUL bytes (8); the file was cut by a crash or a full disk: restore it, or read with ReadOptions::LENIENT");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: repaired[nul-bytes]: the line holds NUL bytes (8); dropped them
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn nul_bytes_between_two_lines_are_dropped() {
    let file = STORY.replacen("\n{\"t\":\"append\"", "\n\0\0\n{\"t\":\"append\"", 1);
    assert_snapshot!(strict(&file), @"f.jsonl:4: error[nul-bytes]: the line holds NUL bytes (2); the file was cut by a crash or a full disk: restore it, or read with ReadOptions::LENIENT");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:4: repaired[nul-bytes]: the line holds NUL bytes (2); dropped them
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_truncated_last_line_is_dropped() {
    let file = story("{\"t\":\"append\",\"context\":2,\"fr");
    assert_snapshot!(strict(&file), @"f.jsonl:8: error[truncated-line]: the last line breaks off at byte 29; the writer was stopped: delete the line, or read with ReadOptions::LENIENT");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: repaired[truncated-line]: the last line breaks off at byte 29; dropped the line
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_line_that_breaks_off_in_the_middle_of_a_file_is_not_json() {
    let file = STORY.replacen(",\"output\":[2]}", ",\"outp", 1);
    assert_snapshot!(strict(&file), @"f.jsonl:6: error[json]: the line is not JSON: EOF while parsing a string at byte 42; mend the line, or read with ReadOptions::LENIENT");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:6: repaired[json]: the line is not JSON: EOF while parsing a string at byte 42; left the line out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    ");
}

#[test]
fn two_records_on_one_line_are_taken_one_by_one() {
    let file = STORY.replacen("}\n{\"t\":\"generation\"", "}{\"t\":\"generation\"", 1);
    assert_snapshot!(strict(&file), @"f.jsonl:5: error[glued-records]: 2 records stand on one line; put each record on a line of its own, or read with ReadOptions::LENIENT");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:5: repaired[glued-records]: 2 records stand on one line; took them one by one
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn of_glued_records_each_is_checked_by_itself() {
    let file = story(
        r#"{"t":"append","context":2,"segments":[]} {"t":"append","context":3,"from":1,"segments":[]}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: error[glued-records]: 2 records stand on one line; put each record on a line of its own, or read with ReadOptions::LENIENT
    f.jsonl:8: from: error[field]: missing field `from`; write the field as the record format describes it
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: repaired[glued-records]: 2 records stand on one line; took them one by one
    f.jsonl:8: from: repaired[field]: missing field `from`; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 3: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn invalid_utf8_becomes_the_replacement_character() {
    let file = [STORY.as_bytes(), b"{\"t\":\"note\",\"text\":\"a\xff\xfeb\"}\n"].concat();
    assert_snapshot!(strict(&file), @r#"
    f.jsonl:8: error[invalid-utf8]: byte 22 of the line is not UTF-8; convert the file to UTF-8, or read with ReadOptions::LENIENT
    f.jsonl:8: warning[unknown-type]: record type "note" is not known (1 in the file); the records are kept and written back; a newer version may use them
    "#);
    assert_snapshot!(lenient(&file), @r#"
    f.jsonl:8: repaired[invalid-utf8]: byte 22 of the line is not UTF-8; put U+FFFD for what is not UTF-8
    f.jsonl:8: warning[unknown-type]: record type "note" is not known (1 in the file); the records are kept and written back; a newer version may use them
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

#[test]
fn a_lone_high_surrogate_becomes_the_replacement_character() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"tool","origin":"environment","text":"a\ud83d"}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: error[lone-surrogate]: an escape holds half of a surrogate pair (1 in the line); a writer cut a string inside a character: read with ReadOptions::LENIENT");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: repaired[lone-surrogate]: an escape holds half of a surrogate pair (1 in the line); put U+FFFD for each
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_lone_low_surrogate_beside_a_pair_becomes_the_replacement_character() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"tool","origin":"environment","text":"\ud83d\ude00 \ude00"}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: error[lone-surrogate]: an escape holds half of a surrogate pair (1 in the line); a writer cut a string inside a character: read with ReadOptions::LENIENT");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: repaired[lone-surrogate]: an escape holds half of a surrogate pair (1 in the line); put U+FFFD for each
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_lone_surrogate_in_a_key_becomes_the_replacement_character() {
    let file = story(
        r#"{"t":"note","\ud800":1,"\\ud800":2}
"#,
    );
    assert_snapshot!(strict(&file), @r#"
    f.jsonl:8: error[lone-surrogate]: an escape holds half of a surrogate pair (1 in the line); a writer cut a string inside a character: read with ReadOptions::LENIENT
    f.jsonl:8: warning[unknown-type]: record type "note" is not known (1 in the file); the records are kept and written back; a newer version may use them
    "#);
    assert_snapshot!(lenient(&file), @r#"
    f.jsonl:8: repaired[lone-surrogate]: an escape holds half of a surrogate pair (1 in the line); put U+FFFD for each
    f.jsonl:8: warning[unknown-type]: record type "note" is not known (1 in the file); the records are kept and written back; a newer version may use them
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

#[test]
fn an_unknown_record_type_is_kept_and_counted() {
    let file = story(
        r#"{"t":"note","a":1}
{"b":2,"t":"note"}
{"t":"memo"}
"#,
    );
    assert_snapshot!(strict(&file), @r#"
    f.jsonl:8: warning[unknown-type]: record type "note" is not known (2 in the file); the records are kept and written back; a newer version may use them
    f.jsonl:10: warning[unknown-type]: record type "memo" is not known (1 in the file); the records are kept and written back; a newer version may use them
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    "#);
    assert_snapshot!(lenient(&file), @r#"
    f.jsonl:8: warning[unknown-type]: record type "note" is not known (2 in the file); the records are kept and written back; a newer version may use them
    f.jsonl:10: warning[unknown-type]: record type "memo" is not known (1 in the file); the records are kept and written back; a newer version may use them
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

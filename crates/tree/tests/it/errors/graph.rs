//! References between records.
use insta::assert_snapshot;

use super::{STORY, lenient, story, strict};

fn kv_evict(lines: &str) -> Vec<u8> {
    let story = String::from_utf8(story(lines)).unwrap();
    story.replacen("\"fidelity\"", "\"cache\":\"kv_evict\",\"fidelity\"", 1).into_bytes()
}

#[test]
fn nothing_forks_where_keys_and_values_are_evicted_in_place() {
    let file = kv_evict(
        r#"{"t":"fork","context":2,"from":1,"reason":"retry"}
{"t":"append","context":3,"from":0,"segments":[]}
{"t":"fork","context":4,"from":0,"reason":"rewind"}
{"t":"generation","id":1,"context":0,"output":[]}
"#,
    );
    assert_snapshot!(strict(&file), @r#"
    f.jsonl:8: error[fork-under-kv-evict]: context 2 forks, but under cache "kv_evict" there is one tape; write the rollout as one thread, or with cache "reprefill"
    f.jsonl:9: from: error[fork-under-kv-evict]: context 3 forks, but under cache "kv_evict" there is one tape; write the rollout as one thread, or with cache "reprefill"
    f.jsonl:10: from: error[fork-under-kv-evict]: context 4 forks, but under cache "kv_evict" there is one tape; write the rollout as one thread, or with cache "reprefill"
    f.jsonl:11: context: error[fork-under-kv-evict]: context 0 forks, but under cache "kv_evict" there is one tape; write the rollout as one thread, or with cache "reprefill"
    "#);
    assert_snapshot!(lenient(&file), @r#"
    f.jsonl:8: error[fork-under-kv-evict]: context 2 forks, but under cache "kv_evict" there is one tape; write the rollout as one thread, or with cache "reprefill"
    f.jsonl:9: from: error[fork-under-kv-evict]: context 3 forks, but under cache "kv_evict" there is one tape; write the rollout as one thread, or with cache "reprefill"
    f.jsonl:10: from: error[fork-under-kv-evict]: context 4 forks, but under cache "kv_evict" there is one tape; write the rollout as one thread, or with cache "reprefill"
    f.jsonl:11: context: error[fork-under-kv-evict]: context 0 forks, but under cache "kv_evict" there is one tape; write the rollout as one thread, or with cache "reprefill"
    "#);
}

#[test]
fn a_segment_id_with_different_content_keeps_the_first() {
    let file = story(
        r#"{"t":"segment","id":1,"role":"user","origin":"human","tokens":[3]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: id: error[duplicate-id]: segment 1 stands above with different content; give each an id of its own");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: id: repaired[duplicate-id]: segment 1 stands above with different content; kept the first
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_generation_id_with_different_content_keeps_the_first() {
    let file = story(
        r#"{"t":"generation","id":0,"context":1,"output":[]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: id: error[duplicate-id]: generation 0 stands above with different content; give each an id of its own");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: id: repaired[duplicate-id]: generation 0 stands above with different content; kept the first
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_context_id_with_different_content_keeps_the_first() {
    let file = story(
        r#"{"t":"append","context":1,"from":0,"segments":[]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: context: error[duplicate-id]: context 1 stands above with different content; give each an id of its own");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: context: repaired[duplicate-id]: context 1 stands above with different content; kept the first
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_record_that_stands_twice_is_one() {
    let file = story(&STORY.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>());
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
fn a_segment_that_no_line_above_defines_is_left_out() {
    let file = story(
        r#"{"t":"append","context":2,"from":1,"segments":[40]}
{"t":"segment","id":40,"role":"user","origin":"human","tokens":[3]}
{"t":"generation","id":1,"context":2,"output":[41]}
{"t":"replace","context":3,"from":2,"segments":[0,41]}
{"t":"evict","context":4,"from":3,"evicted":[{"segment":0},{"segment":41}],"replacement":{"kind":"summary","segments":[41]}}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: segments[0]: error[missing-segment]: segment 40 is not defined above; a line may only refer to what stands above it: add or move the segment's record
    f.jsonl:10: output[0]: error[missing-segment]: segment 41 is not defined above; a line may only refer to what stands above it: add or move the segment's record
    f.jsonl:11: segments[1]: error[missing-segment]: segment 41 is not defined above; a line may only refer to what stands above it: add or move the segment's record
    f.jsonl:12: evicted[1]: error[missing-segment]: segment 41 is not defined above; a line may only refer to what stands above it: add or move the segment's record
    f.jsonl:12: replacement.segments[0]: error[missing-segment]: segment 41 is not defined above; a line may only refer to what stands above it: add or move the segment's record
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: segments[0]: repaired[missing-segment]: segment 40 is not defined above; went on without it
    f.jsonl:10: output[0]: repaired[missing-segment]: segment 41 is not defined above; went on without it
    f.jsonl:11: segments[1]: repaired[missing-segment]: segment 41 is not defined above; went on without it
    f.jsonl:12: evicted[1]: repaired[missing-segment]: segment 41 is not defined above; went on without it
    f.jsonl:12: replacement.segments[0]: repaired[missing-segment]: segment 41 is not defined above; went on without it
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 1[0..1] 2[0..2]
    context 3: 0[0..3]
    context 4:
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/main:
    ");
}

#[test]
fn a_context_that_no_line_above_defines_takes_its_record_along() {
    let file = story(
        r#"{"t":"append","context":2,"from":8,"segments":[]}
{"t":"evict","context":3,"from":8,"evicted":[{"segment":0}]}
{"t":"replace","context":4,"from":8,"segments":[]}
{"t":"fork","context":5,"from":8,"reason":"retry"}
{"t":"generation","id":1,"context":8,"output":[]}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: from: error[missing-context]: context 8 is not defined above; a line may only refer to what stands above it: add or move the context's record
    f.jsonl:9: from: error[missing-context]: context 8 is not defined above; a line may only refer to what stands above it: add or move the context's record
    f.jsonl:10: from: error[missing-context]: context 8 is not defined above; a line may only refer to what stands above it: add or move the context's record
    f.jsonl:11: from: error[missing-context]: context 8 is not defined above; a line may only refer to what stands above it: add or move the context's record
    f.jsonl:12: context: error[missing-context]: context 8 is not defined above; a line may only refer to what stands above it: add or move the context's record
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: from: repaired[missing-context]: context 8 is not defined above; left the record out
    f.jsonl:9: from: repaired[missing-context]: context 8 is not defined above; left the record out
    f.jsonl:10: from: repaired[missing-context]: context 8 is not defined above; left the record out
    f.jsonl:11: from: repaired[missing-context]: context 8 is not defined above; left the record out
    f.jsonl:12: context: repaired[missing-context]: context 8 is not defined above; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_generation_that_no_line_above_defines_is_no_author() {
    let file = story(
        r#"{"t":"evict","context":2,"from":1,"evicted":[{"segment":1}],"by":{"kind":"policy","generation":7}}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: by.generation: error[missing-generation]: generation 7 is not defined above; name the generation that decided, which stands above");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: by.generation: repaired[missing-generation]: generation 7 is not defined above; took the author as unknown
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_context_made_from_itself_is_a_cycle() {
    let file = story(
        r#"{"t":"append","context":2,"from":2,"segments":[]}
{"t":"fork","context":3,"from":3,"reason":"resume"}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: from: error[cycle]: context 2 is made from itself; name the context it was made from
    f.jsonl:9: from: error[cycle]: context 3 is made from itself; name the context it was made from
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: from: repaired[cycle]: context 2 is made from itself; left the record out
    f.jsonl:9: from: repaired[cycle]: context 3 is made from itself; left the record out
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_second_root_in_one_thread_becomes_a_thread_of_its_own() {
    let file = story(
        r#"{"t":"append","context":2,"from":null,"segments":[0]}
{"t":"generation","id":1,"context":2,"output":[],"thread":"main~2"}
{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[4]}
{"t":"generation","id":2,"context":2,"output":[3]}
"#,
    );
    assert_snapshot!(strict(&file), @r#"f.jsonl:11: thread: error[second-root]: thread "main" has a second root, context 2 beside context 0; a thread goes on from where it was: use fork, or another thread name"#);
    assert_snapshot!(lenient(&file), @r#"
    f.jsonl:11: thread: repaired[second-root]: thread "main" has a second root, context 2 beside context 0; took the new root as a thread of its own
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3]
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/main~2:
    generation 2 of r0/main~2: 4:1
    "#);
}

#[test]
fn a_second_outcome_that_differs_is_left_out() {
    let file = story(
        r#"{"t":"outcome","rollout":"r0","group":"g","reward":1.0,"status":"finished"}
{"t":"outcome","rollout":"r0","group":"g","reward":1.0,"status":"finished"}
{"t":"outcome","rollout":"r0","group":"g","reward":0.5,"status":"finished"}
"#,
    );
    assert_snapshot!(strict(&file), @r#"f.jsonl:10: rollout: error[second-outcome]: rollout "r0" has a second outcome that differs; give each rollout one outcome"#);
    assert_snapshot!(lenient(&file), @r#"
    f.jsonl:10: rollout: repaired[second-outcome]: rollout "r0" has a second outcome that differs; kept the first
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

//! What an eviction takes out, and what it puts in.
use insta::assert_snapshot;

use super::{lenient, story, strict};

#[test]
fn an_evicted_segment_that_is_not_in_the_context_is_left_out() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"tool","origin":"environment","tokens":[1,2]}
{"t":"evict","context":2,"from":1,"evicted":[{"segment":3},{"segment":1}]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:9: evicted[0]: error[evicted-not-in-context]: tokens 0..2 of segment 3 are not all in context 1; evict only what the context holds");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:9: evicted[0]: repaired[evicted-not-in-context]: tokens 0..2 of segment 3 are not all in context 1; took out what is there
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn of_an_evicted_range_what_is_in_the_context_leaves() {
    let file = story(
        r#"{"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,2]}]}
{"t":"evict","context":3,"from":2,"evicted":[{"segment":0,"tokens":[0,3]}]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:9: evicted[0].tokens: error[evicted-not-in-context]: tokens 0..3 of segment 0 are not all in context 2; evict only what the context holds");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:9: evicted[0].tokens: repaired[evicted-not-in-context]: tokens 0..3 of segment 0 are not all in context 2; took out what is there
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..1] 0[2..3] 1[0..1] 2[0..2]
    context 3: 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_range_outside_its_segment_is_clamped() {
    let file = story(
        r#"{"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[2,9]},{"segment":1,"tokens":[1,0]}]}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: evicted[0].tokens: error[range-outside-segment]: range 2..9 is empty or reaches outside segment 0 of length 3; give a half-open range inside the segment
    f.jsonl:8: evicted[1].tokens: error[range-outside-segment]: range 1..0 is empty or reaches outside segment 1 of length 1; give a half-open range inside the segment
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: evicted[0].tokens: repaired[range-outside-segment]: range 2..9 is empty or reaches outside segment 0 of length 3; clamped it, or left it out where nothing remains
    f.jsonl:8: evicted[1].tokens: repaired[range-outside-segment]: range 1..0 is empty or reaches outside segment 1 of length 1; clamped it, or left it out where nothing remains
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..2] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_range_without_tokens_takes_nothing_out() {
    let file = story(
        r#"{"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,1]},{"segment":1}]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: evicted[0].tokens: error[range-outside-segment]: range 1..1 is empty or reaches outside segment 0 of length 3; give a half-open range inside the segment");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: evicted[0].tokens: repaired[range-outside-segment]: range 1..1 is empty or reaches outside segment 0 of length 3; clamped it, or left it out where nothing remains
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_range_of_a_segment_that_is_text_takes_the_whole_segment() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"tool","origin":"environment","text":"result"}
{"t":"append","context":2,"from":1,"segments":[3]}
{"t":"evict","context":3,"from":2,"evicted":[{"segment":3,"tokens":[0,1]}]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:10: evicted[0].tokens: error[range-without-tokens]: a token range is evicted from segment 3, which has no tokens; tokenise the records first, or evict the whole segment");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:10: evicted[0].tokens: repaired[range-without-tokens]: a token range is evicted from segment 3, which has no tokens; took out the whole segment
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 1[0..1] 2[0..2] 3[0..6]
    context 3: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn overlapping_ranges_become_their_union() {
    let file = story(
        r#"{"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,3]},{"segment":0,"tokens":[0,2]}]}
{"t":"evict","context":3,"from":1,"evicted":[{"segment":1},{"segment":1,"tokens":[0,1]}]}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: evicted: error[overlapping-ranges]: ranges of segment 0 overlap; list each evicted token once
    f.jsonl:9: evicted: error[overlapping-ranges]: ranges of segment 1 overlap; list each evicted token once
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: evicted: repaired[overlapping-ranges]: ranges of segment 0 overlap; took their union
    f.jsonl:9: evicted: repaired[overlapping-ranges]: ranges of segment 1 overlap; took their union
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 1[0..1] 2[0..2]
    context 3: 0[0..3] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn an_eviction_that_removes_nothing_lets_the_context_stand() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"user","origin":"harness","tokens":[1]}
{"t":"evict","context":2,"from":1,"evicted":[],"replacement":{"kind":"summary","segments":[3],"place":"head"}}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:9: evicted: error[empty-eviction]: the eviction that makes context 2 removes nothing; leave it out, or use append or fork");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:9: evicted: repaired[empty-eviction]: the eviction that makes context 2 removes nothing; let the context stand as it was, the replacement at its end
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 1[0..1] 2[0..2] 3[0..1]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_replacement_that_is_itself_evicted_stays_where_it_stood() {
    let file = story(
        r#"{"t":"evict","context":2,"from":1,"evicted":[{"segment":1},{"segment":0,"tokens":[1,2]}],"replacement":{"kind":"summary","segments":[1]}}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: replacement.segments[0]: error[replacement-evicted]: segment 1 is evicted and stands in the replacement; evict it in a record of its own");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: replacement.segments[0]: repaired[replacement-evicted]: segment 1 is evicted and stands in the replacement; left it where it stood
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..1] 0[2..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_place_that_is_not_there_is_the_end() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"user","origin":"harness","tokens":[1]}
{"t":"evict","context":2,"from":1,"evicted":[{"segment":1}],"replacement":{"kind":"summary","segments":[3],"place":{"index":3}}}
"#,
    );
    assert_snapshot!(strict(&file), @r#"f.jsonl:9: replacement.place: error[place-outside]: place {"index":3} is beyond the 2 pieces that are left; count the contiguous pieces after removal"#);
    assert_snapshot!(lenient(&file), @r#"
    f.jsonl:9: replacement.place: repaired[place-outside]: place {"index":3} is beyond the 2 pieces that are left; put the replacement at the end
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 2[0..2] 3[0..1]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

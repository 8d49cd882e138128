//! What stands in a context twice, comes back, or has lost its other half.
use insta::assert_snapshot;

use super::{lenient, story, strict};

#[test]
fn a_segment_stands_once_in_a_context() {
    let file = story(
        r#"{"t":"append","context":2,"from":1,"segments":[1]}
{"t":"replace","context":3,"from":1,"segments":[0,0]}
{"t":"generation","id":1,"context":3,"output":[0]}
{"t":"evict","context":4,"from":1,"evicted":[{"segment":1}],"replacement":{"kind":"summary","segments":[0]}}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: segments[0]: error[duplicate-identity]: segment 1 stands twice in one context; a token identity stands at most once: write a second copy as a segment of its own
    f.jsonl:9: segments[1]: error[duplicate-identity]: segment 0 stands twice in one context; a token identity stands at most once: write a second copy as a segment of its own
    f.jsonl:10: output[0]: error[duplicate-identity]: segment 0 stands twice in one context; a token identity stands at most once: write a second copy as a segment of its own
    f.jsonl:11: replacement.segments[0]: error[duplicate-identity]: segment 0 stands twice in one context; a token identity stands at most once: write a second copy as a segment of its own
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: segments[0]: repaired[duplicate-identity]: segment 1 stands twice in one context; kept the first place
    f.jsonl:9: segments[1]: repaired[duplicate-identity]: segment 0 stands twice in one context; kept the first place
    f.jsonl:10: output[0]: repaired[duplicate-identity]: segment 0 stands twice in one context; kept the first place
    f.jsonl:11: replacement.segments[0]: repaired[duplicate-identity]: segment 0 stands twice in one context; kept the first place
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 1[0..1] 2[0..2]
    context 3: 0[0..3]
    context 4: 0[0..3] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/main:
    ");
}

#[test]
fn an_evicted_segment_that_comes_back_without_an_index_is_a_warning() {
    let file = story(
        r#"{"t":"evict","context":2,"from":1,"evicted":[{"segment":1}]}
{"t":"append","context":3,"from":2,"segments":[1]}
"#,
    );
    assert_snapshot!(strict(&file), @r#"
    f.jsonl:9: segments[0]: warning[unoffered-append]: segment 1 was evicted, comes back, and no replacement of kind "index" offered it; check that the harness can bring it back
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 2[0..2]
    context 3: 0[0..3] 2[0..2] 1[0..1]
    generation 0 of r0/main: 9:1 10:1
    "#);
    assert_snapshot!(lenient(&file), @r#"
    f.jsonl:9: segments[0]: warning[unoffered-append]: segment 1 was evicted, comes back, and no replacement of kind "index" offered it; check that the harness can bring it back
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 2[0..2]
    context 3: 0[0..3] 2[0..2] 1[0..1]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

#[test]
fn an_evicted_segment_that_an_index_offers_comes_back() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"user","origin":"harness","tokens":[1]}
{"t":"evict","context":2,"from":1,"evicted":[{"segment":1}],"replacement":{"kind":"index","segments":[3]}}
{"t":"append","context":3,"from":2,"segments":[1]}
"#,
    );
    assert_snapshot!(strict(&file), @"
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 3[0..1] 2[0..2]
    context 3: 0[0..3] 3[0..1] 2[0..2] 1[0..1]
    generation 0 of r0/main: 9:1 10:1
    ");
    assert_snapshot!(lenient(&file), @"
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 3[0..1] 2[0..2]
    context 3: 0[0..3] 3[0..1] 2[0..2] 1[0..1]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn latent_replacements_are_kept_and_only_stand_in_their_kind() {
    let file = story(
        r#"{"t":"evict","context":2,"from":1,"evicted":[{"segment":1}],"replacement":{"kind":"latent","segments":[],"latent":{"count":2,"ratio":4.0,"file":"z.bin","offset":0}}}
{"t":"evict","context":3,"from":1,"evicted":[{"segment":1}],"replacement":{"kind":"summary","segments":[],"latent":{"count":2,"ratio":4.0,"file":"z.bin","offset":0}}}
"#,
    );
    assert_snapshot!(strict(&file), @r#"f.jsonl:9: replacement.latent: error[latent-kind]: embeddings stand in a replacement of another kind; give the replacement the kind "latent""#);
    assert_snapshot!(lenient(&file), @"
    f.jsonl:9: replacement.latent: repaired[latent-kind]: embeddings stand in a replacement of another kind; dropped the embeddings
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 2[0..2]
    context 3: 0[0..3] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_tool_result_whose_call_is_gone_is_a_warning_that_the_harness_sent() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"assistant","origin":"external_model","tokens":[1],"calls":["call-1"]}
{"t":"segment","id":4,"role":"tool","origin":"environment","tokens":[2],"result_of":"call-1"}
{"t":"append","context":2,"from":1,"segments":[3,4]}
{"t":"evict","context":3,"from":2,"evicted":[{"segment":3}], "evidence":"recorded"}
"#,
    );
    assert_snapshot!(strict(&file), @r#"
    f.jsonl:11: warning[orphan-result]: segment 4 answers call "call-1", which is not in the context; the harness sent it so; check the eviction that took the call out
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 1[0..1] 2[0..2] 3[0..1] 4[0..1]
    context 3: 0[0..3] 1[0..1] 2[0..2] 4[0..1]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

#[test]
fn a_tool_result_whose_call_is_gone_is_a_warning_of_an_inferred_eviction() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"assistant","origin":"external_model","tokens":[1],"calls":["call-1"]}
{"t":"segment","id":4,"role":"tool","origin":"environment","tokens":[2],"result_of":"call-1"}
{"t":"append","context":2,"from":1,"segments":[3,4]}
{"t":"evict","context":3,"from":2,"evicted":[{"segment":3}], "evidence":"inferred"}
"#,
    );
    assert_snapshot!(strict(&file), @r#"
    f.jsonl:11: warning[orphan-result]: segment 4 answers call "call-1", which is not in the context; the eviction is inferred; check the eviction that took the call out
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 1[0..1] 2[0..2] 3[0..1] 4[0..1]
    context 3: 0[0..3] 1[0..1] 2[0..2] 4[0..1]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

#[test]
fn a_tool_result_whose_call_is_gone_is_a_warning_of_any_eviction() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"assistant","origin":"external_model","tokens":[1],"calls":["call-1"]}
{"t":"segment","id":4,"role":"tool","origin":"environment","tokens":[2],"result_of":"call-1"}
{"t":"append","context":2,"from":1,"segments":[3,4]}
{"t":"evict","context":3,"from":2,"evicted":[{"segment":3}]}
"#,
    );
    assert_snapshot!(strict(&file), @r#"
    f.jsonl:11: warning[orphan-result]: segment 4 answers call "call-1", which is not in the context; check the eviction that took the call out
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 1[0..1] 2[0..2] 3[0..1] 4[0..1]
    context 3: 0[0..3] 1[0..1] 2[0..2] 4[0..1]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

#[test]
fn a_tool_result_without_a_call_is_a_warning_where_it_is_appended() {
    let file = story(
        r#"{"t":"segment","id":4,"role":"tool","origin":"environment","tokens":[2],"result_of":"call-1"}
{"t":"append","context":2,"from":1,"segments":[4]}
"#,
    );
    assert_snapshot!(strict(&file), @r#"
    f.jsonl:9: segments[0]: warning[orphan-result]: segment 4 answers call "call-1", which is not in the context; check the eviction that took the call out
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 1[0..1] 2[0..2] 4[0..1]
    generation 0 of r0/main: 9:1 10:1
    "#);
}

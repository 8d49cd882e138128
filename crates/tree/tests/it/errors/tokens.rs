//! Tokens, and the numbers that stand beside them.
use insta::assert_snapshot;
use pleach_tree::{LossRun, Origin, ReadOptions, Record, Role, Segment, SegmentId};

use super::{lenient, story, strict, with};

/// The story's header, and the same with a vocabulary of eleven ids.
const HEADER: (&[u8], &[u8]) = (
    br#"{"t":"header","version":1,"harness":"test","fidelity":"token""#,
    br#"{"t":"header","version":1,"harness":"test","fidelity":"token","tokenizer":{"id":"small","vocab_size":11}"#,
);

/// A segment with numbers that JSON cannot write.
fn segment(logprob: f64, weight: f64) -> Record {
    let mut segment =
        Segment::new(SegmentId(3), Role::Assistant, Origin::Policy).with_tokens(vec![1]);
    segment.logprobs = Some(vec![logprob]);
    segment.loss = Some(vec![LossRun { start: 0, end: 1, weight }]);
    Record::Segment(segment)
}

#[test]
fn numbers_that_are_not_finite_are_dropped() {
    assert_snapshot!(with(segment(f64::NAN, 0.0), ReadOptions::STRICT), @"made:8: logprobs[0]: error[logprob]: log-probability NaN of token 0 is above 0 or not finite; give natural logarithms of probabilities");
    assert_snapshot!(with(segment(f64::NEG_INFINITY, f64::INFINITY), ReadOptions::LENIENT), @"
    made:8: logprobs[0]: repaired[logprob]: log-probability -inf of token 0 is above 0 or not finite; dropped the log-probabilities
    made:8: loss: repaired[loss-weight]: loss weight inf of segment 3 is not a finite number; dropped the weights
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_segment_without_tokens_and_text_has_no_content() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"user","origin":"human"}
"#,
    );
    assert_snapshot!(strict(&file), @r#"f.jsonl:8: error[no-content]: segment 3 has neither tokens nor text; give it one of the two; an empty segment has "tokens":[]"#);
    assert_snapshot!(lenient(&file), @r#"f.jsonl:8: error[no-content]: segment 3 has neither tokens nor text; give it one of the two; an empty segment has "tokens":[]"#);
}

#[test]
fn logprobs_that_are_not_as_long_as_the_tokens_are_dropped() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[1,2],"logprobs":[-0.5]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: logprobs: error[length-mismatch]: logprobs cover 1 tokens of 2; give one entry for each token");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: logprobs: repaired[length-mismatch]: logprobs cover 1 tokens of 2; dropped them
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn a_log_probability_above_zero_drops_them_all() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[1,2],"logprobs":[-0.5,0.25]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: logprobs[1]: error[logprob]: log-probability 0.25 of token 1 is above 0 or not finite; give natural logarithms of probabilities");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: logprobs[1]: repaired[logprob]: log-probability 0.25 of token 1 is above 0 or not finite; dropped the log-probabilities
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn loss_runs_that_are_not_as_long_as_the_tokens_are_dropped() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[1,2],"loss":[[0,1,1.0]]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: loss: error[length-mismatch]: loss runs cover 1 tokens of 2; give one entry for each token");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: loss: repaired[length-mismatch]: loss runs cover 1 tokens of 2; dropped them
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn loss_runs_that_do_not_tile_are_dropped() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[1,2],"loss":[[0,1,1.0],[2,2,0.5]]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: loss: error[loss-runs]: the loss runs of segment 3 do not tile it, at token 1; give runs [start, end, weight] that follow each other from 0 to the end");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: loss: repaired[loss-runs]: the loss runs of segment 3 do not tile it, at token 1; dropped them
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn an_id_outside_the_vocabulary_is_named() {
    let file = story(
        "{\"t\":\"segment\",\"id\":3,\"role\":\"user\",\"origin\":\"human\",\"tokens\":[10,11]}\n",
    )
    .strip_prefix(HEADER.0)
    .map(|rest| [HEADER.1, rest].concat())
    .unwrap();
    assert_snapshot!(strict(&file), @"f.jsonl:8: tokens[1]: error[outside-vocabulary]: token id 11 of segment 3 is outside the vocabulary of 11; check that header.tokenizer is the one that made the ids");
    assert_snapshot!(lenient(&file), @"f.jsonl:8: tokens[1]: error[outside-vocabulary]: token id 11 of segment 3 is outside the vocabulary of 11; check that header.tokenizer is the one that made the ids");
}

#[test]
fn the_first_token_of_a_view_carries_no_weight() {
    let file = story(
        r#"{"t":"append","context":2,"from":null,"segments":[]}
{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[1,2]}
{"t":"generation","id":1,"context":2,"output":[3],"thread":"other"}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:10: context: error[empty-prefix]: the first token of generation 1 has nothing before it; put at least a beginning-of-text token in its context, or give it weight 0");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:10: context: repaired[empty-prefix]: the first token of generation 1 has nothing before it; gave it weight 0
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2:
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/other: 1:0 2:1
    ");
}

#[test]
fn a_first_token_of_weight_zero_is_sound() {
    let file = story(
        r#"{"t":"append","context":2,"from":null,"segments":[]}
{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[1,2],"loss":[[0,1,0.0],[1,2,0.5]]}
{"t":"generation","id":1,"context":2,"output":[3],"thread":"other"}
"#,
    );
    assert_snapshot!(strict(&file), @"
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2:
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/other: 1:0 2:0.5
    ");
}

#[test]
fn loss_on_what_the_policy_did_not_sample_is_dropped() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"user","origin":"human","tokens":[1],"loss":[[0,1,1.0]]}
{"t":"segment","id":4,"role":"assistant","origin":"policy","tokens":[1],"loss":[[0,1,0.5]]}
{"t":"segment","id":5,"role":"user","origin":"human","tokens":[1],"loss":[[0,1,0.0]]}
"#,
    );
    assert_snapshot!(strict(&file), @"
    f.jsonl:8: loss: error[loss-not-sampled]: segment 3 has loss, but the policy did not sample it; only a generation's output of origin policy can carry loss
    f.jsonl:9: loss: error[loss-not-sampled]: segment 4 has loss, but the policy did not sample it; only a generation's output of origin policy can carry loss
    ");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: loss: repaired[loss-not-sampled]: segment 3 has loss, but the policy did not sample it; dropped its weights
    f.jsonl:9: loss: repaired[loss-not-sampled]: segment 4 has loss, but the policy did not sample it; dropped its weights
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    ");
}

#[test]
fn what_is_sampled_twice_is_trained_once() {
    let file = story(
        r#"{"t":"generation","id":1,"context":0,"output":[2],"thread":"retry"}
{"t":"append","context":2,"from":0,"segments":[2]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: output[0]: error[trained-twice]: segment 2 is the output of generation 0 and again of generation 1; give a second call its own segments, or weight 0");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: output[0]: repaired[trained-twice]: segment 2 is the output of generation 0 and again of generation 1; gave the second call a copy of weight 0
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    context 2: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/retry: 9:0 10:0
    ");
}

#[test]
fn a_context_that_differs_from_the_recorded_prompt_shows_both() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[1]}
{"t":"generation","id":1,"context":1,"output":[3],"prompt_tokens":[5,6,7,8,90,10]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:9: prompt_tokens: error[prompt-mismatch]: the context of generation 1 differs from the recorded prompt at position 4: [7, 8, 9, 10] against [7, 8, 90, 10]; the records do not say what the policy saw: check retokenisation at segment boundaries");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:9: prompt_tokens: repaired[prompt-mismatch]: the context of generation 1 differs from the recorded prompt at position 4: [7, 8, 9, 10] against [7, 8, 90, 10]; kept the context and dropped the recorded prompt
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/main: 1:1
    ");
}

#[test]
fn a_recorded_prompt_that_goes_on_shows_where() {
    let file = story(
        r#"{"t":"generation","id":1,"context":1,"output":[],"prompt_tokens":[5,6,7,8,9,10,11]}
"#,
    );
    assert_snapshot!(strict(&file), @"f.jsonl:8: prompt_tokens: error[prompt-mismatch]: the context of generation 1 differs from the recorded prompt at position 6: [9, 10] against [9, 10, 11]; the records do not say what the policy saw: check retokenisation at segment boundaries");
    assert_snapshot!(lenient(&file), @"
    f.jsonl:8: prompt_tokens: repaired[prompt-mismatch]: the context of generation 1 differs from the recorded prompt at position 6: [9, 10] against [9, 10, 11]; kept the context and dropped the recorded prompt
    Inferred
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/main:
    ");
}

#[test]
fn a_recorded_prompt_that_is_the_context_is_sound() {
    let file = story(
        r#"{"t":"generation","id":1,"context":1,"output":[],"prompt_tokens":[5,6,7,8,9,10]}
"#,
    );
    assert_snapshot!(strict(&file), @"
    Token
    context 0: 0[0..3] 1[0..1]
    context 1: 0[0..3] 1[0..1] 2[0..2]
    generation 0 of r0/main: 9:1 10:1
    generation 1 of r0/main:
    ");
}

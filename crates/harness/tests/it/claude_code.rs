//! What a Claude Code session becomes, on small sessions of one event each.
//!
//! Every snapshot shows, in the order of the records, each context by the keys of its segments and
//! each call by what it said, so that it can be held against the session file beside it by eye:
//! `tests/fixtures/NAME.jsonl`.

use std::path::{Path, PathBuf};

use crate::shown::{converted, fixture, of_key, shown, shown_with, text};
use pleach_harness::{HarnessError, ReadOptions, convert};
use pleach_tree::{Origin, Record, Role};

#[test]
fn parallel_results_all_stand_in_the_next_request_in_file_order_before_what_hangs_on_them() {
    insta::assert_snapshot!(shown("parallel_results"));
}

#[test]
fn lines_that_no_request_holds_stand_in_no_context_and_quoted_markers_are_text() {
    insta::assert_snapshot!(shown("not_context"));
}

#[test]
fn what_a_later_version_records_of_its_requests_stands_where_they_have_it() {
    insta::assert_snapshot!(shown("sent"));
}

#[test]
fn an_image_is_its_json_without_the_data() {
    let (_, tree) = converted(&fixture("not_context"), ReadOptions::STRICT);
    let texts: Vec<&str> = of_key(&tree, "img").into_iter().map(text).collect();
    let image = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"[320 bytes of base64 left out]"}}"#;
    assert_eq!(texts, ["And this?", image]);
}

#[test]
fn a_microcompaction_leaves_a_placeholder_for_each_result_even_of_one_that_no_call_has_seen_and_with_no_call_behind_it()
 {
    insta::assert_snapshot!(shown("microcompact"));
}

#[test]
fn versions_that_offload_large_results_leave_a_pointer_and_say_that_its_text_is_not_recorded() {
    insta::assert_snapshot!(shown("microcompact_pointers"));
    let (_, tree) = converted(&fixture("microcompact_pointers"), ReadOptions::STRICT);
    let left = |key: &str| text(of_key(&tree, key)[0]).to_owned();
    assert!(left("call_log#cleared").contains("tool-results/call_log.txt"));
    assert_eq!(left("call_now#cleared"), "[Old tool result content cleared]");
}

#[test]
fn a_manual_compaction_by_another_model_keeps_its_command_echo_behind_the_summary() {
    insta::assert_snapshot!(shown_with(&fixture("manual_compaction"), ReadOptions::LENIENT));
}

#[test]
fn a_dangling_logical_parent_rejects_a_strict_reading_with_file_line_and_key() {
    let path = fixture("manual_compaction");
    let Err(HarnessError::Rejected(report)) = convert(&path, ReadOptions::STRICT) else {
        panic!("must be rejected")
    };
    let error = report
        .diagnostics
        .iter()
        .find(|found| found.severity == pleach_tree::Severity::Error)
        .unwrap();
    assert_eq!(&*error.location.file, path.to_str().unwrap());
    assert_eq!((error.location.line, error.location.key.as_str()), (5, "logicalParentUuid"));
    assert_eq!(
        error.fault.to_string(),
        "dangling-logical-parent: the logical parent gone is not in the file; line 4, the last one before the boundary, is taken"
    );
}

#[test]
fn a_preserved_run_that_is_given_by_its_ends_keeps_its_parallel_results() {
    insta::assert_snapshot!(shown("preserved_run"));
}

#[test]
fn a_rewind_and_a_retry_fork_and_what_they_gave_up_is_a_thread_of_its_own() {
    insta::assert_snapshot!(shown("rewinds"));
}

#[test]
fn a_sub_agent_and_a_sidechain_start_from_nothing_in_threads_of_their_own() {
    insta::assert_snapshot!(shown("subagent"));
}

#[test]
fn a_sub_agents_file_is_listed_relative_to_the_sessions_folder() {
    let (conversion, tree) = converted(&fixture("subagent"), ReadOptions::STRICT);
    let Record::Header(header) = &conversion.records[0] else { panic!("the header stands first") };
    assert_eq!(header.files, ["subagent.jsonl", "subagent/subagents/agent-7f3.jsonl"]);
    let source = of_key(&tree, "h1")[0].source.clone().unwrap();
    assert_eq!((source.file, source.line), (1, 1));
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sessions/compacted.jsonl")
}

#[test]
fn the_example_shows_a_microcompaction_and_a_compaction_with_its_summariser_and_a_preserved_tail() {
    insta::assert_snapshot!(shown_with(&example(), ReadOptions::STRICT));
}

#[test]
fn a_summary_holds_the_summarisers_own_segments_and_the_harnesss_text_around_them() {
    let (conversion, tree) = converted(&example(), ReadOptions::STRICT);
    let evict = conversion.records.iter().rev().find_map(|record| match record {
        Record::Evict(evict) => Some(evict),
        _ => None,
    });
    let evict = evict.unwrap();
    let generation = tree.generation(evict.by.as_ref().unwrap().generation.unwrap()).unwrap();
    let segments = &evict.replacement.as_ref().unwrap().segments;
    let parts: Vec<(bool, Origin, Role)> = segments
        .iter()
        .map(|id| (generation.output.contains(id), tree.segment(*id).unwrap()))
        .map(|(own, segment)| (own, segment.origin, segment.role))
        .collect();
    let (own, around) =
        ((true, Origin::Policy, Role::Assistant), (false, Origin::Harness, Role::User));
    assert_eq!(parts, [around, own, around, own, around]);
    let whole: String = segments.iter().map(|id| text(tree.segment(*id).unwrap())).collect();
    let session = std::fs::read_to_string(example()).unwrap();
    let summary = session.lines().find(|line| line.contains("isCompactSummary")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    assert_eq!(whole, summary["message"]["content"].as_str().unwrap());
    let said: String =
        generation.output.iter().map(|id| text(tree.segment(*id).unwrap())).collect();
    assert!(said.starts_with("<analysis>") && said.ends_with("</summary>"));
}

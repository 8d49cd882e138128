//! The small sample log of every adapter, `tests/fixtures/NAME`, as what it becomes.

use std::path::Path;

use crate::shown::told;
use pleach_harness::ReadOptions;

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    told(name, &std::fs::read(path).unwrap(), &[], ReadOptions::STRICT)
}

#[test]
fn a_codex_rollout_with_a_rollback_a_recorded_summariser_and_an_old_compaction() {
    insta::assert_snapshot!(sample("codex.jsonl"));
}

#[test]
fn a_pi_session_with_a_branch_an_aborted_call_and_a_compaction() {
    insta::assert_snapshot!(sample("pi.jsonl"));
}

#[test]
fn a_qwen_code_session_with_a_compression_and_a_rewind_to_before_it() {
    insta::assert_snapshot!(sample("qwen_code.jsonl"));
}

#[test]
fn a_gemini_cli_session_with_a_rewind_and_a_list_that_masks_and_summarises() {
    insta::assert_snapshot!(sample("gemini_cli.jsonl"));
}

#[test]
fn an_openhands_log_with_nested_condensations_and_a_late_result() {
    insta::assert_snapshot!(sample("openhands.jsonl"));
}

#[test]
fn an_opencode_session_with_steps_a_pruned_result_and_a_kept_tail() {
    insta::assert_snapshot!(sample("opencode.json"));
}

#[test]
fn an_inspect_ai_log_with_an_edit_a_summary_and_a_trim() {
    insta::assert_snapshot!(sample("inspect_ai.json"));
}

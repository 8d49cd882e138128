//! What a rollout of Codex CLI becomes: calls told apart by what stands between them, lists that a
//! compaction gives whole, rollbacks, copied history.

use crate::rollout::{
    calls, compacted, event, line, message, meta, output, rollout, said, turn, used,
};
use crate::shown::told;
use pleach_harness::ReadOptions;

fn strict(lines: &[String]) -> String {
    told("rollout-own.jsonl", &rollout(lines), &[], ReadOptions::STRICT)
}

#[test]
fn calls_end_where_something_is_put_in_or_the_count_of_tokens_grows() {
    let reasoning = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"think"}],"encrypted_content":"gAAA"}"#;
    insta::assert_snapshot!(strict(&[
        meta(""),
        said("user", "<environment_context>\\n<cwd>/proj</cwd>"),
        turn(),
        said("user", "list it"),
        event(r#"{"type":"user_message","message":"list it"}"#),
        line("response_item", reasoning),
        calls("c1"),
        calls("c2"),
        used(100),
        output("c1"),
        output("c2"),
        said("assistant", "one"),
        used(100),
        used(150),
        said("assistant", "two"),
        used(200),
        event(r#"{"type":"task_complete"}"#),
    ]));
}

#[test]
fn a_providers_compaction_keeps_the_prompts_and_puts_one_item_that_cannot_be_read_for_the_rest() {
    let context = "<environment_context>\\n<cwd>/proj</cwd>";
    let sealed = r#"{"type":"compaction","encrypted_content":"gAAAAA"}"#.to_owned();
    let lines = |list: &[String]| {
        [
            meta(""),
            said("user", context),
            turn(),
            said("user", "first"),
            said("assistant", "one"),
            used(10),
            said("user", "second"),
            calls("c1"),
            output("c1"),
            compacted("", list),
            event(r#"{"type":"context_compacted"}"#),
            said("assistant", "two"),
            used(20),
            said("user", "third"),
            said("assistant", "three"),
        ]
    };
    let (context, prompts) =
        (message("user", context), ["first", "second"].map(|said| message("user", said)));
    let [first, second] = prompts;
    let in_order = [context.clone(), first.clone(), second.clone(), sealed.clone()];
    insta::assert_snapshot!(strict(&lines(&in_order)));
    let moved = [first, context, second, sealed];
    insta::assert_snapshot!(strict(&lines(&moved)));
}

#[test]
fn a_list_that_replaces_the_history_evicts_what_is_not_in_it_and_its_summary_is_that_of_the_recorded_call()
 {
    let words = "Another model began this task.";
    insta::assert_snapshot!(strict(&[
        meta(""),
        turn(),
        said("user", "first"),
        calls("c1"),
        used(10),
        output("c1"),
        said("assistant", "done"),
        used(20),
        said("user", "second"),
        said("assistant", "so far one file was listed"),
        used(30),
        compacted(
            &format!("{words}\\nso far one file was listed"),
            &[
                message("user", "first"),
                message("user", "second"),
                message("user", &format!("{words}\\nso far one file was listed"))
            ]
        ),
        event(r#"{"type":"context_compacted"}"#),
        said("assistant", "ready"),
        used(40),
    ]));
}

#[test]
fn a_short_answer_that_a_summary_happens_to_end_with_is_no_summariser() {
    let shown = strict(&[
        turn(),
        said("user", "first"),
        said("assistant", "ok"),
        used(10),
        compacted("all is ok", &[message("user", "first"), message("user", "all is ok")]),
        said("assistant", "ready"),
        used(20),
    ]);
    assert!(!shown.contains("compact-1") && shown.contains(r#"Policy Content "ok""#), "{shown}");
}

#[test]
fn an_old_compaction_has_only_a_summary_and_its_list_is_rebuilt() {
    insta::assert_snapshot!(strict(&[
        meta(""),
        said("user", "# AGENTS.md instructions for /proj"),
        turn(),
        said("user", "first"),
        said("assistant", "yes"),
        used(10),
        line("compacted", r#"{"message":"what was"}"#),
        said("user", "second"),
        said("assistant", "done"),
        used(20),
    ]));
}

#[test]
fn a_rollback_goes_on_from_before_the_turn_and_after_a_compaction_from_within_its_list() {
    insta::assert_snapshot!(strict(&[
        meta(""),
        turn(),
        said("user", "first"),
        said("assistant", "one"),
        used(10),
        said("user", "wrong"),
        said("assistant", "two"),
        used(20),
        event(r#"{"type":"thread_rolled_back","num_turns":1}"#),
        said("user", "right"),
        said("assistant", "three"),
        used(30),
        compacted(
            "sum",
            &[message("user", "first"), message("user", "right"), message("user", "sum")]
        ),
        said("user", "after"),
        said("assistant", "four"),
        used(40),
        event(r#"{"type":"thread_rolled_back","num_turns":3}"#),
        said("user", "again"),
        said("assistant", "five"),
        used(50),
    ]));
}

#[test]
fn items_that_the_parents_rollout_begins_with_are_context() {
    let shared = [said("user", "first"), calls("c1"), output("c1"), said("assistant", "one")];
    let parent = rollout(
        &[vec![meta("").replace("own", "par")], shared.to_vec(), vec![said("user", "else")]]
            .concat(),
    );
    let own = [
        vec![meta(r#","forked_from_id":"par""#), meta("").replace("own", "par")],
        shared.to_vec(),
        vec![said("user", "mine"), said("assistant", "two")],
    ]
    .concat();
    let beside: [(&str, &[u8]); 1] = [("rollout-par.jsonl", &parent)];
    insta::assert_snapshot!(told(
        "rollout-own.jsonl",
        &rollout(&own),
        &beside,
        ReadOptions::STRICT
    ));
    assert!(strict(&own).contains("which is not beside it"));
}

#[test]
fn a_rollback_leaves_a_call_the_answer_that_the_harness_gave_for_it() {
    let shown = strict(&[
        turn(),
        said("user", "go"),
        calls("c1"),
        said("user", "wrong"),
        said("assistant", "no"),
        event(r#"{"type":"thread_rolled_back","num_turns":1}"#),
        said("user", "right"),
        said("assistant", "yes"),
    ]);
    let last = shown.lines().rfind(|line| line.starts_with("    [")).unwrap();
    assert_eq!(last, "    [line-2 line-3 c1#missing line-7]", "{shown}");
}

#[test]
fn a_compaction_that_removes_nothing_only_appends_its_summary() {
    let shown = strict(&[
        turn(),
        said("user", "first"),
        compacted("sum", &[message("user", "first"), message("user", "sum")]),
        said("assistant", "yes"),
    ]);
    assert!(!shown.contains("evict") && shown.contains("nothing-removed"), "{shown}");
}

#[test]
fn a_pair_that_a_compaction_breaks_is_not_sent() {
    let item = |json: String| json;
    let call = |id: &str| {
        item(format!(
            r#"{{"type":"function_call","name":"shell","arguments":"{{\"command\": [\"ls\"]}}","call_id":"{id}"}}"#
        ))
    };
    let out = |id: &str| {
        item(format!(
            r#"{{"type":"function_call_output","call_id":"{id}","output":"out of {id}"}}"#
        ))
    };
    let start = [
        turn(),
        said("user", "first"),
        calls("c1"),
        calls("c2"),
        used(10),
        output("c1"),
        output("c2"),
    ];
    let broken = [
        start.to_vec(),
        vec![
            compacted(
                "sum",
                &[
                    message("user", "first"),
                    call("c1"),
                    call("c2"),
                    out("c2"),
                    message("user", "sum"),
                ],
            ),
            said("assistant", "yes"),
        ],
    ]
    .concat();
    insta::assert_snapshot!(strict(&broken));
}

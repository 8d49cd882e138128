//! What a rollout of Codex CLI writes again is never a second call of the model, and what only
//! looks alike is never lost.

use crate::rollout::{
    calls, compacted, event, line, message, meta, output, rollout, said, turn, used,
};
use crate::shown::told;
use pleach_harness::ReadOptions;

fn strict(lines: &[String]) -> String {
    told("rollout-own.jsonl", &rollout(lines), &[], ReadOptions::STRICT)
}

/// A fork of a rollout with these items, and that rollout beside it.
fn forked(parent: &[String], own: &[String]) -> String {
    let of_parent = rollout(&[&[meta("").replace("own", "par")], parent].concat());
    let own = [&[meta(r#","forked_from_id":"par""#), meta("").replace("own", "par")], own].concat();
    told(
        "rollout-own.jsonl",
        &rollout(&own),
        &[("rollout-par.jsonl", &of_parent)],
        ReadOptions::STRICT,
    )
}

/// An item with an id.
fn with_id(id: &str, role: &str, text: &str) -> String {
    line("response_item", &message(role, text).replacen('{', &format!(r#"{{"id":"{id}","#), 1))
}

fn other_calls(call: &str) -> String {
    calls(call).replace("ls", "pwd")
}

fn back() -> String {
    event(r#"{"type":"thread_rolled_back","num_turns":1}"#)
}

fn generations(shown: &str) -> usize {
    shown.matches("of thread ").count()
}

/// What the last context holds.
fn last_context(shown: &str) -> &str {
    shown.lines().rfind(|line| line.starts_with("    [")).unwrap()
}

#[test]
fn a_call_of_a_known_id_that_says_something_else_is_a_call_of_its_own() {
    let shown = strict(&[
        turn(),
        said("user", "go"),
        said("assistant", "first I list"),
        calls("call_0"),
        used(10),
        output("call_0"),
        said("assistant", "then I look"),
        other_calls("call_0"),
        used(20),
        output("call_0"),
        calls("call_0").replace("ls", "cat"),
        used(30),
        output("call_0"),
        said("assistant", "done"),
    ]);
    assert_eq!(generations(&shown), 4, "{shown}");
    assert!(shown.contains("then I look") && shown.contains("pwd"), "{shown}");
    assert_eq!(shown.matches("warning[harness]: repeated-id: the id call_0").count(), 1, "{shown}");
    assert_eq!(last_context(&shown).matches("call_0").count(), 3, "{shown}");
    assert!(!shown.contains("repeated-call") && !shown.contains("repeated-line"), "{shown}");
}

#[test]
fn calls_of_one_id_in_one_answer_take_an_output_each() {
    let start = [
        turn(),
        said("user", "go"),
        calls("call_0"),
        other_calls("call_0"),
        used(10),
        output("call_0"),
    ];
    let shown =
        strict(&[start.to_vec(), vec![output("call_0"), said("assistant", "done")]].concat());
    assert_eq!(
        (generations(&shown), last_context(&shown)),
        (2, "    [line-2 line-3 line-4 call_0 call_0]"),
        "{shown}"
    );
    let shown = strict(&[start.to_vec(), vec![said("assistant", "done")]].concat());
    assert!(
        shown.contains("missing-result") && shown.contains("another call of the id has one"),
        "{shown}"
    );
    assert_eq!(last_context(&shown), "    [line-2 line-3 line-4 call_0]", "{shown}");
}

#[test]
fn new_text_beside_a_call_that_is_written_again_is_kept() {
    let once = [
        turn(),
        said("user", "go"),
        said("assistant", "I list"),
        calls("c1"),
        used(10),
        output("c1"),
    ];
    let same = [once[2..].to_vec(), vec![used(20), said("assistant", "ok")]].concat();
    let shown = strict(&[once.to_vec(), same].concat());
    assert_eq!((generations(&shown), shown.matches("I list").count()), (2, 1), "{shown}");
    let other = [said("assistant", "once more"), calls("c1"), used(20), said("assistant", "ok")];
    let shown = strict(&[once.to_vec(), other.to_vec()].concat());
    assert!(
        generations(&shown) == 3 && shown.contains("once more") && shown.contains("repeated-call"),
        "{shown}"
    );
}

#[test]
fn what_a_rollback_or_a_compaction_took_out_is_context_where_it_is_written_again() {
    let call = calls("c1").replacen("\"type\":\"function", "\"id\":\"f1\",\"type\":\"function", 1);
    let start = [turn(), said("user", "one"), with_id("m1", "assistant", "r1"), used(10)];
    let second = [
        with_id("u2", "user", "two"),
        call,
        output("c1"),
        with_id("m2", "assistant", "r2"),
        used(20),
    ];
    for out in [back(), compacted("sum", &[message("user", "one"), message("user", "sum")])] {
        let end = [said("user", "three"), said("assistant", "r3")];
        let shown = strict(&[&start[..], &second, &[out], &second[..4], &end].concat());
        assert_eq!(generations(&shown), 4, "{shown}");
        assert_eq!(shown.matches("written-again").count(), 3, "{shown}");
        let last = last_context(&shown);
        assert!(last.contains("u2 f1 c1 m2 line-"), "{shown}");
        assert!(!shown.contains("repeated"), "{shown}");
    }
}

#[test]
fn what_a_rollback_or_a_compaction_left_in_the_history_is_no_second_time_there() {
    let start = [
        turn(),
        said("user", "one"),
        with_id("m1", "assistant", "r1"),
        used(10),
        said("user", "two"),
    ];
    let end =
        [with_id("m1", "assistant", "r1"), said("user", "three"), with_id("m3", "assistant", "r3")];
    let list = [message("user", "sum"), message("assistant", "r1")];
    let named = message("assistant", "r1").replacen('{', r#"{"id":"m1","#, 1);
    let with_ids = [message("user", "sum"), named];
    for out in [back(), compacted("sum", &list), compacted("sum", &with_ids)] {
        let shown = strict(&[&start[..], &[out], &end].concat());
        assert_eq!(
            (generations(&shown), last_context(&shown).matches("m1").count()),
            (2, 1),
            "{shown}"
        );
        assert!(shown.contains("repeated-line") && !shown.contains("written-again"), "{shown}");
    }
}

#[test]
fn an_output_whose_call_was_taken_back_is_not_sent() {
    let start = [turn(), said("user", "one"), calls("c1"), used(10), back(), output("c1")];
    let shown =
        strict(&[start.to_vec(), vec![said("user", "two"), said("assistant", "r")]].concat());
    assert!(
        shown.contains("orphan-output: call c1 was taken out")
            && last_context(&shown) == "    [line-7]",
        "{shown}"
    );
}

#[test]
fn a_call_without_an_id_that_says_what_was_said_to_the_same_prompt_is_kept_with_a_warning() {
    let once = [said("user", "one"), said("assistant", "r1"), used(10)];
    let again = [said("user", "one"), said("assistant", "r1"), used(20)];
    let shown = strict(&[&[turn()][..], &once, &again].concat());
    assert!(generations(&shown) == 2 && shown.contains("maybe-repeated"), "{shown}");
    let shown = strict(&[&[turn()][..], &once, &[said("user", "else")], &again[1..]].concat());
    assert!(generations(&shown) == 2 && !shown.contains("maybe-repeated"), "{shown}");
}

#[test]
fn an_answer_behind_a_copied_reasoning_is_a_generation() {
    let reasoning = line(
        "response_item",
        r#"{"type":"reasoning","id":"rs1","summary":[{"type":"summary_text","text":"th"}]}"#,
    );
    let parent = [said("user", "one"), reasoning.clone(), calls("c1"), used(10), output("c1")];
    let shown = forked(
        &parent,
        &[said("user", "one"), reasoning, said("assistant", "own answer"), used(10)],
    );
    assert!(
        generations(&shown) == 1 && shown.contains(r#"Policy Content "own answer""#),
        "{shown}"
    );
    assert!(shown.contains("calls (1) are copied"), "{shown}");
}

#[test]
fn what_a_fork_says_itself_is_not_taken_for_what_its_parent_says_later() {
    let parent = [
        with_id("u1", "user", "one"),
        with_id("m1", "assistant", "r1"),
        used(10),
        said("user", "continue"),
        said("assistant", "other"),
        used(20),
        said("user", "x"),
        with_id("m9", "assistant", "Done."),
    ];
    for own in ["continue", "x"] {
        for done in [with_id("m7", "assistant", "Done."), said("assistant", "Done.")] {
            let shown = forked(&parent, &[&parent[..3], &[said("user", own), done]].concat());
            assert!(
                generations(&shown) == 1 && shown.contains(r#"Policy Content "Done.""#),
                "{shown}"
            );
        }
    }
    // A fork may hold the last turns alone, with what their ids name.
    let shown =
        forked(&parent, &[&parent[6..], &[said("user", "y"), said("assistant", "yes")]].concat());
    assert!(generations(&shown) == 1 && shown.contains("calls (1) are copied"), "{shown}");
    let other = [said("user", "x"), with_id("m7", "assistant", "Done.")];
    assert_eq!(generations(&forked(&parent, &other)), 1);
}

#[test]
fn a_fork_of_the_last_turns_is_found_behind_prompts_that_say_the_same() {
    let ask = |text: &str, answer: &str| [said("user", text), said("assistant", answer)];
    let parent = [ask("one", "r1"), ask("continue", "r2"), ask("continue", "r3")].concat();
    let own = ask("mine", "own");
    for kept in [&parent[4..], &parent[2..], &parent[..]] {
        let shown = forked(&parent, &[kept, own.as_slice()].concat());
        assert_eq!(generations(&shown), 1, "{shown}");
    }
    // What the harness says before every turn stands before turns that the fork leaves out.
    let dev = || said("developer", "rules");
    let with = |[ask, answer]: [String; 2]| [dev(), ask, answer];
    let parent = [with(ask("one", "r1")), with(ask("two", "r2"))].concat();
    let shown = forked(&parent, &[&parent[3..], own.as_slice()].concat());
    assert_eq!(generations(&shown), 1, "{shown}");
}

#[test]
fn a_call_that_is_made_once_more_under_an_id_of_several_is_a_call() {
    let [test, edit] = [calls("call_0"), other_calls("call_0")];
    let passed = output("call_0").replace("out of", "passed by");
    let shown = strict(&[
        turn(),
        said("user", "go"),
        test.clone(),
        used(10),
        output("call_0"),
        edit,
        used(20),
        output("call_0"),
        test,
        used(30),
        passed,
        said("assistant", "done"),
    ]);
    assert_eq!(generations(&shown), 4, "{shown}");
    assert!(shown.contains("passed by call_0") && !shown.contains("repeated-call"), "{shown}");
}

#[test]
fn a_fork_may_leave_out_what_its_parent_took_back() {
    let start = [said("user", "one"), said("assistant", "ok"), used(10)];
    let end = [said("user", "two"), said("assistant", "ok2"), used(30)];
    let own = [said("user", "own"), said("assistant", "mine")];
    for wrong in ["bad", "two"] {
        let wrong = [said("user", wrong), said("assistant", "no"), used(20), back()];
        let parent = [&start[..], &wrong, &end].concat();
        for copied in [[&start[..], &end].concat(), parent.clone()] {
            let shown = forked(&parent, &[copied, own.to_vec()].concat());
            assert_eq!(generations(&shown), 1, "{shown}");
        }
    }
}

#[test]
fn items_of_the_parent_behind_own_ones_are_named() {
    let parent = [said("user", "one"), with_id("m1", "assistant", "r1"), used(10)];
    let shown = forked(&parent, &[&[said("developer", "you are a fork")], &parent[..]].concat());
    assert!(shown.contains("copied-late") && shown.contains("items (1) stand behind"), "{shown}");
}

//! Sub-agents that were forked go on from the context that they were forked at, and every call of a
//! session is trained once, in whatever files it stands.
use crate::seen;

use crate::lines::{boundary, calls, lines, result, says, summary, user};
use crate::seen::{U, codes, marked, read, seen};
use pleach_harness::{Input, ReadOptions, convert_from};

/// The first line of a forked sub-agent's file.
fn names(last: &str) -> String {
    format!(
        r#"{{"type":"fork-context-ref","agentId":"7","parentSessionId":"s","parentLastUuid":"{last}","contextLength":3}}"#
    )
}

/// A forked sub-agent's file: the line that it goes on from, a clone of the call `message` that
/// makes the tool call `call`, the harness's answer, and a call of its own.
fn fork(
    last: &str,
    [message, call]: [&str; 2],
    [clone, answer, own]: [&str; 3],
    of: &str,
) -> String {
    lines([
        names(last),
        calls(clone, "", message, call),
        result(answer, clone, call),
        says(own, answer, of),
    ])
    .replace("\"parentUuid\":\"\"", "\"parentUuid\":null")
}

fn rejected(main: &str, agent: &str) -> String {
    let beside = [("s/subagents/agent-7.jsonl".to_owned(), marked(agent))];
    convert_from(&Input::memory("s.jsonl", marked(main), beside), None, ReadOptions::STRICT)
        .unwrap_err()
        .to_string()
}

/// A session whose second call is the one that forks.
fn forking() -> String {
    lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        user("v", "a", "on"),
        calls("b", "v", "m2", "c"),
        result("r", "b", "c"),
        r#"{"type":"attachment","uuid":"t","parentUuid":"v","attachment":{"type":"reminder","content":"late"}}"#.into(),
        says("d", "r", "m3"),
    ])
}

#[test]
fn a_forked_sub_agent_goes_on_from_before_the_call_that_forked_it_which_it_repeats() {
    // The line before that call, as the harness writes it, and that call itself.
    for last in ["v", "b"] {
        let agent = fork(last, ["m2", "c"], ["x", "y", "z"], "m4");
        let (tree, report) = read("s.jsonl", &forking(), &[("s/subagents/agent-7.jsonl", &agent)]);
        assert_eq!(
            seen(&tree),
            [
                "main: u > m1",
                "main: u m1 v > m2",
                "main: u m1 v m2 c t > m3",
                "agent-7: u m1 v m2 c > m4"
            ],
            "the call that forked is trained once"
        );
        assert_eq!(codes(&report), ["copied-history"]);
    }
}

#[test]
fn a_fork_without_a_clone_goes_on_from_its_line_without_what_was_written_behind_it() {
    let agent = lines([names("v"), user("x", "", "do it"), says("z", "x", "m4")]);
    let (tree, _) = read("s.jsonl", &forking(), &[("s/subagents/agent-7.jsonl", &agent)]);
    assert_eq!(seen(&tree)[3], "agent-7: u m1 v x > m4");
}

#[test]
fn a_clone_behind_a_prompt_of_the_sub_agents_own_does_not_say_where_it_was_forked() {
    let agent = lines([
        names("u"),
        user("x", "", "do it"),
        says("y", "x", "m4"),
        calls("e", "y", "m2", "c"),
    ]);
    let (tree, _) = read("s.jsonl", &forking(), &[("s/subagents/agent-7.jsonl", &agent)]);
    assert_eq!(seen(&tree)[3], "agent-7: u x > m4");
}

#[test]
fn lines_without_a_uuid_are_not_those_of_another_sub_agent() {
    let agent = |message: &str| {
        lines([user("x", "", "sub"), says("y", "x", message)])
            .replace(r#""uuid":"x","#, "")
            .replace(r#""uuid":"y","#, "")
    };
    let files = ["m2", "m3"]
        .map(|message| (format!("s/subagents/agent-{message}.jsonl"), marked(&agent(message))));
    let main = marked(&lines([user("u", "", "hi"), says("a", "u", "m1")]));
    let lenient =
        convert_from(&Input::memory("s.jsonl", main, files), None, ReadOptions::LENIENT).unwrap();
    assert_eq!(seen(&seen::built(lenient).0).len(), 3);
}

#[test]
fn a_fork_behind_a_compaction_has_the_summary_and_what_was_preserved() {
    let preserved = r#","preservedMessages":{"anchorUuid":"s","uuids":["v"]}"#;
    let main = lines([
        user("u", "", "hi"),
        says("a", "u", "m1"),
        user("v", "a", "on"),
        boundary("x", "\"v\"", preserved),
        summary("s", "x"),
        calls("b", "v", "m2", "c"),
        result("r", "b", "c"),
        says("d", "r", "m3"),
    ]);
    let agent = fork("v", ["m2", "c"], ["e", "f", "g"], "m4");
    let (tree, _) = read("s.jsonl", &main, &[("s/subagents/agent-7.jsonl", &agent)]);
    assert_eq!(
        seen(&tree),
        ["main: u > m1", "main: s v > m2", "main: s v m2 c > m3", "agent-7: s v m2 c > m4"]
    );
    let bare = lines([names("v"), user("e", "", "do it"), says("g", "e", "m4")]);
    let (_, report) = read("s.jsonl", &main, &[("s/subagents/agent-7.jsonl", &bare)]);
    assert_eq!(
        codes(&report),
        ["uncertain-fork"],
        "no call tells on which side of the compaction it was forked"
    );
}

#[test]
fn a_sub_agent_that_was_forked_from_another_one_leaves_it_its_call_whatever_their_names() {
    let parent = lines([
        user("p", "", "sub"),
        calls("q", "p", "m4", "d"),
        result("r1", "q", "d"),
        says("o", "r1", "m5"),
    ]);
    let child = fork("p", ["m4", "d"], ["x", "y", "z"], "m6");
    for [parent_name, child_name] in [["agent-1", "agent-2"], ["agent-2", "agent-1"]] {
        let files = [parent_name, child_name].map(|name| format!("s/subagents/{name}.jsonl"));
        let beside = [(files[0].as_str(), parent.as_str()), (files[1].as_str(), child.as_str())];
        let (tree, _) =
            read("s.jsonl", &lines([user("u", "", "hi"), says("a", "u", "m1")]), &beside);
        let mut calls = seen(&tree);
        calls.sort();
        let mut expected = [
            "main: u > m1".to_owned(),
            format!("{parent_name}: p > m4"),
            format!("{parent_name}: p m4 d > m5"),
            format!("{child_name}: p m4 d > m6"),
        ];
        expected.sort();
        assert_eq!(calls, expected);
    }
}

#[test]
fn of_forks_whose_call_the_session_has_lost_the_first_has_it() {
    let main = lines([user("u", "", "hi"), says("a", "u", "m1"), user("v", "a", "on")]);
    let forks = [("x", "m4"), ("k", "m5")].map(|(id, own)| {
        let ids = ["1", "2", "3"].map(|at| format!("{id}{at}"));
        fork("v", ["m2", "c"], ids.each_ref().map(String::as_str), own)
    });
    let beside = [
        ("s/subagents/agent-1.jsonl", forks[0].as_str()),
        ("s/subagents/agent-2.jsonl", forks[1].as_str()),
    ];
    let (tree, report) = read("s.jsonl", &main, &beside);
    assert_eq!(
        seen(&tree),
        [
            "main: u > m1",
            "agent-1: u m1 v > m2",
            "agent-1: u m1 v m2 c > m4",
            "agent-2: u m1 v m2 c > m5"
        ]
    );
    assert_eq!(codes(&report), ["copied-history"]);
}

#[test]
fn fork_lines_that_name_no_line_or_two_are_faults() {
    let agent = |first: &str| {
        first.to_owned() + "\n" + &lines([user("x", "", "do it"), says("z", "x", "m4")])
    };
    let error = rejected(&forking(), &agent(&names("gone")));
    let start = "s/subagents/agent-7.jsonl:1: parentLastUuid: error[harness]: ";
    assert!(
        error.starts_with(&format!("{start}history-elsewhere: the contexts go on from line gone")),
        "{error}"
    );
    let error = rejected(&forking(), &agent(r#"{"type":"fork-context-ref","agentId":"7"}"#));
    assert!(error.starts_with(&format!("{start}no-fork-parent: ")), "{error}");
    let error = rejected(&forking(), &agent(&(names("v") + "\n" + &names("u"))));
    assert!(
        error.contains("agent-7.jsonl:2: parentLastUuid: error[harness]: second-fork: "),
        "{error}"
    );
}

#[test]
fn an_id_that_a_server_gives_several_messages_is_that_of_several_calls() {
    let main = lines([
        user("u", "", "hi"),
        says("a", "u", "m"),
        user("v", "a", "on"),
        says("b", "v", "m"),
        user("w", "b", "go"),
        calls("c", "w", "m", "t"),
    ]);
    let agent = lines([user("x", "", "sub"), calls("y", "x", "m", "other")]);
    let (tree, report) = read("s.jsonl", &main, &[("s/subagents/agent-7.jsonl", &agent)]);
    assert_eq!(
        seen(&tree),
        ["main: u > m", "main: u m v > m", "main: u m v m w > m", "agent-7: x > m"]
    );
    assert_eq!(codes(&report), ["repeated-message-id", "repeated-message-id"]);
}

#[test]
fn sub_agents_of_a_copied_session_are_copies_and_a_file_that_lies_there_twice_is_read_once() {
    let main = lines([user(U, "", "hi"), says("a", U, "m1")]);
    let agent = lines([user("x", "", "sub"), says("y", "x", "m2")]);
    let beside = [
        ("a.jsonl", main.as_str()),
        ("a/subagents/agent-7.jsonl", agent.as_str()),
        ("b/subagents/agent-7.jsonl", agent.as_str()),
    ];
    let (tree, report) = read("b.jsonl", &main, &beside);
    assert_eq!(
        (seen(&tree).len(), codes(&report)),
        (0, vec!["copied-history".to_owned(), "no-calls".to_owned()])
    );
    let beside = [
        ("a/subagents/agent-7.jsonl", agent.as_str()),
        ("a/subagents/agent-7.jsonl.gz", agent.as_str()),
    ];
    let (tree, report) = read("a.jsonl", &main, &beside);
    assert_eq!(
        (seen(&tree), codes(&report)),
        (
            vec!["main: U > m1".to_owned(), "agent-7: x > m2".to_owned()],
            vec!["copied-history".to_owned()]
        )
    );
}

#[test]
fn lines_are_copies_of_a_parent_session_only_where_that_one_has_them() {
    let forked = |uuid: &str, line: String| {
        line.replacen(
            "{\"type\"",
            &format!(r#"{{"forkedFrom":{{"sessionId":"p","messageUuid":"{uuid}"}},"type""#),
            1,
        )
    };
    let text = lines([
        forked("u0", user("u", "", "hi")),
        forked("a0", says("a", "u", "m1")),
        forked("v0", user("v", "a", "on")),
        forked("b0", says("b", "v", "m2")),
        user("w", "b", "go"),
    ]);
    let part = lines([user("u0", "", "hi"), says("a0", "u0", "m1")]);
    let (tree, report) = read("s.jsonl", &text, &[("p.jsonl", &part)]);
    assert_eq!(seen(&tree), ["main: u m1 v > m2"]);
    assert_eq!(
        codes(&report),
        ["copied-history", "copied-history"],
        "what is a copy, and what the parent does not have"
    );
    let (tree, _) = read("s.jsonl", &text, &[("p.jsonl", "\n")]);
    assert_eq!(seen(&tree).len(), 2);
}

#[test]
fn sub_agents_of_one_name_are_threads_of_their_own() {
    let agent = |id: &str, message: &str| {
        lines([
            user(&format!("{id}1"), "", "sub"),
            says(&format!("{id}2"), &format!("{id}1"), message),
        ])
    };
    let files = [
        ("main.jsonl", "x"),
        ("workflows/w1/agent-7.jsonl", "y"),
        ("workflows/w2/agent-7.jsonl.gz", "z"),
    ];
    let texts =
        files.map(|(name, id)| (format!("s/subagents/{name}"), agent(id, &format!("m{id}"))));
    let beside = texts.each_ref().map(|(name, text)| (name.as_str(), text.as_str()));
    let (tree, _) = read("s.jsonl", &lines([user("u", "", "hi"), says("a", "u", "m1")]), &beside);
    assert_eq!(
        seen(&tree),
        ["main: u > m1", "main-2: x1 > mx", "agent-7: y1 > my", "agent-7-2: z1 > mz"]
    );
}

#[test]
fn the_sub_agents_of_a_workflow_lie_in_folders_of_their_own() {
    let main = lines([user("u", "", "hi"), says("a", "u", "m1")]);
    let agent = lines([user("x", "", "sub"), says("y", "x", "m2")]);
    let journal = r#"{"type":"started","key":"k","agentId":"7"}"#;
    let beside = [
        ("s/subagents/workflows/wf_1/agent-7.jsonl", agent.as_str()),
        ("s/subagents/workflows/wf_1/journal.jsonl", journal),
    ];
    let (tree, report) = read("s.jsonl", &main, &beside);
    assert_eq!(
        (seen(&tree), codes(&report)),
        (vec!["main: u > m1".to_owned(), "agent-7: x > m2".to_owned()], vec![])
    );
    assert_eq!(tree.header().files, ["s.jsonl", "s/subagents/workflows/wf_1/agent-7.jsonl"]);
}

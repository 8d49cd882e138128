//! ATIF trajectories: what they become, and that records which are written as one come back as they
//! were.
use crate::told;

use std::path::{Path, PathBuf};

use crate::damaged::damaged;
use crate::told::{convert_text, found, rejected, told, told_of, trained_twice, tree};
use pleach_harness::{Harness, HarnessError, Input, ReadOptions, atif, convert, convert_from};
use pleach_tree::{BranchTree, Record};
use serde_json::{Value, json};

fn trajectory(steps: Value) -> Value {
    let mut steps = steps;
    for (index, step) in steps.as_array_mut().unwrap().iter_mut().enumerate() {
        if step.get("step_id").is_none() {
            step["step_id"] = (index + 1).into();
        }
    }
    json!({"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "demo", "version": "1", "model_name": "m"}, "steps": steps})
}

fn steps() -> Vec<Value> {
    let call = json!({"source": "agent", "message": "I look.", "reasoning_content": "hm", "llm_call_count": 1,
        "tool_calls": [{"tool_call_id": "a", "function_name": "run", "arguments": {"command": "make"}}],
        "observation": {"results": [{"source_call_id": "a", "content": "error 1"}]}});
    vec![
        json!({"source": "system", "message": "be brief"}),
        json!({"source": "user", "message": "mend the build"}),
        call,
    ]
}

fn compaction(boundary: &str, content: Value) -> Value {
    json!({"source": "system", "message": "The context was compacted.", "observation": {"results": content},
        "extra": {"context_management": {"type": "compaction", "boundary": boundary}}})
}

fn told_steps(more: &[Value]) -> String {
    told(&trajectory([steps(), more.to_vec()].concat().into()).to_string(), Harness::Atif)
}

#[test]
fn steps_become_contexts_and_calls_and_an_observation_takes_the_place_of_what_is_replaced() {
    let more = [
        compaction("replace", json!([{"content": "The build failed."}])),
        json!({"source": "user", "message": "go on"}),
        json!({"source": "agent", "message": "done", "model_name": "other"}),
    ];
    insta::assert_snapshot!(told_steps(&more));
}

#[test]
fn a_boundary_without_an_observation_leaves_nothing_because_its_message_is_a_note() {
    let more = [
        compaction("replace", json!([])),
        json!({"source": "user", "message": "summary: it failed"}),
        json!({"source": "agent", "message": "done"}),
    ];
    insta::assert_snapshot!(told_steps(&more));
}

#[test]
fn truncation_takes_out_and_injection_adds() {
    let inject = json!({"source": "system", "message": "remember the flags", "extra": {"context_management": {"type": "injection", "boundary": "append"}}});
    let more = [
        inject,
        json!({"source": "agent", "message": "yes"}),
        compaction("truncate", json!([{"content": "gone"}])),
        json!({"source": "user", "message": "anew"}),
        json!({"source": "agent", "message": "done"}),
    ];
    insta::assert_snapshot!(told_steps(&more));
}

#[test]
fn pruning_that_does_not_say_where_it_cut_is_a_note_and_leaves_the_context() {
    let note = json!({"source": "system", "message": "Old output was pruned.", "extra": {"context_management": {"type": "pruning"}},
        "observation": {"results": [{"content": "[pruned]"}]}});
    let shown = told_steps(&[note, json!({"source": "agent", "message": "done"})]);
    assert!(
        shown.contains("pruning-unsaid")
            && !shown.contains("pruned.")
            && !shown.contains("[pruned]"),
        "{shown}"
    );
}

#[test]
fn ids_that_only_some_calls_have_are_left_out_with_a_warning() {
    let with = json!({"source": "agent", "message": "x", "metrics": {"prompt_token_ids": [1], "completion_token_ids": [2]}});
    let steps =
        json!([{"source": "user", "message": "a"}, with, {"source": "agent", "message": "y"}]);
    let shown = told(&trajectory(steps).to_string(), Harness::Atif);
    assert!(shown.contains("partial-ids: only 1 of 2 calls have token ids"), "{shown}");
}

#[test]
fn sub_agents_of_one_name_are_threads_of_their_own() {
    let mut first = trajectory(steps().into());
    let agent = |name: &str| {
        let mut agent = trajectory(
            json!([{"source": "user", "message": "find"}, {"source": "agent", "message": "found"}]),
        );
        agent["trajectory_id"] = name.into();
        agent
    };
    first["subagent_trajectories"] =
        json!([agent("a"), agent("a-2"), agent("a"), agent("main"), agent("a")]);
    let conversion = convert_text(&first.to_string(), None, ReadOptions::STRICT).unwrap();
    let threads: Vec<String> =
        tree(&conversion).generations().map(|generation| generation.thread.clone()).collect();
    assert_eq!(threads, ["main", "a", "a-2", "a-3", "main-2", "a-4"]);
}

#[test]
fn copied_and_deterministic_steps_are_context_and_no_calls() {
    let mut copied = steps();
    copied[2]["is_copied_context"] = true.into();
    let dispatch = json!({"source": "agent", "message": "", "llm_call_count": 0, "tool_calls": [{"tool_call_id": "d", "function_name": "poll", "arguments": {}}], "observation": {"results": [{"source_call_id": "d", "content": "ready"}]}});
    let more = [dispatch, json!({"source": "agent", "message": "done", "llm_call_count": 2})];
    insta::assert_snapshot!(told(
        &trajectory([copied, more.to_vec()].concat().into()).to_string(),
        Harness::Atif
    ));
}

/// A run that hands itself off, and its three sub-agents.
fn handed_off() -> (Value, [(String, Vec<u8>); 3]) {
    let user = |text: &str| json!({"source": "user", "message": text});
    let says = |text: &str, saw: Option<&str>| {
        let mut step = json!({"source": "agent", "message": text});
        if let Some(saw) = saw {
            step["observation"] = json!({"results": [{"content": saw}]});
        }
        step
    };
    let copied = |steps: &[Value]| {
        let mut steps = steps.to_vec();
        steps.iter_mut().for_each(|step| step["is_copied_context"] = true.into());
        steps
    };
    let names = ["summary", "questions", "answers"].map(|task| {
        (format!("run-summarization-1-{task}"), format!("run.summarization-1-{task}.json"))
    });
    let refs: Vec<Value> =
        names.iter().map(|(id, path)| json!({"session_id": id, "trajectory_path": path})).collect();
    let note = json!({"source": "system", "message": "Handed off.", "observation": {"results": [{"subagent_trajectory_ref": refs}]}});
    let begun = [user("bake it"), says("I mix.", Some("dough"))];
    let ask = [user("sum it up"), says("mixed so far", None)];
    let answer = [user("answer: how long?"), says("until brown", None)];
    let subagents = [
        [copied(&begun), ask.to_vec()].concat(),
        vec![user("take over: mixed so far"), says("how long?", None)],
        [copied(&begun), copied(&ask), answer.to_vec()].concat(),
    ];
    let mut at = 0;
    let files = subagents.map(|steps| {
        let mut file = trajectory(steps.into());
        file["session_id"] = names[at].0.clone().into();
        at += 1;
        (names[at - 1].1.clone(), file.to_string().into_bytes())
    });
    let more = [
        says("I knead.", Some("more dough")),
        note,
        user("It was said:\n\nuntil brown"),
        says("I bake.", Some("bread")),
        says("done", None),
    ];
    (trajectory([begun.to_vec(), more.to_vec()].concat().into()), files)
}

#[test]
fn a_handoff_leaves_the_task_the_questions_and_the_answers_and_its_sub_agents_fork() {
    let (main, files) = handed_off();
    let input = Input::memory("run.json", main.to_string().into_bytes(), files);
    let conversion = convert_from(&input, None, ReadOptions::STRICT).unwrap();
    insta::assert_snapshot!(told_of(&conversion));
    assert!(trained_twice(&tree(&conversion)).is_empty());
}

#[test]
fn each_file_that_a_trajectory_names_and_that_is_not_there_is_one_warning() {
    let (mut main, _) = handed_off();
    let again = main["steps"][3].clone();
    main["steps"].as_array_mut().unwrap().push(again);
    main["steps"][7]["step_id"] = 8.into();
    let conversion = convert_text(&main.to_string(), None, ReadOptions::STRICT).unwrap();
    let found = found(&conversion.report);
    assert_eq!(found.len(), 3, "{found:?}");
    for (task, line) in ["summary", "questions", "answers"].iter().zip(&found) {
        let named = format!("missing-file: the step refers to run.summarization-1-{task}.json");
        assert!(line.contains(&named) && line.contains("steps[3].observation"), "{line}");
    }
    let shown = told_of(&conversion);
    assert!(!shown.contains("Handed off."), "{shown}");
    assert!(shown.contains("[user/human bake it | user/harness It was said:"), "{shown}");
}

#[test]
fn trajectories_of_several_sessions_in_one_file_are_a_rollout_each() {
    let mut second = trajectory(
        json!([{"source": "user", "message": "other"}, {"source": "agent", "message": "done"}]),
    );
    second["session_id"] = "t".into();
    let first = trajectory(steps().into());
    let ids = |value: &Value| {
        let mut value = value.clone();
        for step in value["steps"].as_array_mut().unwrap() {
            step["metrics"] = json!({"prompt_token_ids": [1, 2], "completion_token_ids": [3]});
        }
        value
    };
    for (first, second) in [(first.clone(), second.clone()), (ids(&first), ids(&second))] {
        let text = format!("{first}\n{second}\n{first}\n");
        let conversion = convert_text(&text, None, ReadOptions::STRICT).unwrap();
        let tree = tree(&conversion);
        let names = tree.generations().map(|call| (call.rollout.as_str(), call.thread.as_str()));
        let names: Vec<(&str, &str)> = names.collect();
        assert_eq!(names[..2], [("s", "main"), ("t", "main")], "{names:?}");
        assert!(names[2..].iter().all(|name| *name == ("s", "main-2")), "{names:?}");
    }
}

#[test]
fn recorded_ids_are_the_contexts() {
    let step = |prompt: &[u32], said: &[u32], logprobs: &[f64]| json!({"source": "agent", "message": "x", "metrics": {"prompt_token_ids": prompt, "completion_token_ids": said, "logprobs": logprobs}});
    let sound = [step(&[1, 2], &[3], &[-0.5]), step(&[1, 2, 3, 4], &[5, 6], &[-0.1, -0.2])];
    insta::assert_snapshot!(told(&trajectory(sound.to_vec().into()).to_string(), Harness::Atif));
    let short = trajectory(json!([step(&[1, 2], &[3, 4], &[-0.5])])).to_string();
    insta::assert_snapshot!(rejected(&short, Harness::Atif));
}

#[test]
fn a_run_goes_on_in_the_file_that_it_names_and_sub_agents_are_threads() {
    let mut first = trajectory(steps().into());
    first["continued_trajectory_ref"] = "next.json".into();
    let mut agent = trajectory(
        json!([{"source": "user", "message": "find"}, {"source": "agent", "message": "found"}]),
    );
    agent["trajectory_id"] = "finder".into();
    first["subagent_trajectories"] = json!([agent]);
    let copied: Vec<Value> = steps()
        .into_iter()
        .take(2)
        .map(|mut step| {
            step["is_copied_context"] = true.into();
            step
        })
        .collect();
    let next = trajectory(
        [
            copied,
            vec![
                json!({"source": "user", "message": "So far: it failed."}),
                json!({"source": "agent", "message": "done"}),
            ],
        ]
        .concat()
        .into(),
    );
    let beside = [("next.json".to_owned(), next.to_string().into_bytes())];
    let input = Input::memory("first.json", serde_json::to_vec_pretty(&first).unwrap(), beside);
    insta::assert_snapshot!(told_of(&convert_from(&input, None, ReadOptions::STRICT).unwrap()));
    let alone = Input::memory("first.json", first.to_string().into_bytes(), []);
    let conversion = convert_from(&alone, None, ReadOptions::STRICT).unwrap();
    assert!(told_of(&conversion).contains("missing-file: the run goes on in next.json"));
    let damaged = [("next.json".to_owned(), damaged(b"")[0].clone())];
    let input = Input::memory("first.json", first.to_string().into_bytes(), damaged);
    let conversion = convert_from(&input, None, ReadOptions::STRICT).unwrap();
    assert!(
        told_of(&conversion)
            .contains("next.json:1: warning[harness]: unread-beside: it may be a part")
    );
    let mut long = next.clone();
    long["extra"] = json!({"a": "x".repeat(100_000)});
    long.sort_all_objects();
    let long = [("next.json".to_owned(), [b"\xef\xbb\xbf", long.to_string().as_bytes()].concat())];
    let conversion = convert_from(
        &Input::memory("first.json", first.to_string().into_bytes(), long),
        None,
        ReadOptions::STRICT,
    );
    let shown = told_of(&conversion.unwrap());
    assert!(
        shown.contains("assistant/policy done"),
        "what stands before the steps hides none of them: {shown}"
    );
    let other =
        [("next.json".to_owned(), br#"{"type":"user","uuid":"u","sessionId":"s"}"#.to_vec())];
    let conversion = convert_from(
        &Input::memory("first.json", first.to_string().into_bytes(), other),
        None,
        ReadOptions::STRICT,
    );
    let shown = told_of(&conversion.unwrap());
    assert!(
        shown.contains("next.json:1: warning[harness]: no-trajectory: next.json looks like a Claude Code session"),
        "{shown}"
    );
    assert!(!shown.contains(r#""next.json"]"#), "a folder has the session: {shown}");
}

#[test]
fn ordinals_that_stand_twice_and_unknown_versions_are_faults() {
    let mut twice = trajectory(
        json!([{"step_id": 1, "source": "user", "message": "a"}, {"step_id": 1, "source": "agent", "message": "b"}]),
    );
    twice["schema_version"] = "ATIF-v2.0".into();
    insta::assert_snapshot!(rejected(&twice.to_string(), Harness::Atif));
    insta::assert_snapshot!(rejected(
        r#"{"schema_version":"ATIF-v1.4","steps":[{"step_id":"x"}]}"#,
        Harness::Atif
    ));
}

#[test]
fn a_place_that_takes_nothing_more_is_said_to_be_one_that_cannot_be_written() {
    let conversion =
        convert_text(&trajectory(steps().into()).to_string(), None, ReadOptions::STRICT).unwrap();
    let error = atif::write(&tree(&conversion), [0_u8; 16].as_mut_slice()).unwrap_err();
    assert!(error.to_string().starts_with("cannot be written: "), "{error}");
    let error = HarnessError::from(tree(&conversion).write([0_u8; 16].as_mut_slice()).unwrap_err());
    assert!(error.to_string().starts_with("cannot be written: "), "{error}");
}

fn exported(tree: &BranchTree) -> Vec<u8> {
    let mut bytes = Vec::new();
    atif::write(tree, &mut bytes).unwrap();
    bytes
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Every file of the tests, and of the conformance vectors where they lie beside the checkout.
fn samples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    files(&root.join("tests/fixtures"), &mut found);
    files(&root.join("../../examples/sessions"), &mut found);
    let shared = root.join("../../../shared");
    for folder in ["vectors", "transcripts"].map(|name| shared.join(name)) {
        if folder.is_dir() {
            files(&folder, &mut found);
        } else {
            eprintln!("skipped: {} is not there", folder.display());
        }
    }
    found.sort();
    found
}

#[test]
fn records_that_are_written_as_a_trajectory_come_back_as_they_were() {
    let mut count = 0;
    for path in samples() {
        let Ok(conversion) = convert(&path, ReadOptions::LENIENT) else { continue };
        let (tree, _) =
            BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT).unwrap();
        let bytes = exported(&tree);
        let back =
            convert_from(&Input::memory("t.json", bytes, []), None, ReadOptions::STRICT).unwrap();
        assert_eq!(back.records, tree.records(), "{}", path.display());
        let again = told::tree(&back);
        assert!(
            tree.views().zip(again.views()).all(|(a, b)| a.context_spans() == b.context_spans())
        );
        count += 1;
    }
    assert!(count > 10, "{count}");
}

#[test]
fn a_trajectory_holds_what_its_format_can_say_and_its_text_once() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sessions/compacted.jsonl");
    let conversion = convert(&path, ReadOptions::STRICT).unwrap();
    let bytes = exported(&tree(&conversion));
    let text: usize = conversion
        .records
        .iter()
        .map(|record| match record {
            Record::Segment(segment) => segment.text.as_ref().unwrap().len(),
            _ => 0,
        })
        .sum();
    let trajectory: Value = serde_json::from_slice(&bytes).unwrap();
    let kept = trajectory["extra"]["eviction_records"].to_string();
    assert!(conversion.records.iter().all(|record| match record {
        Record::Segment(segment) =>
            segment.text.as_ref().unwrap().len() < 40
                || !kept.contains(segment.text.as_ref().unwrap()),
        _ => true,
    }));
    assert!(text > 0);
    let mut steps = trajectory.clone();
    steps.as_object_mut().unwrap().remove("extra");
    insta::assert_snapshot!(serde_json::to_string_pretty(&steps).unwrap());
}

#[test]
fn a_trajectory_whose_steps_were_changed_behind_its_records_is_named() {
    let conversion =
        convert_text(&trajectory(steps().into()).to_string(), None, ReadOptions::STRICT).unwrap();
    let mut value: Value = serde_json::from_slice(&exported(&tree(&conversion))).unwrap();
    value["steps"] = json!([value["steps"][0], value["steps"][1]]);
    insta::assert_snapshot!(rejected(&value.to_string(), Harness::Atif));
    let lenient = convert_text(&value.to_string(), None, ReadOptions::LENIENT).unwrap();
    assert_eq!(tree(&lenient).generations().len(), 0);
}

//! What a session of Qwen Code becomes: branches by parents, compressions as whole lists, forked
//! history as context.

use crate::shown::{faults, told};
use pleach_harness::ReadOptions;

fn line(uuid: &str, parent: &str, kind: &str, rest: &str) -> String {
    let parent = if parent.is_empty() { "null".into() } else { format!("{parent:?}") };
    format!(
        r#"{{"uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","version":"0.12.0","type":"{kind}"{rest}}}"#
    )
}

fn parts(role: &str, parts: &str) -> String {
    format!(r#","message":{{"role":"{role}","parts":[{parts}]}}"#)
}

fn text(text: &str) -> String {
    format!(r#"{{"text":"{text}"}}"#)
}

fn call(id: &str) -> String {
    format!(r#"{{"functionCall":{{"id":"{id}","name":"read_file","args":{{"path":"a"}}}}}}"#)
}

fn response(id: &str, output: &str) -> String {
    format!(
        r#"{{"functionResponse":{{"id":"{id}","name":"read_file","response":{{"output":"{output}"}}}}}}"#
    )
}

fn user(uuid: &str, parent: &str, said: &str) -> String {
    line(uuid, parent, "user", &parts("user", &text(said)))
}

fn says(uuid: &str, parent: &str, said: &str) -> String {
    line(uuid, parent, "assistant", &format!(r#","model":"qwen3-coder"{}"#, parts("model", said)))
}

fn compression(uuid: &str, parent: &str, history: &[String]) -> String {
    let payload = format!(
        r#"{{"info":{{"compressionStatus":1}},"compressedHistory":[{}]}}"#,
        history.join(",")
    );
    line(
        uuid,
        parent,
        "system",
        &format!(r#","subtype":"chat_compression","systemPayload":{payload}"#),
    )
}

fn content(role: &str, parts: &str) -> String {
    format!(r#"{{"role":"{role}","parts":[{parts}]}}"#)
}

fn session(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>().into_bytes()
}

fn strict(lines: &[String]) -> String {
    told("s.jsonl", &session(lines), &[], ReadOptions::STRICT)
}

#[test]
fn a_compression_keeps_the_identity_of_what_its_list_repeats() {
    let thought = r#"{"text":"hm","thought":true}"#;
    insta::assert_snapshot!(strict(&[
        user("u1", "", "hi"),
        says("a1", "u1", &format!("{thought},{},{}", text("look"), call("c1"))),
        line("r1", "a1", "tool_result", &parts("user", &response("c1", "out"))),
        says("a2", "r1", &text("done")),
        line("t", "a2", "system", r#","subtype":"ui_telemetry","systemPayload":{"uiEvent":{}}"#),
        user("u2", "t", "on"),
        compression(
            "k",
            "u2",
            &[
                content("user", &text("sum")),
                content("model", &text("Got it.")),
                content("model", &text("done")),
                content("user", &text("on")),
            ]
        ),
        says("a3", "k", &text("yes")),
    ]));
}

#[test]
fn a_rewind_is_a_branch_and_forked_lines_are_context() {
    let forked =
        |line: String| line.replacen("\"type\"", r#""forkedFrom":{"sessionId":"p"},"type""#, 1);
    insta::assert_snapshot!(strict(&[
        forked(user("u1", "", "hi")),
        forked(says("a1", "u1", &text("first"))),
        user("u2", "a1", "wrong"),
        says("a2", "u2", &text("way")),
        user("u3", "a1", "right"),
        says("a3", "u3", &text("way")),
    ]));
}

#[test]
fn a_compression_that_failed_changes_nothing() {
    let failed = compression("k", "a1", &[content("user", &text("sum"))])
        .replace("\"compressionStatus\":1", "\"compressionStatus\":2");
    let shown = strict(&[
        user("u1", "", "hi"),
        says("a1", "u1", &text("x")),
        failed,
        user("u2", "k", "on"),
        says("a2", "u2", &text("y")),
    ]);
    assert!(
        !shown.contains("evict")
            && !shown.contains("replace")
            && shown.contains("compaction-failed"),
        "{shown}"
    );
}

#[test]
fn lines_that_hang_nowhere_repeat_or_contradict_are_told_apart() {
    let twice = [
        user("u1", "", "hi"),
        user("u1", "", "hi"),
        says("a1", "u1", &text("x")),
        says("a1", "u1", &text("y")),
    ];
    let shown = strict(&twice);
    assert!(shown.contains("s.jsonl:2: uuid: warning[harness]: repeated-line"), "{shown}");
    assert_eq!(shown.matches("generation").count(), 1, "{shown}");
    assert_eq!(
        faults(
            "s.jsonl",
            &session(&[user("u1", "", "hi"), user("u1", "", "ho"), says("a1", "gone", &text("x"))])
        ),
        [
            "s.jsonl:2: uuid: duplicate-uuid: the uuid u1 stands above with other content; the first is kept",
            "s.jsonl:3: parentUuid: dangling-parent: the parent gone is not in the file above; the line before it is taken"
        ]
    );
}

#[test]
fn a_compression_without_a_list_leaves_the_context_as_it_was() {
    let empty =
        line("k", "a1", "system", r#","subtype":"chat_compression","systemPayload":{"info":{}}"#);
    assert_eq!(
        faults(
            "s.jsonl",
            &session(&[
                user("u1", "", "hi"),
                says("a1", "u1", &text("x")),
                empty,
                says("a2", "k", &text("y"))
            ])
        ),
        [
            "s.jsonl:3: systemPayload.compressedHistory: no-summary: the compression has no list; the context stays as it was"
        ]
    );
}

//! What a session of Gemini CLI becomes: messages as they were last written, rewinds, and lists
//! that are set whole.

use crate::damaged::damaged;
use crate::shown::{faults, told};
use pleach_harness::ReadOptions;

const START: &str = r#"{"sessionId":"abc","projectHash":"h","startTime":"2026-02-01T10:00:00Z"}"#;

fn user(id: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-02-01T10:00:00Z","type":"user","content":[{{"text":"{text}"}}]}}"#
    )
}

fn says(id: &str, text: &str, rest: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-02-01T10:00:01Z","type":"gemini","content":"{text}","model":"gemini-3-pro"{rest}}}"#
    )
}

fn tools(result: &str) -> String {
    format!(
        r#","toolCalls":[{{"id":"c1","name":"read_file","args":{{"path": "a"}},"status":"success"{result}}}]"#
    )
}

fn result(output: &str) -> String {
    format!(
        r#","result":[{{"functionResponse":{{"id":"c1","name":"read_file","response":{{"output":"{output}"}}}}}}]"#
    )
}

fn set(messages: &[String]) -> String {
    format!(r#"{{"$set":{{"messages":[{}]}}}}"#, messages.join(","))
}

fn session(lines: &[String]) -> Vec<u8> {
    let lines: Vec<&str> = std::iter::once(START).chain(lines.iter().map(String::as_str)).collect();
    (lines.join("\n") + "\n").into_bytes()
}

fn strict(lines: &[String]) -> String {
    told("session-1.jsonl", &session(lines), &[], ReadOptions::STRICT)
}

#[test]
fn a_message_that_is_written_again_is_the_last_one_and_its_results_stand_behind_it() {
    let thoughts = r#","thoughts":[{"subject":"Look","description":"at it","timestamp":"t"}]"#;
    insta::assert_snapshot!(strict(&[
        user("u1", "hi"),
        says("g1", "look", thoughts),
        says("g1", "look", &format!("{thoughts}{}", tools(""))),
        r#"{"$set":{"lastUpdated":"t"}}"#.into(),
        says("g1", "look", &format!("{thoughts}{}", tools(&result("out")))),
        r#"{"id":"i1","timestamp":"t","type":"info","content":"note"}"#.into(),
        says("g2", "done", ""),
    ]));
}

#[test]
fn a_result_of_a_call_whose_id_an_earlier_call_had_is_a_result_of_its_own() {
    let answers = |id: &str, output: &str| {
        format!(
            r#"{{"id":"{id}","timestamp":"t","type":"user","content":[{{"functionResponse":{{"id":"c1","name":"read_file","response":{{"output":"{output}"}}}}}}]}}"#
        )
    };
    let shown = strict(&[
        user("u1", "hi"),
        says("g1", "look", &tools(&result("one"))),
        // Told again, and once only.
        answers("r1", "one"),
        says("g2", "again", &tools("")),
        answers("r2", "two"),
        says("g3", "done", ""),
    ]);
    assert_eq!(
        (shown.matches("\"one\"").count(), shown.matches("\"two\"").count()),
        (1, 1),
        "{shown}"
    );
}

#[test]
fn a_list_that_is_set_evicts_what_it_leaves_out_and_masks_results_in_place() {
    let first =
        [user("u1", "hi"), says("g1", "look", &tools(&result("out"))), says("g2", "done", "")];
    let masked = [
        user("u1", "hi"),
        says("g1", "look", &tools(&result("[masked]"))),
        says("g2", "done", ""),
        user("u2", "on"),
    ];
    let compressed = [user("s1", "sum"), says("s2", "Got it.", ""), user("u2", "on")];
    insta::assert_snapshot!(strict(
        &[
            first.to_vec(),
            vec![
                user("u2", "on"),
                set(&masked),
                says("g3", "yes", ""),
                set(&compressed),
                says("g4", "end", "")
            ]
        ]
        .concat()
    ));
}

#[test]
fn a_rewind_goes_on_from_before_the_message_also_inside_a_list_that_was_set() {
    insta::assert_snapshot!(strict(&[
        user("u1", "hi"),
        says("g1", "one", ""),
        user("u2", "wrong"),
        says("g2", "two", ""),
        r#"{"$rewindTo":"u2"}"#.into(),
        user("u3", "right"),
        says("g3", "three", ""),
        set(&[user("s1", "sum"), user("u3", "right"), says("g3", "three", "")]),
        r#"{"$rewindTo":"u3"}"#.into(),
        user("u4", "again"),
        says("g4", "four", ""),
    ]));
}

#[test]
fn a_document_of_an_earlier_version_says_that_it_records_no_compression() {
    let text = format!(
        "{{\n  \"sessionId\": \"abc\",\n  \"projectHash\": \"h\",\n  \"messages\": [\n    {},\n    {}\n  ]\n}}\n",
        user("u1", "hi"),
        says("g1", "look", &tools(&result("out")))
    );
    insta::assert_snapshot!(told("session-1.json", text.as_bytes(), &[], ReadOptions::STRICT));
}

#[test]
fn a_sub_agents_file_is_a_thread_that_starts_from_nothing() {
    let agent = session(&[user("x1", "sub"), says("x2", "agent", "")]);
    let text = session(&[user("u1", "hi"), says("g1", "one", "")]);
    let shown =
        told("session-1.jsonl", &text, &[("abc/agent-7.jsonl", &agent)], ReadOptions::STRICT);
    assert!(
        shown.contains("of thread agent-7 by gemini-3-pro") && shown.contains("context 1 = root"),
        "{shown}"
    );
}

#[test]
fn an_id_that_is_no_name_leads_to_no_folder() {
    let agent = session(&[user("x1", "sub"), says("x2", "agent", "")]);
    for id in ["", "../abc", "a/b", "/abc"] {
        let text = session(&[user("u1", "hi"), says("g1", "one", "")]);
        let text = String::from_utf8(text).unwrap().replacen(r#""abc""#, &format!("{id:?}"), 1);
        let beside: [(&str, &[u8]); 4] = [
            ("agent-0.jsonl", &agent),
            ("../abc/agent-1.jsonl", &agent),
            ("a/b/agent-2.jsonl", &agent),
            ("/abc/agent-3.jsonl", &agent),
        ];
        let shown = told("session-1.jsonl", text.as_bytes(), &beside, ReadOptions::STRICT);
        assert!(!shown.contains("of thread agent"), "{id:?}: {shown}");
    }
}

#[test]
fn a_message_that_a_rewind_took_back_is_said_again_in_its_new_place() {
    let shown = strict(&[
        user("u1", "hi"),
        says("g1", "one", ""),
        r#"{"$rewindTo":"u1"}"#.into(),
        user("u2", "ho"),
        says("g1", "two", ""),
    ]);
    assert!(shown.contains(r#"Policy Content "one""#), "{shown}");
    assert!(
        shown.contains(r#"Policy Content "two""#) && shown.lines().any(|line| line == "    [u2]"),
        "{shown}"
    );
}

#[test]
fn a_rewind_to_a_message_that_is_not_there_takes_back_all() {
    let text = session(&[
        user("u1", "hi"),
        says("g1", "one", ""),
        r#"{"$rewindTo":"gone"}"#.into(),
        user("u2", "ho"),
        says("g2", "two", ""),
    ]);
    assert_eq!(
        faults("s.jsonl", &text),
        [
            "s.jsonl:4: $rewindTo: rewind-missing: the message gone is not in the list; the harness takes back all of it"
        ]
    );
}

#[test]
fn a_sub_agents_file_that_is_damaged_is_read_up_to_there_with_a_warning() {
    let text = session(&[user("u1", "hi"), says("g1", "one", "")]);
    let agent = session(&[user("x1", "sub"), says("x2", "agent", "")]);
    for (agent, calls) in damaged(&agent).iter().zip([0, 1]) {
        let shown =
            told("session-1.jsonl", &text, &[("abc/agent-7.jsonl.gz", agent)], ReadOptions::STRICT);
        let count = |thread: &str| shown.matches(&format!("of thread {thread}")).count();
        assert_eq!((count("main"), count("agent-7")), (1, calls), "{shown}");
        assert!(
            shown.contains(
                "abc/agent-7.jsonl.gz:1: warning[harness]: unread-beside: it may be a part"
            ),
            "{shown}"
        );
        assert!(
            shown.contains(r#"["session-1.jsonl", "abc/agent-7.jsonl.gz"]"#),
            "a folder has it once: {shown}"
        );
    }
}

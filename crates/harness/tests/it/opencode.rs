//! What a session of OpenCode becomes: summaries that count only when they are complete, tails
//! before or behind them, results that are pruned from a time on.

use crate::damaged::damaged;
use crate::shown::{faults, told, told_of};
use pleach_harness::{Input, ReadOptions};

fn info(id: &str, role: &str, created: u64, rest: &str) -> String {
    format!(
        r#"{{"id":"{id}","sessionID":"ses_1","role":"{role}","time":{{"created":{created}}}{rest}}}"#
    )
}

fn message(info: &str, parts: &[String]) -> String {
    format!(r#"{{"info":{info},"parts":[{}]}}"#, parts.join(","))
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

fn user(id: &str, created: u64, said: &str) -> String {
    message(&info(id, "user", created, ""), &[text(said)])
}

fn says(id: &str, created: u64, parts: &[String]) -> String {
    message(&info(id, "assistant", created, r#","modelID":"m","finish":"stop""#), parts)
}

fn tool(call: &str, compacted: &str) -> String {
    format!(
        r#"{{"type":"tool","tool":"read","callID":"{call}","state":{{"status":"completed","input":{{"path":"a"}},"output":"out of {call}","time":{{"start":1,"end":2{compacted}}}}}}}"#
    )
}

fn asks(id: &str, created: u64, tail: &str) -> String {
    message(
        &info(id, "user", created, ""),
        &[format!(r#"{{"type":"compaction","auto":true{tail}}}"#)],
    )
}

fn sums(id: &str, parent: &str, created: u64, rest: &str) -> String {
    message(
        &info(
            id,
            "assistant",
            created,
            &format!(r#","modelID":"m","summary":true,"parentID":"{parent}"{rest}"#),
        ),
        &[text("sum")],
    )
}

const START: u64 = 1_770_000_000_000;

fn session(messages: &[String]) -> Vec<u8> {
    let info = format!(
        r#"{{"id":"ses_1","projectID":"p","version":"1.2.0","time":{{"created":{START}}}}}"#
    );
    format!(r#"{{"info":{info},"messages":[{}]}}"#, messages.join(",\n")).into_bytes()
}

fn strict(messages: &[String]) -> String {
    told("session.json", &session(messages), &[], ReadOptions::STRICT)
}

fn start() -> Vec<String> {
    vec![
        user("m1", START + 1, "hi"),
        says("m2", START + 2, &[text("look"), tool("c1", "")]),
        says("m3", START + 3, &[text("done")]),
        user("m4", START + 4, "on"),
    ]
}

#[test]
fn a_complete_summary_leaves_the_request_and_itself() {
    insta::assert_snapshot!(strict(
        &[
            start(),
            vec![
                asks("m5", START + 5, ""),
                sums("m6", "m5", START + 6, r#","finish":"stop""#),
                user("m7", START + 7, "go"),
                says("m8", START + 8, &[text("yes")]),
            ]
        ]
        .concat()
    ));
}

#[test]
fn of_results_whose_calls_have_one_id_each_that_was_pruned_is_cleared_once() {
    let pruned = |at: u64| format!(r#","compacted":{}"#, START + at);
    let shown = strict(&[
        user("m1", START + 1, "hi"),
        says("m2", START + 2, &[text("look"), tool("c1", &pruned(5))]),
        says("m3", START + 3, &[text("look"), tool("c1", &pruned(9))]),
        says("m4", START + 4, &[text("look"), tool("c1", "")]),
        says("m6", START + 6, &[text("on")]),
        says("m10", START + 10, &[text("end")]),
    ]);
    let last = shown.lines().rfind(|line| line.trim_start().starts_with('[')).unwrap();
    assert_eq!(last.matches("c1#cleared").count(), 2, "{shown}");
    assert!(last.contains("m2 m2 c1#cleared m3 m3 c1#cleared m4 m4 c1 m6"), "{shown}");
}

#[test]
fn messages_and_parts_stand_in_the_order_of_their_times_where_ids_rolled_over() {
    let part =
        |id: &str, said: &str| format!(r#"{{"id":"prt_{id}","type":"text","text":"{said}"}}"#);
    let parts = [part("000000000001y", "second"), part("fffffffff001x", "first")];
    // As the files of a storage folder are listed.
    let messages = [
        user("msg_000001000001c", START + 3, "behind"),
        says("msg_000002000001d", START + 3, &[text("end")]),
        user("msg_ffffff000001a", START + 1, "before"),
        says("msg_ffffff000001b", START + 2, &parts),
    ];
    let shown = strict(&messages);
    let places: Vec<Option<usize>> = ["before", "first", "second", "behind", "end"]
        .iter()
        .map(|said| shown.find(&format!("{said:?}")))
        .collect();
    assert!(places.is_sorted() && places[0].is_some(), "{shown}");
}

#[test]
fn a_session_of_a_sub_agent_that_is_not_there_is_a_warning() {
    let task = r#"{"type":"tool","tool":"task","callID":"c","state":{"status":"completed","input":{},"output":"done","metadata":{"sessionId":"ses_2"},"time":{}}}"#;
    let shown = strict(&[
        user("m1", START + 1, "hi"),
        says("m2", START + 2, &[task.to_owned(), task.replace("\"c\"", "\"d\"")]),
    ]);
    let warned = "session.json:1: state.metadata.sessionId: warning[harness]: missing-session: the sub-agent's session ses_2 is not there";
    assert_eq!(shown.matches(warned).count(), 1, "{shown}");
}

#[test]
fn a_summary_that_failed_changes_nothing() {
    let failed =
        sums("m6", "m5", START + 6, r#","finish":"error","error":{"name":"ContextOverflowError"}"#);
    let shown = strict(
        &[start(), vec![asks("m5", START + 5, ""), failed, says("m7", START + 7, &[text("yes")])]]
            .concat(),
    );
    assert!(shown.contains("compaction-failed") && !shown.contains("evict"), "{shown}");
    assert!(shown.contains("of thread compact-1 by m, unrecorded [\"prompt\"]"), "{shown}");
}

#[test]
fn a_tail_stands_before_the_summary_until_april_2026_and_behind_it_since() {
    let with_tail = |offset: u64| {
        [
            start(),
            vec![
                asks("m5", START + 5, r#","tail_start_id":"m3""#),
                sums("m6", "m5", START + offset, r#","finish":"stop""#),
                says("m7", START + offset + 1, &[text("yes")]),
            ],
        ]
        .concat()
    };
    let last =
        |shown: &str| shown.lines().rfind(|line| line.starts_with("    [")).unwrap().to_owned();
    assert_eq!(last(&strict(&with_tail(6))), "    [m3 m4 m5 m6]");
    assert_eq!(last(&strict(&with_tail(8_000_000_000))), "    [m5 m6 m3 m4]");
}

#[test]
fn a_stale_tail_leaves_all_of_the_history() {
    let shown = strict(
        &[
            start(),
            vec![
                asks(
                    "m5",
                    START + 5,
                    r#","tail_start_id":"msg_of_the_session_it_was_forked_from""#,
                ),
                sums("m6", "m5", START + 6, r#","finish":"stop""#),
                says("m7", START + 7, &[text("yes")]),
            ],
        ]
        .concat(),
    );
    assert!(shown.contains("[m1 m2 m2 c1 m3 m4 m5 m6]") && shown.contains("stale-tail"), "{shown}");
}

#[test]
fn a_result_that_was_pruned_between_two_requests_is_there_for_the_first_only() {
    let pruned = format!(r#","compacted":{}"#, START + 5);
    insta::assert_snapshot!(strict(&[
        user("m1", START + 1, "hi"),
        says("m2", START + 2, &[text("look"), tool("c1", &pruned)]),
        says("m3", START + 4, &[text("saw it")]),
        user("m4", START + 6, "on"),
        says("m5", START + 7, &[text("saw less")]),
    ]));
}

#[test]
fn steps_are_calls_and_what_failed_or_never_ended_is_sent_as_the_harness_does() {
    let step = r#"{"type":"step-start"}"#.to_owned();
    let running =
        r#"{"type":"tool","tool":"bash","callID":"c2","state":{"status":"running","input":{}}}"#
            .to_owned();
    let failed = message(
        &info("m3", "assistant", START + 3, r#","modelID":"m","error":{"name":"APIError"}"#),
        &[text("half")],
    );
    insta::assert_snapshot!(strict(&[
        user("m1", START + 1, "hi"),
        says(
            "m2",
            START + 2,
            &[step.clone(), text("one"), tool("c1", ""), step, text("two"), running]
        ),
        failed,
        says("m4", START + 4, &[text("three")]),
    ]));
}

#[test]
fn calls_older_than_their_session_were_copied_and_are_context() {
    let shown = strict(&[
        user("m1", START - 9, "hi"),
        says("m2", START - 8, &[text("old")]),
        user("m3", START + 1, "on"),
        says("m4", START + 2, &[text("new")]),
    ]);
    assert!(
        shown.contains("copied-history") && shown.matches("generation").count() == 1,
        "{shown}"
    );
}

#[test]
fn a_summary_without_its_request_and_a_message_that_stands_twice_are_faults() {
    let text = session(&[
        user("m1", START + 1, "hi"),
        user("m1", START + 1, "ho"),
        sums("m2", "gone", START + 2, r#","finish":"stop""#),
        says("m3", START + 3, &[text("x")]),
    ]);
    assert_eq!(
        faults("s.json", &text),
        [
            "s.json:1: info.id: duplicate-id: message m1 stands above already with other content; the first is kept",
            "s.json:1: info.parentID: request-missing: the request gone of the summary is not in the session; the list stays as it was"
        ]
    );
}

#[test]
fn a_message_that_stands_twice_with_the_same_content_is_a_warning() {
    let shown = strict(&[
        user("m1", START + 1, "hi"),
        user("m1", START + 1, "hi"),
        says("m2", START + 2, &[text("x")]),
    ]);
    assert!(
        shown.contains("[m1]") && shown.contains("repeated-line: the message m1 repeats one"),
        "{shown}"
    );
}

#[test]
fn a_storage_folder_is_a_session_with_its_sub_agents() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let session = |id: &str, rest: &str| {
        format!(
            r#"{{"id":"{id}","projectID":"p","version":"1.0.0","time":{{"created":{START}}}{rest}}}"#
        )
    };
    write("session/p/ses_1.json", &session("ses_1", ""));
    write("session/p/ses_2.json", &session("ses_2", r#","parentID":"ses_1""#));
    for (ses, msg, role, said) in [
        ("ses_1", "msg_1", "user", "hi"),
        ("ses_1", "msg_2", "assistant", "ho"),
        ("ses_2", "msg_3", "user", "sub"),
        ("ses_2", "msg_4", "assistant", "agent"),
    ] {
        write(
            &format!("message/{ses}/{msg}.json"),
            &info(msg, role, START + 1, r#","modelID":"m""#),
        );
        write(&format!("part/{msg}/prt_1.json"), &text(said));
    }
    insta::assert_snapshot!(
        told_of(&Input::open(folder.path()).unwrap(), ReadOptions::STRICT)
            .replace(&folder.path().display().to_string(), "")
    );
    let one = told_of(
        &Input::open(folder.path().join("session/p/ses_1.json")).unwrap(),
        ReadOptions::STRICT,
    );
    assert!(one.contains("[msg_1]") && one.contains("of thread ses_2"), "{one}");
    let sub = told_of(
        &Input::open(folder.path().join("session/p/ses_2.json")).unwrap(),
        ReadOptions::STRICT,
    );
    assert!(sub.contains("[msg_3]") && !sub.contains("msg_1"), "{sub}");
    std::fs::write(folder.path().join("session/p/ses_0.json.gz"), &damaged(b"")[0]).unwrap();
    let beside = told_of(
        &Input::open(folder.path().join("session/p/ses_1.json")).unwrap(),
        ReadOptions::STRICT,
    );
    assert!(
        beside.contains("of thread ses_2")
            && beside.contains("ses_0.json.gz:1: warning[harness]: unread-beside"),
        "{beside}"
    );
    std::fs::remove_file(folder.path().join("session/p/ses_0.json.gz")).unwrap();
    write("session/p/ses_3.json", &session("ses_3", ""));
    let error = pleach_harness::detect(&Input::open(folder.path()).unwrap()).unwrap_err();
    assert!(
        matches!(error, pleach_harness::HarnessError::Folder { .. }),
        "many sessions are no session: {error}"
    );
}

//! What an event log of OpenHands becomes: condensations by event ids and an offset, and requests
//! without halves of pairs.

use crate::shown::{faults, told, told_of};
use pleach_harness::{Input, ReadOptions, convert_from};
use pleach_tree::BranchTree;

fn event(id: &str, kind: &str, source: &str, rest: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-02-01T10:00:00","source":"{source}","kind":"{kind}"{rest}}}"#
    )
}

fn user(id: &str, text: &str) -> String {
    event(
        id,
        "MessageEvent",
        "user",
        &format!(
            r#","llm_message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}"#
        ),
    )
}

fn says(id: &str, response: &str, text: &str) -> String {
    let message = format!(
        r#","llm_message":{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#
    );
    event(id, "MessageEvent", "agent", &format!(r#"{message},"llm_response_id":"{response}""#))
}

fn acts(id: &str, response: &str, call: &str) -> String {
    let tool = format!(
        r#""tool_name":"bash","tool_call_id":"{call}","tool_call":{{"id":"{call}","name":"bash","arguments":"{{\"command\": \"ls\"}}"}}"#
    );
    event(
        id,
        "ActionEvent",
        "agent",
        &format!(r#","thought":[],{tool},"llm_response_id":"{response}""#),
    )
}

fn observes(id: &str, call: &str) -> String {
    let observation = r#"{"kind":"TerminalObservation","content":[{"type":"text","text":"out"}]}"#;
    event(
        id,
        "ObservationEvent",
        "environment",
        &format!(r#","tool_name":"bash","tool_call_id":"{call}","observation":{observation}"#),
    )
}

fn condenses(id: &str, forgotten: &[&str], offset: usize) -> String {
    let rest = format!(
        r#","forgotten_event_ids":{forgotten:?},"summary":"sum of {id}","summary_offset":{offset},"llm_response_id":"r""#
    );
    event(id, "Condensation", "environment", &rest)
}

fn log(events: &[String]) -> Vec<u8> {
    events.iter().flat_map(|event| [event.as_str(), "\n"]).collect::<String>().into_bytes()
}

fn strict(events: &[String]) -> String {
    told("events.jsonl", &log(events), &[], ReadOptions::STRICT)
}

fn system() -> String {
    event(
        "s",
        "SystemPromptEvent",
        "agent",
        r#","system_prompt":{"type":"text","text":"be good"},"tools":[]"#,
    )
}

#[test]
fn a_summary_stands_at_its_offset_and_a_later_condensation_forgets_it() {
    insta::assert_snapshot!(strict(&[
        system(),
        user("e1", "hi"),
        acts("e2", "r1", "c1"),
        acts("e3", "r1", "c2"),
        observes("e4", "c1"),
        observes("e5", "c2"),
        says("e6", "r2", "done"),
        condenses("k1", &["e2", "e3", "e4", "e5"], 2),
        user("e7", "on"),
        says("e8", "r3", "yes"),
        event("q", "CondensationRequest", "environment", r#","reason":"manual""#),
        condenses("k2", &["k1-summary", "e6"], 2),
        says("e9", "r4", "end"),
    ]));
}

#[test]
fn an_action_of_a_batch_that_is_forgotten_takes_the_batch_and_its_results_along() {
    insta::assert_snapshot!(strict(&[
        system(),
        user("e1", "hi"),
        acts("e2", "r1", "c1"),
        acts("e3", "r1", "c2"),
        observes("e4", "c1"),
        observes("e5", "c2"),
        condenses("k1", &["e2"], 2),
        says("e6", "r2", "done"),
    ]));
}

#[test]
fn an_action_without_an_answer_is_left_out_and_comes_back_with_its_answer() {
    insta::assert_snapshot!(strict(&[
        system(),
        user("e1", "hi"),
        acts("e2", "r1", "c1"),
        user("e3", "wait"),
        says("e4", "r2", "waiting"),
        observes("e5", "c1"),
        says("e6", "r3", "done"),
    ]));
}

#[test]
fn an_answer_that_comes_after_a_condensation_and_other_calls_brings_its_action_back() {
    let shown = strict(&[
        user("e1", "hi"),
        acts("e2", "r1", "c1"),
        says("e3", "r2", "waiting"),
        condenses("k1", &["e1"], 0),
        says("e4", "r3", "still"),
        user("e5", "and now"),
        says("e6", "r4", "soon"),
        observes("e7", "c1"),
        says("e8", "r5", "there"),
        user("e9", "good"),
        says("e10", "r6", "bye"),
    ]);
    let contexts: Vec<&str> =
        shown.lines().filter(|line| line.starts_with("    [")).map(str::trim).collect();
    assert_eq!(
        contexts[contexts.len() - 4..],
        [
            "[k1-summary e3 e4 e5]",
            "[k1-summary e3 e4 e5 e6 e7]",
            "[k1-summary e2 e3 e4 e5 e6 e7]",
            "[k1-summary e2 e3 e4 e5 e6 e7 e8 e9]"
        ],
        "{shown}"
    );
}

#[test]
fn a_condensation_that_forgets_nothing_is_a_warning() {
    let event = event(
        "k",
        "Condensation",
        "environment",
        r#","forgotten_event_ids":[],"llm_response_id":"r""#,
    );
    let shown =
        strict(&[system(), user("e1", "hi"), says("e2", "r1", "x"), event, says("e3", "r2", "y")]);
    assert!(shown.contains("nothing-removed") && !shown.contains("evict"), "{shown}");
}

#[test]
fn text_in_an_observation_that_looks_like_an_event_is_text() {
    let quoted = observes("e3", "c1")
        .replace("\"out\"", r#""{\"kind\":\"Condensation\",\"forgotten_event_ids\":[\"e1\"]}""#);
    assert!(
        !strict(&[
            system(),
            user("e1", "hi"),
            acts("e2", "r1", "c1"),
            quoted,
            says("e4", "r2", "x")
        ])
        .contains("evict")
    );
}

#[test]
fn events_that_contradict_each_other_or_are_missing_are_faults() {
    let text = log(&[
        system(),
        user("e1", "hi"),
        user("e1", "ho"),
        acts("e2", "r1", "c1"),
        observes("e3", "c1"),
        observes("e4", "c1"),
        condenses("k", &["gone", "e2", "e3"], 2),
        says("e5", "r2", "x"),
    ]);
    assert_eq!(
        faults("events.jsonl", &text),
        [
            "events.jsonl:3: id: duplicate-id: the event e1 stands above with other content; the first is kept",
            "events.jsonl:6: tool_call_id: duplicate-result: call c1 has a second answer; the first is kept",
            "events.jsonl:7: forgotten_event_ids: forgotten-missing: the forgotten event gone is not in the file above; it is passed over"
        ]
    );
}

#[test]
fn an_answer_is_to_the_newest_call_of_its_id_that_has_none() {
    let shown = strict(&[
        user("u", "go"),
        acts("a1", "r1", "c"),
        observes("o1", "c"),
        acts("a2", "r2", "c"),
        observes("o2", "c"),
        condenses("k", &["a1", "o1"], 0),
        says("a3", "r3", "done"),
    ]);
    assert!(shown.contains("[k-summary u a2 o2]\n"), "{shown}");
    let twice = [
        user("u", "go"),
        acts("a1", "r1", "c"),
        observes("o1", "c"),
        observes("o2", "c"),
        says("a3", "r3", "done"),
    ];
    let found = faults("events.jsonl", &log(&twice));
    assert!(found[0].contains("duplicate-result: call c has a second answer"), "{found:?}");
}

#[test]
fn a_conversations_folder_is_read_in_the_order_of_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events");
    std::fs::create_dir(&events).unwrap();
    std::fs::write(folder.path().join("base_state.json"), r#"{"agent":{"llm":{"model":"m"}}}"#)
        .unwrap();
    for (name, event) in [
        ("event-00002-c", says("e2", "r1", "x")),
        ("event-00000-a", system()),
        ("event-00001-b", user("e1", "hi")),
    ] {
        std::fs::write(events.join(name).with_extension("json"), event).unwrap();
    }
    let shown = told_of(&Input::open(folder.path()).unwrap(), ReadOptions::STRICT);
    assert!(
        shown.contains("generation 0 in context 0 of thread main by m") && shown.contains("[s e1]"),
        "{shown}"
    );
}

#[test]
fn a_folder_whose_first_event_is_long_or_damaged_is_known_by_what_stands_behind_it() {
    let long = event("s", "", "agent", "").replace(
        r#""kind":"""#,
        &format!(
            r#""system_prompt":{{"type":"text","text":"{}"}},"tools":[],"kind":"SystemPromptEvent""#,
            "be good ".repeat(20_000)
        ),
    );
    for (first, sound) in [(long.as_str(), true), ("", false)] {
        let folder = tempfile::tempdir().unwrap();
        let events = folder.path().join("events");
        std::fs::create_dir(&events).unwrap();
        for (at, event) in [first, &user("u", "hi"), &says("a", "r1", "done")].iter().enumerate() {
            std::fs::write(events.join(format!("event-{at:05}-x.json")), event).unwrap();
        }
        let shown = told_of(&Input::open(folder.path()).unwrap(), ReadOptions::STRICT);
        assert!(shown.contains("a: Policy Content \"done\""), "{shown}");
        assert_eq!(shown.contains("s: System Harness"), sound, "{shown}");
    }
}

#[test]
fn the_shared_log_ends_in_the_view_that_the_sdk_computes() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/transcripts/openhands");
    let Ok(expected) = std::fs::read_to_string(folder.join("expected_view.json")) else {
        eprintln!("skipped: the shared log is not there");
        return;
    };
    let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let input = Input::open(folder.join("events.jsonl")).unwrap();
    let conversion = convert_from(&input, None, ReadOptions::STRICT).unwrap();
    let (tree, _) =
        BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT).unwrap();
    let last = tree.generations().last().unwrap();
    let spans = tree.spans(last.context).unwrap();
    let segments = spans.iter().map(|span| span.segment).chain(last.output.iter().copied());
    let keys: Vec<String> =
        segments.map(|id| tree.segment(id).unwrap().source.clone().unwrap().key).collect();
    assert_eq!(serde_json::json!(keys), expected["final_view_event_ids"]);
}

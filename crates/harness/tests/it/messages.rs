//! Conversations as lists of messages: every answer is a call, nothing leaves, and the tools stand
//! at the head.
use pleach_harness::{Harness, ReadOptions, detect_bytes};
use pleach_tree::{Origin, Record, Segment};

use crate::told::{convert_text, found, rejected, told, tree};

/// A list of messages, each given by its role and what it says.
fn list(messages: &[(&str, &str)], rest: &str) -> String {
    let messages: Vec<String> = messages
        .iter()
        .map(|(role, content)| format!(r#"{{"role":"{role}","content":"{content}"}}"#))
        .collect();
    format!(r#"{{"messages":[{}]{rest}}}"#, messages.join(","))
}

fn segments(text: &str) -> Vec<Segment> {
    let conversion = convert_text(text, Some(Harness::Messages), ReadOptions::STRICT).unwrap();
    let segment = |record: Record| match record {
        Record::Segment(segment) => Some(segment),
        _ => None,
    };
    conversion.records.into_iter().filter_map(segment).collect()
}

#[test]
fn every_line_is_a_rollout_and_every_answer_a_call_that_sees_all_before_it() {
    let turns = [("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")];
    let text = [list(&turns, ""), list(&turns[..2], "")].join("\n");
    let conversion = convert_text(&text, None, ReadOptions::STRICT).unwrap();
    assert!(conversion.report.diagnostics.is_empty(), "{:?}", found(&conversion.report));
    let tree = tree(&conversion);
    let calls: Vec<(String, usize)> = tree
        .generations()
        .map(|call| (call.rollout.clone(), tree.spans(call.context).unwrap().len()))
        .collect();
    assert_eq!(calls, [("r0".into(), 1), ("r0".into(), 3), ("r1".into(), 1)]);
    let evicts = |record: &&Record| matches!(record, Record::Evict(_) | Record::Replace(_));
    assert_eq!(conversion.records.iter().filter(evicts).count(), 0);
}

#[test]
fn lines_an_indented_document_and_a_list_say_the_same() {
    let turns = [("system", "s"), ("user", "a"), ("assistant", "b")];
    let line = list(&turns, "");
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    let indented = serde_json::to_string_pretty(&value).unwrap();
    let one = told(&line, Harness::Messages);
    assert_eq!(told(&indented, Harness::Messages), one);
    assert_eq!(told(&format!("[{line}]"), Harness::Messages), one);
    let two = told(&format!("{line}\n{line}"), Harness::Messages);
    assert_eq!(told(&format!("[{line},{line}]"), Harness::Messages), two);
}

#[test]
fn tools_stand_at_the_head_as_in_a_log_of_requests_also_where_they_are_json_in_a_string() {
    let turns = [("user", "a"), ("assistant", "b")];
    let tools = r#"[{"type":"function","function":{"name":"look"}}]"#;
    let plain = segments(&list(&turns, &format!(r#","tools":{tools}"#)));
    let quoted = serde_json::Value::from(tools).to_string();
    assert_eq!(segments(&list(&turns, &format!(r#","tools":{quoted}"#))), plain);
    let request = format!(
        r#"{{"request":{},"response":{{"choices":[{{"message":{{"role":"assistant","content":"b"}}}}]}}}}"#,
        list(&turns[..1], &format!(r#","tools":{tools}"#))
    );
    let conversion = convert_text(&request, None, ReadOptions::STRICT).unwrap();
    let Some(Record::Segment(logged)) = conversion.records.get(1) else {
        panic!("tools are first")
    };
    assert_eq!((&plain[0].text, &plain[0].extra), (&logged.text, &logged.extra));
    assert_eq!(plain[0].extra["tools"], true);
    assert!(
        rejected(&list(&turns, r#","tools":"look""#), Harness::Messages)
            .contains("log.jsonl:1: tools: error[harness]: no-tools")
    );
}

#[test]
fn neighbouring_messages_of_one_role_have_keys_of_their_own() {
    let segments = segments(&list(&[("user", "a"), ("user", "b"), ("assistant", "c")], ""));
    let keys: Vec<&str> =
        segments.iter().map(|segment| segment.source.as_ref().unwrap().key.as_str()).collect();
    assert_eq!(keys, ["messages[0]", "messages[1]", "messages[2]"]);
}

#[test]
fn arguments_of_a_call_are_the_same_as_text_and_as_an_object() {
    let line = |arguments: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","tool_calls":[{{"id":"t","function":{{"name":"f","arguments":{arguments}}}}}]}}]}}"#
        )
    };
    let text = segments(&line(r#""{\"x\":1}""#));
    assert_eq!(segments(&line(r#"{"x":1}"#)), text);
    assert_eq!(text[1].calls, ["t"]);
}

#[test]
fn an_answer_of_weight_zero_is_context_and_no_call() {
    let line = r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","weight":0},{"role":"assistant","content":"c","weight":1}]}"#;
    let conversion = convert_text(line, None, ReadOptions::STRICT).unwrap();
    let tree = tree(&conversion);
    assert_eq!(tree.generations().len(), 1);
    assert_eq!(segments(line)[1].origin, Origin::ExternalModel);
}

#[test]
fn what_is_not_read_is_named_with_its_line_and_key() {
    let line = r#"{"messages":[{"role":"human","content":"a"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]},{"role":"assistant","content":"","thinking":"t"},{"role":"assistant","content":"b"}]}"#;
    let conversion = convert_text(line, Some(Harness::Messages), ReadOptions::STRICT).unwrap();
    let found = found(&conversion.report).join("\n");
    for told in [
        "log.jsonl:1: messages[0].role: warning[harness]: unknown-role",
        "log.jsonl:1: messages[1]: warning[harness]: no-text",
        "log.jsonl:1: messages[2]: warning[harness]: empty-answer",
        "log.jsonl:1: messages[2].thinking: warning[harness]: unknown-key",
    ] {
        assert!(found.contains(told), "{told} in\n{found}");
    }
    let line = r#"{"messages":["hi",{"role":"assistant","content":"b"}]}"#;
    let error = rejected(line, Harness::Messages);
    assert!(error.contains("log.jsonl:1: messages[0]: error[harness]: no-message"), "{error}");
    let sound = list(&[("user", "a"), ("assistant", "b")], "");
    let error = rejected(&format!("{sound}\n{{\"text\":1}}"), Harness::Messages);
    assert!(error.contains("log.jsonl:2: messages: error[harness]: no-messages"), "{error}");
}

#[test]
fn files_of_other_formats_are_not_taken_for_lists_of_messages() {
    let turns = [("user", "a"), ("assistant", "b")];
    for (rest, harness) in [
        (r#","response":{"choices":[]}"#, Some(Harness::Requests)),
        (r#","error":"overloaded""#, Some(Harness::Requests)),
        (r#","segment_type":"final""#, Some(Harness::MemexRl)),
        (r#","harness":"memexrl""#, Some(Harness::MemexRl)),
        (r#","stream":true"#, None),
        (r#","id":"x","source":"y""#, Some(Harness::Messages)),
    ] {
        assert_eq!(detect_bytes(list(&turns, rest).as_bytes()), harness, "{rest}");
    }
}

//! Rollouts of Codex CLI, line by line.

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn line(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-02-01T10:00:00.000Z","type":"{kind}","payload":{payload}}}"#)
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn meta(rest: &str) -> String {
    line(
        "session_meta",
        &format!(
            r#"{{"id":"own","cli_version":"0.98.0","base_instructions":{{"text":"be good"}}{rest}}}"#
        ),
    )
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn turn() -> String {
    line("turn_context", r#"{"cwd":"/proj","model":"gpt-5-codex"}"#)
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn message(role: &str, text: &str) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    format!(
        r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#
    )
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn said(role: &str, text: &str) -> String {
    line("response_item", &message(role, text))
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn calls(call: &str) -> String {
    let item = format!(
        r#"{{"type":"function_call","name":"shell","arguments":"{{\"command\": [\"ls\"]}}","call_id":"{call}"}}"#
    );
    line("response_item", &item)
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn output(call: &str) -> String {
    line(
        "response_item",
        &format!(
            r#"{{"type":"function_call_output","call_id":"{call}","output":"out of {call}"}}"#
        ),
    )
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn event(payload: &str) -> String {
    line("event_msg", payload)
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn used(total: u32) -> String {
    event(&format!(
        r#"{{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}}}}}}"#
    ))
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn compacted(message: &str, list: &[String]) -> String {
    line(
        "compacted",
        &format!(r#"{{"message":"{message}","replacement_history":[{}]}}"#, list.join(",")),
    )
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn rollout(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>().into_bytes()
}

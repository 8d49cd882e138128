//! Lines of a session, each with no more than what the adapter needs of it.

/// A prompt; no parent is a start.
pub(crate) fn user(uuid: &str, parent: &str, text: &str) -> String {
    let parent = if parent.is_empty() { "null".into() } else { format!("{parent:?}") };
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"message":{{"role":"user","content":"{text}"}}}}"#
    )
}

fn said(uuid: &str, parent: &str, message: &str, block: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":"{parent}","message":{{"id":"{message}","model":"m","role":"assistant","content":[{block}]}}}}"#
    )
}

/// A call that says something.
pub(crate) fn says(uuid: &str, parent: &str, message: &str) -> String {
    said(uuid, parent, message, r#"{"type":"text","text":"said"}"#)
}

/// A call that calls a tool.
pub(crate) fn calls(uuid: &str, parent: &str, message: &str, call: &str) -> String {
    said(
        uuid,
        parent,
        message,
        &format!(r#"{{"type":"tool_use","id":"{call}","name":"Read","input":{{}}}}"#),
    )
}

/// The result of a tool call.
pub(crate) fn result(uuid: &str, parent: &str, call: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"out"}}]}}}}"#
    )
}

/// A full compaction.
pub(crate) fn boundary(uuid: &str, logical: &str, metadata: &str) -> String {
    format!(
        r#"{{"type":"system","subtype":"compact_boundary","uuid":"{uuid}","parentUuid":null,"logicalParentUuid":{logical},"compactMetadata":{{"trigger":"auto"{metadata}}}}}"#
    )
}

/// The summary of a compaction.
pub(crate) fn summary(uuid: &str, parent: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","isCompactSummary":true,"message":{{"role":"user","content":"sum"}}}}"#
    )
}

/// A microcompaction of one result.
#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn clears(uuid: &str, parent: &str, call: &str) -> String {
    format!(
        r#"{{"type":"system","subtype":"microcompact_boundary","uuid":"{uuid}","parentUuid":"{parent}","microcompactMetadata":{{"trigger":"auto","compactedToolIds":["{call}"]}}}}"#
    )
}

/// Lines as a file.
pub(crate) fn lines<const N: usize>(lines: [String; N]) -> String {
    lines.map(|line| line + "\n").concat()
}

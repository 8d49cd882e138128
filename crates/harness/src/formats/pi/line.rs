//! One line of a session file.
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::core::block::Content;

/// What the adapter reads of a line.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Line {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) version: Option<u32>,
    pub(super) timestamp: Time,
    pub(super) id: Option<String>,
    pub(super) parent_id: Option<String>,
    pub(super) message: Option<Message>,
    pub(super) content: Option<Content>,
    pub(super) summary: Option<String>,
    pub(super) first_kept_entry_id: Option<String>,
    pub(super) first_kept_entry_index: Option<usize>,
    pub(super) from_hook: Option<bool>,
    /// Name of the file that the session was branched from.
    pub(super) parent_session: Option<String>,
    pub(super) branched_from: Option<String>,
}

/// When a line was written, which is no part of what it says.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Time(Value);

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Time")
    }
}

impl Time {
    /// Whether it was written in a month, such as `2026-06`, or behind it.
    pub(super) fn is_from(&self, month: &str) -> bool {
        self.0.as_str().is_some_and(|time| time >= month)
    }
}

/// A message of the conversation.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Message {
    pub(super) role: String,
    pub(super) content: Content,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) tool_call_id: Option<String>,
    pub(super) is_error: Option<bool>,
    pub(super) command: Option<String>,
    pub(super) output: Option<String>,
    pub(super) exit_code: Option<i64>,
    pub(super) cancelled: Option<bool>,
    pub(super) truncated: Option<bool>,
    pub(super) full_output_path: Option<String>,
    pub(super) exclude_from_context: Option<bool>,
    pub(super) summary: Option<String>,
}

impl Line {
    /// Whether it is the first line of a session.
    pub(super) fn is_header(&self) -> bool {
        self.kind == "session"
    }

    /// The file name of the session that this one was branched from.
    pub(super) fn branched_from(&self) -> Option<&str> {
        let path = self.parent_session.as_deref().or(self.branched_from.as_deref())?;
        path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())
    }
}

impl Message {
    /// Whether the harness wrote it in the policy's place.
    pub(super) fn is_of_harness(&self) -> bool {
        self.role == "assistant" && self.provider.as_deref() == Some("openclaw")
    }

    /// Whether it is a note of what was delivered to a channel, or of what a client put in.
    pub(super) fn is_note(&self) -> bool {
        matches!(self.model.as_deref(), Some("delivery-mirror" | "gateway-injected"))
    }

    /// What a request shows for a command that a person ran.
    pub(super) fn ran(&self) -> String {
        let mut text = format!("Ran `{}`\n", self.command.as_deref().unwrap_or_default());
        match self.output.as_deref().filter(|output| !output.is_empty()) {
            Some(output) => text.push_str(&format!("```\n{output}\n```")),
            None => text.push_str("(no output)"),
        }
        if self.cancelled == Some(true) {
            text.push_str("\n\n(command cancelled)");
        } else if let Some(code) = self.exit_code.filter(|&code| code != 0) {
            text.push_str(&format!("\n\nCommand exited with code {code}"));
        }
        if let (Some(true), Some(path)) = (self.truncated, &self.full_output_path) {
            text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
        }
        text
    }
}

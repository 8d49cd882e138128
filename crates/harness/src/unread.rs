//! Files that are known by their content and not read: one table, one row a program.
//!
//! A row says what to do instead, which is to write the calls in a shape that is read. Its mark is
//! asked before those of the formats, so it must hold for nothing that an adapter reads.
use crate::HarnessError;
use crate::core::shape::{Kind, Shape};

/// A program whose files are known and not read.
pub(crate) struct Unread {
    /// What a user would call such a file, with an article.
    title: &'static str,
    /// Whether a line or a document is of it.
    mark: fn(&Shape) -> bool,
    /// What such a file begins with, where it is not JSON.
    start: &'static [&'static str],
    /// What to do instead.
    instead: &'static str,
}

impl Unread {
    const fn json(title: &'static str, mark: fn(&Shape) -> bool, instead: &'static str) -> Self {
        Self { title, mark, start: &[], instead }
    }

    const fn text(
        title: &'static str,
        start: &'static [&'static str],
        instead: &'static str,
    ) -> Self {
        Self { title, mark: |_| false, start, instead }
    }

    /// The row that a value is of.
    pub(crate) fn of(shape: &Shape) -> Option<&'static Self> {
        ALL.iter().find(|unread| (unread.mark)(shape))
    }

    /// The row of a file that begins so.
    pub(crate) fn of_text(start: &[u8]) -> Option<&'static Self> {
        let start = start.trim_ascii_start();
        let begins =
            |unread: &&Self| unread.start.iter().any(|first| start.starts_with(first.as_bytes()));
        ALL.iter().find(begins)
    }

    /// The error that names it.
    pub(crate) fn error(&self, file: String) -> HarnessError {
        HarnessError::Unread { file, title: self.title, instead: self.instead }
    }
}

/// What holds for whatever shows no more than one list of messages.
const REQUESTS: &str = "log its requests with a proxy and give that log, a line {\"request\":BODY,\"response\":BODY} a call";
const OBSERVATIONS: &str = "write each call of a model in it as a line {\"request\":{\"messages\":INPUT},\"response\":{\"choices\":[{\"message\":OUTPUT}]}} and give that log of requests";

const ALL: &[Unread] = &[
    Unread::json(
        "a session of Factory Droid",
        |shape| {
            shape.is("type", &["session_start"])
                && shape.has("id")
                && !shape.has("model")
                && ["cwd", "owner", "title", "sessionTitle"].iter().any(|key| shape.has(key))
        },
        REQUESTS,
    ),
    Unread::json(
        "a session of Copilot CLI",
        |shape| {
            let event = shape.text("type").is_some_and(|kind| {
                ["session.", "user.", "assistant.", "tool."]
                    .iter()
                    .any(|start| kind.starts_with(start))
            });
            event && shape.kind("data") == Some(Kind::Object) && shape.kind("parentId").is_some()
        },
        REQUESTS,
    ),
    Unread::json(
        "a chat of Copilot in an editor",
        |shape| shape.has("responderUsername") && shape.kind("requests") == Some(Kind::List),
        REQUESTS,
    ),
    Unread::json(
        "a session of Cursor",
        |shape| {
            let line = shape.is("role", &["user", "assistant"])
                && shape.kind("message.content") == Some(Kind::List)
                && !shape.has("type");
            let streamed = shape.is("type", &["tool_call"])
                && shape.has_all(&["subtype", "call_id", "session_id"]);
            line || streamed || shape.has("composerId")
        },
        REQUESTS,
    ),
    Unread::json(
        "a session of Goose",
        |shape| {
            let kept = shape.has("message_count") || shape.kind("conversation").is_some();
            let message = shape.is("role", &["user", "assistant"])
                && shape.kind("created") == Some(Kind::Scalar)
                && shape.kind("content") == Some(Kind::List);
            shape.has("working_dir") && kept || message
        },
        REQUESTS,
    ),
    Unread::json(
        "what Cline shows of a task (`ui_messages.json`)",
        |shape| shape.is("[].type", &["say", "ask"]) && shape.kind("[].ts") == Some(Kind::Scalar),
        REQUESTS,
    ),
    Unread::json(
        "an export of Langfuse",
        |shape| {
            let of = |at: &str| {
                let key = |key: &str| format!("{at}{key}");
                let kinds = ["GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN"];
                shape.is(&key("type"), &kinds)
                    && (shape.has(&key("traceId")) || shape.has(&key("trace_id")))
                    || shape.has(&key("observations[].traceId"))
            };
            ["", "[].", "data[]."].into_iter().any(of)
        },
        OBSERVATIONS,
    ),
    Unread::json(
        "an export of LangSmith",
        |shape| {
            ["", "[].", "runs[]."]
                .into_iter()
                .any(|at| shape.has(&format!("{at}run_type")) && shape.has(&format!("{at}inputs")))
        },
        OBSERVATIONS,
    ),
    Unread::json(
        "a trajectory of OpenHands before its SDK",
        |shape| {
            let of = |at: &str| {
                let has = |key: &str| shape.has(&format!("{at}{key}"));
                has("source")
                    && has("timestamp")
                    && (has("action") && has("args") || has("observation") && has("extras"))
            };
            ["", "[].", "history[]."].into_iter().any(of)
        },
        "give the event log of a version from 1.0 of its SDK on, or log its requests with a proxy, a line {\"request\":BODY,\"response\":BODY} a call",
    ),
    Unread::json(
        "a list of messages, as Cline and Roo Code keep them (`api_conversation_history.json`)",
        |shape| {
            shape.is("[].role", &["system", "user", "assistant"])
                && shape.kind("[].content").is_some_and(|kind| kind != Kind::Null)
        },
        "it shows the last state of one conversation and not what each call saw: log the requests with a proxy and give that log, a line {\"request\":BODY,\"response\":BODY} a call",
    ),
    Unread::json(
        "a packed row of TRL (`TrainingRow`)",
        |shape| shape.has_all(&["input_ids", "position_ids", "pred_index", "target_id"]),
        "packing leaves out what of each sample is not trained: write the samples of the row instead, a line {\"input_ids\":[],\"completion_mask\":[],\"old_log_probs\":[],\"group_id\":0} a sample",
    ),
    Unread::text("a chat of Aider", &["# aider chat started at", "TO LLM 2"], REQUESTS),
    Unread::text(
        "a SQLite database, as OpenCode, Goose and Cursor keep their sessions in",
        &["SQLite format 3\0"],
        "write the session out first, as `opencode export SESSION > session.json` does",
    ),
];

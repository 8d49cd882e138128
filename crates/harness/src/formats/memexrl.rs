//! Rollouts of MemexRL (arXiv 2603.04257), read from its public code of 2026.
//!
//! The policy calls `CompressExperience{summary, db_blocks}`, and its context becomes the first two
//! messages and an index; it calls `ReadExperience{db_index}`, and what it stored comes back as a
//! result.
//!
//! # What is read
//! - **Segments**: `{"sft_segments":[{"messages","segment_type"}]}` (or `segments`), or a segment a
//!   line, the first one of a rollout of the type `pre_compression`. A segment is the context
//!   before a compression, so everything is exact: its first messages are the new context, the
//!   index message among them, and the last call of the segment before is the author.
//! - **One list**: `{"harness":"memexrl","messages":[..]}` with every message in order.
//!   Compressions are played from the calls; the text that the harness puts before an index is not
//!   recorded in such a list, which a warning says. A compression that the harness answers with an
//!   error removes nothing.
//!
//! Messages are OpenAI's; a tool call may stand in the text as
//! `<tool_call>{"name","arguments"}</tool_call>`.
use pleach_tree::{Origin, ReadOptions, ReplacementKind, Role, Trigger};
use serde_json::Value;

use crate::core::format::Format;
use crate::core::script::{self, Author, Call, Change, Cursor, Item, List, Script, Spot, Step};
use crate::core::shape::{Kind, Shape};
use crate::formats::requests::chat;
use crate::{Conversion, HarnessError, Input};

/// How a rollout of MemexRL is told from other files.
pub(crate) const FORMAT: Format = Format::new("memexrl", "a MemexRL rollout", is_rollout, convert);

fn is_rollout(shape: &Shape) -> bool {
    let list = |key: &str| shape.kind(key) == Some(Kind::List);
    let typed =
        |at: &str| list(&format!("{at}messages")) && shape.has(&format!("{at}segment_type"));
    let named = shape.is("harness", &["memexrl"]) && list("messages");
    named || ["", "sft_segments[].", "segments[]."].into_iter().any(typed)
}

/// Messages that stay at a compression: the system prompt and the task.
const HEAD: usize = 2;

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let member = input.main();
    let mut script = Script::new("memexrl", options);
    let file = script.draft.file(&member);
    let mut report = script.draft.report.take();
    let mut rollouts = Rollouts::default();
    member.values(options, &mut report, |value: Value, at, _| {
        rollouts.value(&mut script, &value, &Spot { file, at: at.clone() });
    })?;
    script.draft.report.diagnostics.append(&mut report.diagnostics);
    script.play()
}

/// The rollouts of a file, each a thread.
#[derive(Default)]
struct Rollouts {
    count: usize,
    cursor: Cursor,
    call: Option<usize>,
    heads: Vec<usize>,
}

impl Rollouts {
    fn value(&mut self, script: &mut Script, value: &Value, spot: &Spot) {
        let segments =
            ["sft_segments", "segments"].iter().find_map(|key| value.get(*key)?.as_array());
        match (segments, value.get("messages").and_then(Value::as_array)) {
            (Some(segments), _) => {
                self.begin(script);
                for (index, segment) in segments.iter().enumerate() {
                    let messages = segment
                        .get("messages")
                        .and_then(Value::as_array)
                        .map_or(&[][..], Vec::as_slice);
                    self.segment(
                        script,
                        messages,
                        index == 0,
                        spot,
                        &format!("segments[{index}]."),
                    );
                }
            }
            (None, Some(messages)) => match value.get("segment_type").and_then(Value::as_str) {
                Some(kind) => {
                    let first = kind == "pre_compression" || self.count == 0;
                    if first {
                        self.begin(script);
                    }
                    self.segment(script, messages, first, spot, "");
                }
                None => {
                    self.begin(script);
                    self.list(script, messages, spot);
                }
            },
            (None, None) => {
                script.draft.fault(
                    &spot.at,
                    "messages",
                    "no-messages",
                    "the value holds no messages; it is left out",
                );
            }
        }
    }

    fn begin(&mut self, script: &mut Script) {
        let conversation = if self.count == 0 {
            0
        } else {
            script.conversation_of(&format!("r{}", self.count), "main")
        };
        self.count += 1;
        (self.cursor, self.call) = (Cursor::new(conversation), None);
        self.heads.clear();
    }

    /// A context before a compression, with the calls that led there.
    fn segment(
        &mut self,
        script: &mut Script,
        messages: &[Value],
        first: bool,
        spot: &Spot,
        key: &str,
    ) {
        let given = messages.iter().take_while(|message| !is_assistant(message)).count();
        if !first && self.cursor.at.is_some() {
            let parts = messages[..given].iter().enumerate();
            let told = parts.map(|(index, message)| {
                Item::Told(parts_of(message, spot, &format!("{key}messages[{index}]")))
            });
            let list = List { items: told.collect(), change: self.change() };
            self.cursor.push(script, spot, Step::List(Box::new(list)));
        }
        let skip = if first { 0 } else { given };
        for (index, message) in messages.iter().enumerate().skip(skip) {
            self.message(script, message, spot, &format!("{key}messages[{index}]"));
        }
    }

    /// Every message of a rollout in order, compressions as the calls say.
    fn list(&mut self, script: &mut Script, messages: &[Value], spot: &Spot) {
        for (index, message) in messages.iter().enumerate() {
            let key = format!("messages[{index}]");
            let node = self.message(script, message, spot, &key);
            if index < HEAD {
                self.heads.push(node);
            }
            let Some(summary) = compression(message) else { continue };
            if messages.get(index + 1).is_some_and(refused) || index < HEAD {
                continue;
            }
            let message = "the text that the harness puts before the index is not recorded; the index stands alone";
            script.draft.warn(&spot.at, &key, "index-text", message);
            let index = spot.segment(
                format!("{key}#index"),
                script::text(Role::User, Origin::Harness, summary),
            );
            let mut items: Vec<Item> = self.heads.iter().copied().map(Item::Of).collect();
            items.push(Item::New(vec![index]));
            let list = List { items, change: self.change() };
            self.cursor.push(script, spot, Step::List(Box::new(list)));
        }
    }

    fn message(&mut self, script: &mut Script, message: &Value, spot: &Spot, key: &str) -> usize {
        let parts = parts_of(message, spot, key);
        let call = is_assistant(message);
        let step = if call {
            Step::Call(Call { output: parts, ..Call::default() })
        } else {
            Step::Put(parts)
        };
        let node = self.cursor.push(script, spot, step);
        self.call = if call { Some(node) } else { self.call };
        node
    }

    /// The policy's own compression, which leaves an index.
    fn change(&self) -> Change {
        let change = Change::new(ReplacementKind::Index).trigger(Some(Trigger::Policy));
        match self.call {
            Some(call) => change.by(Author::Of(call)),
            None => change,
        }
    }
}

fn is_assistant(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str) == Some("assistant")
}

fn parts_of(message: &Value, spot: &Spot, key: &str) -> Vec<pleach_tree::Segment> {
    chat::message(message).into_iter().map(|segment| spot.segment(key, segment)).collect()
}

/// The summary of a compression that a message calls for.
fn compression(message: &Value) -> Option<String> {
    if !is_assistant(message) {
        return None;
    }
    let summary = |name: Option<&str>, arguments: &Value| {
        let arguments = match arguments {
            Value::String(text) => serde_json::from_str(text).ok()?,
            arguments => arguments.clone(),
        };
        let summary = arguments.get("summary")?.as_str()?.trim();
        (name == Some("CompressExperience") && !summary.is_empty()).then(|| summary.to_owned())
    };
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let called = calls.filter_map(|call| call.get("function")).find_map(|function| {
        summary(function.get("name").and_then(Value::as_str), function.get("arguments")?)
    });
    let written = || {
        let (_, rest) = message.get("content")?.as_str()?.split_once("<tool_call>")?;
        let call: Value = serde_json::from_str(
            rest.split_once("</tool_call>").map_or(rest, |(call, _)| call).trim(),
        )
        .ok()?;
        summary(call.get("name").and_then(Value::as_str), call.get("arguments")?)
    };
    called.or_else(written)
}

/// Whether the harness answers that it did not do what the call asks for.
fn refused(message: &Value) -> bool {
    let text = message.get("content").and_then(Value::as_str).unwrap_or_default().trim_start();
    !is_assistant(message) && (text.starts_with("Error") || text.starts_with("Not enough messages"))
}

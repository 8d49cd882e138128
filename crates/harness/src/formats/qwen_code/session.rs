//! From the lines of a session to its script.
use std::sync::Arc;

use pleach_tree::{Origin, ReadOptions, ReplacementKind, Trigger};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::core::format::Format;
use crate::core::genai::Content;
use crate::core::script::{self, Call, Change, Item, List, Script, Spot, Step};
use crate::core::shape::Shape;
use crate::{Conversion, HarnessError, Input};

/// How a session of Qwen Code is told from other files.
pub(crate) const FORMAT: Format = Format::new("qwen-code", "a Qwen Code session", is_line, convert);

fn is_line(shape: &Shape) -> bool {
    let line = shape.is("type", &["user", "assistant", "tool_result", "system"])
        && shape.has_all(&["uuid", "sessionId"]);
    line && (shape.has("message.parts") || shape.has("systemPayload"))
}

/// What the adapter reads of a line.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
    uuid: Option<String>,
    parent_uuid: Option<String>,
    version: Option<String>,
    message: Option<Content>,
    model: Option<String>,
    system_payload: Option<Box<serde_json::value::RawValue>>,
    forked_from: Option<IgnoredAny>,
}

/// What a compression says about itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Compression {
    compressed_history: Option<Vec<Content>>,
    info: Option<Info>,
    trigger: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Info {
    compression_status: Option<Value>,
}

impl Compression {
    /// Whether the harness kept the list as it was.
    fn failed(&self) -> bool {
        match self.info.as_ref().and_then(|info| info.compression_status.as_ref()) {
            Some(Value::Number(number)) => number.as_u64() != Some(1),
            Some(Value::String(name)) => name != "COMPRESSED",
            _ => false,
        }
    }
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let mut script = Script::new("qwen-code", options);
    let mut session = QwenSession::default();
    script.lines(&input.main(), |script, line: Line, spot| session.take(script, line, spot))?;
    if let Some(spot) = session.copied.take() {
        let message = format!(
            "calls ({}) are those of the session that this one was forked from; they are context",
            session.copies
        );
        script.draft.warn(&spot.at, "forkedFrom", "copied-history", message);
    }
    script.play()
}

/// The session as far as it is read.
#[derive(Default)]
struct QwenSession {
    /// The node that stands for a line, and the number of its content.
    nodes: FxHashMap<String, (Option<usize>, u64)>,
    last: Option<usize>,
    copied: Option<Spot>,
    copies: u64,
}

impl QwenSession {
    fn take(&mut self, script: &mut Script, line: Line, spot: &Spot) {
        if script.draft.header.harness_version.is_none() {
            script.draft.header.harness_version.clone_from(&line.version);
        }
        let uuid = match &line.uuid {
            Some(uuid) => uuid.clone(),
            None => {
                let message = "the line has no uuid; the number of the line stands for it";
                script.draft.fault(&spot.at, "uuid", "no-uuid", message);
                format!("line-{}", spot.at.line)
            }
        };
        let known = self.nodes.get(&uuid).copied();
        let parent = match &line.parent_uuid {
            _ if known.is_some() => None,
            None => None,
            Some(parent) => match self.nodes.get(parent) {
                Some(&(node, _)) => node,
                None => {
                    let message = format!(
                        "the parent {parent} is not in the file above; the line before it is taken"
                    );
                    script.draft.fault(&spot.at, "parentUuid", "dangling-parent", message);
                    self.last
                }
            },
        };
        let (step, number) = self.step(script, line, &uuid, spot);
        if let Some((node, first)) = known {
            self.again(script, (node, first), step, number, &uuid, spot);
            return;
        }
        let node = step.map_or(parent, |step| Some(script.push(parent, 0, spot, step)));
        self.nodes.insert(uuid, (node, number));
        self.last = node;
    }

    /// A line whose uuid stands above: it says the same, or more of the same call.
    fn again(
        &mut self,
        script: &mut Script,
        (node, first): (Option<usize>, u64),
        step: Option<Step>,
        number: u64,
        uuid: &str,
        spot: &Spot,
    ) {
        if number == first {
            script.draft.warn(
                &spot.at,
                "uuid",
                "repeated-line",
                format!("the line repeats the one of uuid {uuid} above"),
            );
            return;
        }
        let last = node.filter(|&node| node + 1 == script.nodes.len());
        if let (Some(Step::Call(more)), Some(node)) = (&step, last)
            && let Step::Call(call) = &mut script.nodes[node].step
        {
            call.output.extend(more.output.iter().cloned());
            return;
        }
        let message = format!("the uuid {uuid} stands above with other content; the first is kept");
        script.draft.fault(&spot.at, "uuid", "duplicate-uuid", message);
    }

    /// What a line does, and a number for what it says.
    fn step(
        &mut self,
        script: &mut Script,
        line: Line,
        uuid: &str,
        spot: &Spot,
    ) -> (Option<Step>, u64) {
        match (line.kind.as_str(), line.subtype.as_deref()) {
            ("system", Some("chat_compression")) => {
                (self.compression(script, &line, uuid, spot), 0)
            }
            ("system", _) | (_, Some("realtime_message" | "code_mode_tool_result")) => (None, 0),
            ("assistant", _) => {
                let message = line.message.unwrap_or_default();
                let output = Content { role: Some("model".into()), ..message }.segments(
                    Origin::Policy,
                    uuid,
                    spot,
                );
                let number = script::content_number(&output);
                if line.forked_from.is_some() {
                    self.copied.get_or_insert_with(|| spot.clone());
                    self.copies += 1;
                    return (Some(Step::Put(output)), number);
                }
                (
                    Some(Step::Call(Call {
                        output,
                        model: line.model.map(Arc::from),
                        ..Call::default()
                    })),
                    number,
                )
            }
            ("user" | "tool_result", subtype) => {
                let typed =
                    matches!(subtype, None | Some("mid_turn_user_message")) && line.kind == "user";
                let origin = if typed { Origin::Human } else { Origin::Harness };
                let segments = line
                    .message
                    .map_or_else(Vec::new, |message| message.segments(origin, uuid, spot));
                let number = script::content_number(&segments);
                (
                    Some(Step::Put(segments)).filter(|_| number != script::content_number(&[])),
                    number,
                )
            }
            (kind, _) => {
                script.unknown(kind, &spot.at);
                (None, 0)
            }
        }
    }

    fn compression(
        &mut self,
        script: &mut Script,
        line: &Line,
        uuid: &str,
        spot: &Spot,
    ) -> Option<Step> {
        let raw = line.system_payload.as_deref().map_or("{}", serde_json::value::RawValue::get);
        let found = serde_json::from_str::<Compression>(raw).unwrap_or_default();
        if found.failed() {
            script.draft.warn(
                &spot.at,
                "systemPayload.info",
                "compaction-failed",
                "the compression failed; the list stays as it was",
            );
            return None;
        }
        let Some(history) = found.compressed_history else {
            let message = "the compression has no list; the context stays as it was";
            script.draft.fault(&spot.at, "systemPayload.compressedHistory", "no-summary", message);
            return None;
        };
        if script.nodes.is_empty() {
            let message =
                "nothing stands before the compression in the file; its list is all that is known";
            script.draft.warn(&spot.at, "systemPayload", "no-predecessor", message);
        }
        let items = history
            .into_iter()
            .map(|content| Item::Told(content.segments(Origin::ExternalModel, uuid, spot)))
            .collect();
        let trigger = match found.trigger.as_deref() {
            Some("auto") => Some(Trigger::Auto),
            Some("manual") => Some(Trigger::Manual),
            _ => None,
        };
        let change = Change::new(ReplacementKind::Summary).trigger(trigger);
        Some(Step::List(Box::new(List { items, change })))
    }
}

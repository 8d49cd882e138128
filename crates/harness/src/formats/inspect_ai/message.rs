//! Messages of inspect_ai as segments.
use pleach_tree::{Origin, Part, Role, Segment};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use crate::core::block::{self, Content, ContentBlock};
use crate::core::script::{self, Spot};

/// A message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) role: String,
    pub(super) content: Content,
    pub(super) source: Option<String>,
    pub(super) tool_calls: Option<Vec<ToolCall>>,
    pub(super) tool_call_id: Option<String>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    id: String,
    function: String,
    arguments: Value,
}

/// Texts that are kept apart, by their digests.
pub(super) struct Attachments<'s> {
    pub(super) texts: &'s FxHashMap<String, String>,
    /// Digests that are not there.
    pub(super) missing: Vec<String>,
}

impl Attachments<'_> {
    /// Puts back what is kept apart.
    fn resolve(&mut self, text: &str) -> String {
        const MARK: &str = "attachment://";
        const DIGEST: usize = 32;
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(MARK) {
            let digest = rest
                .get(at + MARK.len()..at + MARK.len() + DIGEST)
                .filter(|digest| is_digest(digest));
            let end = at + MARK.len() + digest.map_or(0, str::len);
            match digest.map(|digest| (digest, self.texts.get(digest))) {
                Some((_, Some(text))) => {
                    out.push_str(&rest[..at]);
                    out.push_str(text);
                }
                Some((digest, None)) => {
                    self.missing.push(digest.to_owned());
                    out.push_str(&rest[..end]);
                }
                None => out.push_str(&rest[..end]),
            }
            rest = &rest[end..];
        }
        out.push_str(rest);
        out
    }

    fn resolve_value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.resolve(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.resolve_value(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.resolve_value(field))
            }
            _ => {}
        }
    }
}

fn is_digest(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Message {
    /// The message as segments, with `key` where it has no id.
    pub(super) fn segments(
        self,
        attachments: &mut Attachments<'_>,
        key: &str,
        spot: &Spot,
    ) -> Vec<Segment> {
        let key = self.id.unwrap_or_else(|| key.to_owned());
        let mut segments = Vec::new();
        match self.role.as_str() {
            "assistant" => {
                segments
                    .extend(parts(self.content).into_iter().map(|block| said(block, attachments)));
                for mut call in self.tool_calls.unwrap_or_default() {
                    attachments.resolve_value(&mut call.arguments);
                    segments.push(script::call(
                        &call.id,
                        &call.function,
                        &call.arguments.to_string(),
                    ));
                }
            }
            "tool" => {
                let call = self.tool_call_id.unwrap_or_default();
                let error = self
                    .error
                    .as_ref()
                    .and_then(|error| error.get("message"))
                    .and_then(Value::as_str);
                let text = block::joined(self.content);
                let text =
                    if text.is_empty() { error.unwrap_or_default().to_owned() } else { text };
                segments.push(script::result(
                    &call,
                    attachments.resolve(&text),
                    self.error.is_some(),
                ));
            }
            role => {
                let (role, origin) = match (role, self.source.as_deref()) {
                    ("system", _) => (Role::System, Origin::Harness),
                    (_, Some("input")) => (Role::User, Origin::Human),
                    _ => (Role::User, Origin::Harness),
                };
                let texts = parts(self.content).into_iter().map(block::text_of);
                segments.extend(
                    texts.map(|text| script::text(role, origin, attachments.resolve(&text))),
                );
            }
        }
        segments.into_iter().map(|segment| spot.segment(key.as_str(), segment)).collect()
    }
}

fn parts(content: Content) -> Vec<ContentBlock> {
    match content {
        Content::Text(text) if text.is_empty() => Vec::new(),
        Content::Text(text) => {
            vec![ContentBlock { kind: "text".into(), text: Some(text), ..ContentBlock::default() }]
        }
        Content::Blocks(blocks) => blocks,
        Content::Absent | Content::Odd => Vec::new(),
    }
}

fn said(block: ContentBlock, attachments: &mut Attachments<'_>) -> Segment {
    if block.kind != "reasoning" {
        return script::said(Part::Content, attachments.resolve(&block::text_of(block)));
    }
    let field = |name: &str| {
        let raw = block.rest.iter().find(|(key, _)| key == name).map(|(_, raw)| raw.get())?;
        serde_json::from_str::<Value>(raw).ok()
    };
    let text = |name: &str| field(name).and_then(|value| value.as_str().map(str::to_owned));
    let redacted = field("redacted").and_then(|value| value.as_bool()).unwrap_or_default();
    let summary = text("summary");
    // A signature marks what a provider wrote in place of what was sampled.
    let raw = !redacted && summary.is_none() && text("signature").is_none();
    let words = if redacted {
        summary.unwrap_or_default()
    } else {
        text("reasoning").or(summary).unwrap_or_default()
    };
    let segment = script::said(Part::Reasoning, attachments.resolve(&words));
    if raw { Segment { origin: Origin::Policy, ..segment } } else { segment }
}

//! The lines of a session that its contexts are made of, with their text and without everything
//! else.
use std::sync::Arc;

use pleach_tree::{Origin, Role, Trigger};

use super::attachment::{Attached, Prompt, Sent, attached};
use super::content::{self, Answer, Said};
use super::line::{CompactMetadata, Line, MicrocompactMetadata};
use super::transform::{Transformed, transformed};
use crate::core::block::{self, Content};

/// A line that has a place in the tree of parents.
#[derive(Debug)]
pub(super) struct LogEntry {
    pub(super) file: u32,
    pub(super) line: u64,
    pub(super) uuid: Arc<str>,
    pub(super) parent: Option<Arc<str>>,
    pub(super) sidechain: bool,
    /// Whether another session has the line as its own.
    pub(super) copied: bool,
    pub(super) body: Body,
}

/// What a line brings into a context.
#[derive(Debug, PartialEq)]
pub(super) enum Body {
    /// Nothing: it only links its children to its parent.
    Link,
    Assistant(Assistant),
    /// What the harness itself says in the model's place, one text a block.
    Notice(Vec<String>),
    User(User),
    Prompt(Prompt),
    Clearing(Clearing),
    Boundary(Box<Boundary>),
}

/// One line of a call.
#[derive(Debug, PartialEq)]
pub(super) struct Assistant {
    pub(super) message: Arc<str>,
    pub(super) model: Option<Arc<str>>,
    pub(super) said: Vec<Said>,
    pub(super) input_tokens: Option<u64>,
    /// Where in the request the thinking stood that the API took out, where that is recorded.
    pub(super) dropped: Option<Vec<String>>,
}

/// What stands in a human's place.
#[derive(Debug, PartialEq)]
pub(super) struct User {
    pub(super) answers: Vec<Answer>,
    pub(super) texts: Vec<String>,
    pub(super) role: Role,
    pub(super) origin: Origin,
    /// A prompt opens a branch of its own where the conversation went back; anything else hangs on
    /// what it follows.
    pub(super) kind: UserKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserKind {
    /// Typed by a person.
    Prompt,
    /// A command or notice of the harness that is recorded like a prompt.
    Command,
    /// Meta text or a result.
    Hanging,
    /// What the harness attaches to a turn.
    Attachment,
    /// The summary of a compaction.
    Summary,
}

/// A microcompaction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clearing {
    pub(super) calls: Vec<String>,
    pub(super) attachments: Vec<String>,
    pub(super) trigger: Option<Trigger>,
    /// Large results leave a pointer in place of the fixed text.
    pub(super) pointers: bool,
}

/// A full compaction.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Boundary {
    pub(super) logical_parent: Option<String>,
    pub(super) trigger: Option<Trigger>,
    pub(super) anchor: Option<String>,
    /// The preserved lines, listed.
    pub(super) preserved: Option<Vec<String>>,
    /// The first and last preserved line, where they are not listed.
    pub(super) ends: Option<(String, String)>,
}

/// What is wrong with a line by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flaw {
    NoUuid,
    NoMessageId,
    OddContent,
    OddInputs,
    /// An attachment of a type of which it is not known what was sent.
    Unsent(String),
    /// One of a type whose words are the harness's known ones.
    Worded(String),
    /// A change of a request, of a type that is not known.
    Transformed(String),
}

impl Flaw {
    /// Code, key and message of what the reader has to guess; the others are no faults.
    pub(super) fn fault(&self) -> Option<(&'static str, &'static str, &'static str)> {
        Some(match self {
            Self::NoUuid => {
                ("no-uuid", "uuid", "the line has no uuid; the number of the line stands for it")
            }
            Self::NoMessageId => (
                "no-message-id",
                "message.id",
                "the message has no id; the line is taken as a call of its own",
            ),
            Self::OddContent => (
                "odd-content",
                "message.content",
                "the content is neither text nor blocks; it is taken as empty",
            ),
            Self::OddInputs => (
                "odd-inputs",
                "wireToolInputs",
                "the inputs are no object; those of the message are taken",
            ),
            Self::Unsent(_) | Self::Worded(_) | Self::Transformed(_) => return None,
        })
    }
}

/// Starts of text that the harness itself writes into a human's place.
const COMMANDS: [&str; 9] = [
    "<local-command-",
    "<command-name>",
    "<command-message>",
    "<system-reminder>",
    "<task-notification>",
    "<user-prompt-submit-hook>",
    "<bash-input>",
    "<bash-stdout>",
    "[Request interrupted by user",
];

/// The model of messages that no model sampled.
const SYNTHETIC: &str = "<synthetic>";

/// Whether a text in a human's place is the harness's own.
pub(super) fn is_command(text: &str) -> bool {
    COMMANDS.iter().any(|start| text.starts_with(start))
}

impl LogEntry {
    /// Keeps what contexts are made of; `None` for a line that stands outside the tree of parents.
    pub(super) fn new(
        line: Line,
        file: u32,
        number: u64,
        subagent: bool,
    ) -> (Option<Self>, Vec<Flaw>) {
        let mut flaws = Vec::new();
        let mut line = line;
        let spoken = matches!(line.kind.as_deref(), Some("user" | "assistant"));
        let uuid: Arc<str> = match line.uuid.take() {
            Some(uuid) => uuid.into(),
            None if spoken => {
                flaws.push(Flaw::NoUuid);
                // No two files make up the same.
                if file == 0 {
                    format!("line-{number}").into()
                } else {
                    format!("file-{file}-line-{number}").into()
                }
            }
            None => return (None, flaws),
        };
        let parent = line.parent_uuid.take().map(Arc::from);
        let sidechain = line.is_sidechain.unwrap_or_default();
        let body = body(line, &uuid, subagent || sidechain, &mut flaws);
        (Some(Self { file, line: number, uuid, parent, sidechain, copied: false, body }), flaws)
    }
}

fn body(line: Line, uuid: &Arc<str>, subagent: bool, flaws: &mut Vec<Flaw>) -> Body {
    match (line.kind.as_deref(), line.subtype.as_deref()) {
        (Some("assistant"), _) => assistant(line, uuid, flaws),
        (Some("user"), _) => user(line, subagent, flaws),
        (Some("system"), Some("local_command")) => {
            hanging(block::joined(line.content.unwrap_or_default()))
        }
        (Some("attachment"), _) => attachment(&line, flaws),
        (Some("system"), Some("compact_boundary")) => {
            boundary(line.logical_parent_uuid, line.compact_metadata.unwrap_or_default())
        }
        (Some("system"), Some("microcompact_boundary")) => {
            clearing(line.microcompact_metadata.unwrap_or_default(), line.version.as_deref())
        }
        _ => Body::Link,
    }
}

fn assistant(line: Line, uuid: &Arc<str>, flaws: &mut Vec<Flaw>) -> Body {
    let mut message = line.message.unwrap_or_default();
    if line.is_api_error_message == Some(true) {
        return Body::Link;
    }
    if matches!(message.content, Content::Odd | Content::Absent) {
        flaws.push(Flaw::OddContent);
    }
    if message.model.as_deref() == Some(SYNTHETIC) {
        return Body::Notice(message.content.texts());
    }
    if let Some(inputs) = line.wire_tool_inputs
        && !content::write_inputs(&mut message.content, &inputs)
    {
        flaws.push(Flaw::OddInputs);
    }
    let id = message.id.map(Arc::from).unwrap_or_else(|| {
        flaws.push(Flaw::NoMessageId);
        Arc::clone(uuid)
    });
    let transformed = message.input_transformations.as_deref().and_then(transformed);
    let transformed = transformed.map(|Transformed { dropped, unknown }| {
        flaws.extend(unknown.map(Flaw::Transformed));
        dropped
    });
    Body::Assistant(Assistant {
        message: id,
        model: message.model.map(Arc::from),
        said: content::said(message.content),
        input_tokens: message.usage.map(|usage| usage.input()).filter(|&tokens| tokens > 0),
        dropped: transformed,
    })
}

fn user(line: Line, subagent: bool, flaws: &mut Vec<Flaw>) -> Body {
    let summary = line.is_compact_summary == Some(true);
    if line.is_visible_in_transcript_only == Some(true) && !summary {
        return Body::Link;
    }
    let message = line.message.unwrap_or_default();
    if matches!(message.content, Content::Odd | Content::Absent) {
        flaws.push(Flaw::OddContent);
    }
    let given = content::given(message.content);
    let command = given.texts.first().is_some_and(|text| is_command(text));
    let kind = match () {
        () if summary => UserKind::Summary,
        () if line.is_meta == Some(true) || !given.answers.is_empty() => UserKind::Hanging,
        () if command => UserKind::Command,
        () => UserKind::Prompt,
    };
    let origin =
        if kind == UserKind::Prompt && !subagent { Origin::Human } else { Origin::Harness };
    Body::User(User { answers: given.answers, texts: given.texts, role: Role::User, origin, kind })
}

fn attachment(line: &Line, flaws: &mut Vec<Flaw>) -> Body {
    let Some(raw) = &line.attachment else { return Body::Link };
    let Sent { role, origin, texts, worded } =
        match attached(raw, line.rendered.as_deref(), line.rendered_role.as_str()) {
            Attached::Silent => return Body::Link,
            Attached::Unknown(kind) => {
                flaws.push(Flaw::Unsent(kind));
                return Body::Link;
            }
            Attached::Prompt(prompt) => return Body::Prompt(prompt),
            Attached::Sent(sent) => sent,
        };
    flaws.extend(worded.map(Flaw::Worded));
    Body::User(User { answers: Vec::new(), texts, role, origin, kind: UserKind::Attachment })
}

fn hanging(text: String) -> Body {
    Body::User(User {
        answers: Vec::new(),
        texts: vec![text],
        role: Role::User,
        origin: Origin::Harness,
        kind: UserKind::Hanging,
    })
}

fn boundary(logical_parent: Option<String>, metadata: CompactMetadata) -> Body {
    let segment = metadata.preserved_segment.unwrap_or_default();
    let (listed_anchor, preserved) = metadata
        .preserved_messages
        .map_or((None, None), |messages| (messages.anchor_uuid, messages.uuids));
    Body::Boundary(Box::new(Boundary {
        logical_parent,
        trigger: trigger(metadata.trigger.as_deref()),
        anchor: listed_anchor.or(segment.anchor_uuid),
        preserved,
        ends: segment.head_uuid.zip(segment.tail_uuid),
    }))
}

fn clearing(metadata: MicrocompactMetadata, version: Option<&str>) -> Body {
    Body::Clearing(Clearing {
        calls: metadata.compacted_tool_ids,
        attachments: metadata.cleared_attachments,
        trigger: trigger(metadata.trigger.as_deref()),
        pointers: version.is_some_and(leaves_pointers),
    })
}

/// Versions 2.1.14 to 2.1.22 leave a pointer to a file in place of a large result.
fn leaves_pointers(version: &str) -> bool {
    let patch = version
        .strip_prefix("2.1.")
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    patch
        .and_then(|patch| patch.parse::<u32>().ok())
        .is_some_and(|patch| (14..=22).contains(&patch))
}

fn trigger(name: Option<&str>) -> Option<Trigger> {
    match name {
        Some("auto") => Some(Trigger::Auto),
        Some("manual") => Some(Trigger::Manual),
        _ => None,
    }
}

impl LogEntry {
    pub(super) fn user(&self) -> Option<&User> {
        match &self.body {
            Body::User(user) => Some(user),
            _ => None,
        }
    }

    pub(super) fn assistant(&self) -> Option<&Assistant> {
        match &self.body {
            Body::Assistant(assistant) => Some(assistant),
            _ => None,
        }
    }

    pub(super) fn boundary(&self) -> Option<&Boundary> {
        match &self.body {
            Body::Boundary(boundary) => Some(boundary),
            _ => None,
        }
    }

    /// Whether the line brings nothing into a context.
    pub(super) fn is_link(&self) -> bool {
        matches!(self.body, Body::Link)
    }

    /// Whether the line is the summary of a compaction.
    pub(super) fn is_summary(&self) -> bool {
        self.user().is_some_and(|user| user.kind == UserKind::Summary)
    }
}

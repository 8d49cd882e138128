use serde::{Deserialize, Serialize};

use super::{Extra, nullable};
use crate::{ContextId, GenerationId, SegmentId};

/// A context that is `from` with segments behind it; `from: null` starts a root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Append {
    /// The new context.
    pub context: ContextId,
    /// The context it extends.
    #[serde(deserialize_with = "nullable")]
    pub from: Option<ContextId>,
    /// The segments that are appended whole.
    pub segments: Vec<SegmentId>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Append {
    /// Segments behind a context, or behind nothing where `from` is `None`.
    ///
    /// The context that it makes is 0 until it is set; a [`RecordBuilder`](crate::RecordBuilder)
    /// sets it.
    pub fn new(from: impl Into<Option<ContextId>>, segments: impl Into<Vec<SegmentId>>) -> Self {
        let (from, segments) = (from.into(), segments.into());
        Self { context: ContextId(0), from, segments, extra: Extra::new() }
    }
}

/// A segment, or a range of it, that leaves a context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evicted {
    /// The segment.
    pub segment: SegmentId,
    /// Half-open token range; absent for whatever of the segment is in the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<(u32, u32)>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Evicted {
    /// All of a segment that is in the context.
    pub fn whole(segment: SegmentId) -> Self {
        Self { segment, tokens: None, extra: Extra::new() }
    }

    /// The tokens `[start, end)` of a segment.
    pub fn range(segment: SegmentId, start: u32, end: u32) -> Self {
        Self { segment, tokens: Some((start, end)), extra: Extra::new() }
    }
}

/// What kind of text stands for an evicted span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplacementKind {
    /// A summary of the span.
    Summary,
    /// A fixed text that says something was here.
    Placeholder,
    /// A shortened form of the span.
    Truncation,
    /// A pointer by which the span can come back in a later `append`.
    Index,
    /// Embeddings instead of tokens.
    Latent,
    /// Nothing.
    None,
}

/// Where a replacement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// After the leading system segments.
    Head,
    /// One in each hole where the numbers match, else all in the first hole.
    #[default]
    InPlace,
    /// All in the first hole.
    BeforeFirst,
    /// At the end of the context.
    AfterKept,
    /// Before the n-th contiguous piece that is left after removal.
    Index(u32),
}

/// Embeddings that stand for a span; kept and written back, no layout can take them yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latent {
    /// Number of embedding vectors.
    pub count: u32,
    /// Tokens per vector.
    pub ratio: f64,
    /// File that holds them.
    pub file: String,
    /// Index of the first vector in that file.
    pub offset: u64,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What stands in a context for the spans that left it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replacement {
    /// What kind of text it is.
    pub kind: ReplacementKind,
    /// Its segments, in order.
    pub segments: Vec<SegmentId>,
    /// Where they stand.
    #[serde(default)]
    pub place: Place,
    /// Embeddings, for [`ReplacementKind::Latent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latent: Option<Latent>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Replacement {
    /// A replacement of a kind, with its segments and their place.
    pub fn new(kind: ReplacementKind, segments: Vec<SegmentId>, place: Place) -> Self {
        Self { kind, segments, place, latent: None, extra: Extra::new() }
    }
}

/// Who decided an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ByKind {
    /// The policy, in one of its generations.
    Policy,
    /// Another model.
    ExternalModel,
    /// The provider of the model, outside the harness.
    Provider,
    /// A rule of the harness, with a name.
    Rule,
    /// A person.
    Human,
    /// Not recorded.
    Unknown,
}

/// The author of an eviction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct By {
    /// Who it was.
    pub kind: ByKind,
    /// The generation, for [`ByKind::Policy`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<GenerationId>,
    /// The name of the rule or model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl By {
    /// An author without generation and name.
    pub fn new(kind: ByKind) -> Self {
        Self { kind, generation: None, name: None, extra: Extra::new() }
    }

    /// The rule of a harness.
    pub fn rule(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::new(ByKind::Rule) }
    }

    /// The policy in one of its generations.
    pub fn policy(generation: GenerationId) -> Self {
        Self { generation: Some(generation), ..Self::new(ByKind::Policy) }
    }
}

/// What set an eviction off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A threshold of the harness.
    Auto,
    /// A person's command.
    Manual,
    /// The policy's own decision.
    Policy,
}

/// Whether an eviction was written down or worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The harness wrote it down.
    Recorded,
    /// It was inferred from what the policy was sent.
    Inferred,
}

/// A context that is `from` with ranges taken out and a replacement put in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evict {
    /// The new context.
    pub context: ContextId,
    /// The context the ranges leave.
    pub from: ContextId,
    /// What leaves.
    pub evicted: Vec<Evicted>,
    /// What stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Replacement>,
    /// Who decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// What set it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// Whether it was written down or worked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Evict {
    /// Ranges out of a context, without a replacement and with nothing known of who decided it.
    ///
    /// The context that it makes is 0 until it is set; a [`RecordBuilder`](crate::RecordBuilder)
    /// sets it.
    pub fn new(from: ContextId, evicted: impl Into<Vec<Evicted>>) -> Self {
        Self {
            context: ContextId(0),
            from,
            evicted: evicted.into(),
            replacement: None,
            by: None,
            trigger: None,
            evidence: None,
            extra: Extra::new(),
        }
    }

    /// The same eviction with something in the place of what leaves.
    #[must_use]
    pub fn with_replacement(mut self, replacement: Replacement) -> Self {
        self.replacement = Some(replacement);
        self
    }

    /// The same eviction with its author.
    #[must_use]
    pub fn with_author(mut self, by: By) -> Self {
        self.by = Some(by);
        self
    }

    /// The same eviction with what set it off.
    #[must_use]
    pub fn with_trigger(mut self, trigger: Trigger) -> Self {
        self.trigger = Some(trigger);
        self
    }

    /// The same eviction with how it is known.
    #[must_use]
    pub fn with_evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = Some(evidence);
        self
    }
}

/// A context whose whole list is given, for harnesses that only store snapshots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replace {
    /// The new context.
    pub context: ContextId,
    /// The context before.
    pub from: ContextId,
    /// The new list, whole segments.
    pub segments: Vec<SegmentId>,
    /// Who decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// Whether it was written down or worked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Replace {
    /// A new list in the place of a context's, with nothing known of who decided it.
    ///
    /// The context that it makes is 0 until it is set; a [`RecordBuilder`](crate::RecordBuilder)
    /// sets it.
    pub fn new(from: ContextId, segments: impl Into<Vec<SegmentId>>) -> Self {
        let (context, segments) = (ContextId(0), segments.into());
        Self { context, from, segments, by: None, evidence: None, extra: Extra::new() }
    }

    /// The same list with how it is known.
    #[must_use]
    pub fn with_evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = Some(evidence);
        self
    }

    /// The same list with its author.
    #[must_use]
    pub fn with_author(mut self, by: By) -> Self {
        self.by = Some(by);
        self
    }
}

/// Why a context was copied into another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForkReason {
    /// The conversation went back to an earlier point.
    Rewind,
    /// A call was made again.
    Retry,
    /// A sub-agent starts from the context.
    Subagent,
    /// The summariser's call.
    Summarizer,
    /// A resumed session.
    Resume,
}

/// A context copied unchanged into another thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// The new context.
    pub context: ContextId,
    /// The context that is copied.
    pub from: ContextId,
    /// Why.
    pub reason: ForkReason,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Fork {
    /// A copy of a context.
    ///
    /// The context that it makes is 0 until it is set; a [`RecordBuilder`](crate::RecordBuilder)
    /// sets it.
    pub fn new(from: ContextId, reason: ForkReason) -> Self {
        Self { context: ContextId(0), from, reason, extra: Extra::new() }
    }
}

//! The record types of the eviction-record format, version 1.
//!
//! Every type keeps the fields it does not know in `extra` and writes them back, so a file of a
//! newer minor revision or with a harness's own additions passes through unchanged.
mod generation;
mod header;
mod json;
pub(crate) mod keys;
mod operation;
mod segment;

pub use generation::{Generation, Outcome, Status};
pub use header::{CacheSemantics, Fidelity, Header, TokenizerIdentity};
pub use operation::{
    Append, By, ByKind, Evict, Evicted, Evidence, Fork, ForkReason, Latent, Place, Replace,
    Replacement, ReplacementKind, Trigger,
};
pub use segment::{LossRun, Origin, Part, Role, Segment, Source};

use serde_json::{Map, Value};

/// Fields that this version does not know, in the order they were read.
pub type Extra = Map<String, Value>;

/// One line of an eviction-record file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Record {
    /// `{"t":"header"}`: the first record of a file.
    Header(Header),
    /// `{"t":"segment"}`: an immutable run of tokens.
    Segment(Segment),
    /// `{"t":"append"}`: a context that is another one with segments behind it.
    Append(Append),
    /// `{"t":"evict"}`: a context that is another one with ranges taken out.
    Evict(Box<Evict>),
    /// `{"t":"replace"}`: a context whose whole list is given.
    Replace(Replace),
    /// `{"t":"fork"}`: a copy of a context for another thread.
    Fork(Fork),
    /// `{"t":"generation"}`: one call of the policy.
    Generation(Generation),
    /// `{"t":"outcome"}`: the reward of a rollout.
    Outcome(Outcome),
    /// A record of a type that this version does not know, kept whole.
    Unknown(Extra),
}

impl Record {
    /// The tag `t` of the record, empty for an unknown record without one.
    pub fn tag(&self) -> &str {
        match self {
            Self::Header(_) => "header",
            Self::Segment(_) => "segment",
            Self::Append(_) => "append",
            Self::Evict(_) => "evict",
            Self::Replace(_) => "replace",
            Self::Fork(_) => "fork",
            Self::Generation(_) => "generation",
            Self::Outcome(_) => "outcome",
            Self::Unknown(fields) => fields.get("t").and_then(Value::as_str).unwrap_or(""),
        }
    }
}

impl Record {
    /// The fields that this version does not know; all of them for a record of unknown type.
    pub fn extra(&self) -> &Extra {
        match self {
            Self::Header(record) => &record.extra,
            Self::Segment(record) => &record.extra,
            Self::Append(record) => &record.extra,
            Self::Evict(record) => &record.extra,
            Self::Replace(record) => &record.extra,
            Self::Fork(record) => &record.extra,
            Self::Generation(record) => &record.extra,
            Self::Outcome(record) => &record.extra,
            Self::Unknown(fields) => fields,
        }
    }
}

/// Reads an `Option` whose key must be there, so that a forgotten `from` is not taken for `null`.
fn nullable<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    serde::Deserialize::deserialize(deserializer)
}

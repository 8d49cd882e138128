use base64::Engine;
use pleach_layout::Eviction;
use pleach_picture::{Picture, PictureError};
use serde::Serialize;

use super::chart::Gaps;

/// What a page shows of one file.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Page {
    /// The file's name.
    pub(crate) file: String,
    /// Model, tokenizer, harness, clip and what else one line each tells.
    pub(crate) facts: Vec<Fact>,
    /// What a reader must know first: that the file was clipped, or why no model was asked.
    pub(crate) notices: Vec<String>,
    /// The layouts, the exact ones first.
    pub(crate) layouts: Vec<LayoutRow>,
    /// The exact layouts against each other, where a model was asked.
    pub(crate) equivalence: Option<Equivalence>,
    /// The rollouts by themselves, where the file holds several.
    pub(crate) rollouts: Vec<Rollout>,
    /// The gap along the rollout, where a model was asked.
    #[serde(skip)]
    pub(crate) gaps: Option<Gaps>,
    /// The mask.
    #[serde(skip)]
    pub(crate) mask: Option<Mask>,
    /// The evictions in file order.
    pub(crate) evictions: Vec<EvictionRow>,
}

/// A line of facts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Fact {
    pub(crate) fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// A mean and a maximum over loss terms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Per {
    pub(crate) mean: f64,
    pub(crate) max: f64,
}

/// Log-probability gaps in nats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Gap {
    pub(crate) mean: f64,
    pub(crate) max: f64,
    /// Above 0 where the training context makes the sampled tokens likelier.
    pub(crate) signed: f64,
}

/// What one layout costs and gets wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LayoutRow {
    pub(crate) name: String,
    pub(crate) exact: bool,
    /// Sequences, which is passes through a model.
    pub(crate) passes: usize,
    pub(crate) tokens: usize,
    pub(crate) pairs: u64,
    pub(crate) supervised: usize,
    /// Supervised terms over sampled tokens.
    pub(crate) coverage: f64,
    /// Live tokens that a term's prefix lacks.
    pub(crate) missing: Per,
    /// Tokens of a term's prefix that were not live.
    pub(crate) leaked: Per,
    /// Against the live views, where a model was asked.
    pub(crate) gap: Option<Gap>,
}

/// The exact layouts against each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Equivalence {
    /// What `packed` was compared with.
    pub(crate) against: String,
    pub(crate) max_logp_difference: f64,
    pub(crate) relative_gradient_error: f64,
    pub(crate) dtype: String,
    pub(crate) holds: bool,
}

/// One of several rollouts of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rollout {
    pub(crate) name: String,
    pub(crate) evictions: usize,
    pub(crate) layouts: Vec<LayoutRow>,
}

/// One eviction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct EvictionRow {
    pub(crate) context: u32,
    /// What was done, and what stands for what left.
    pub(crate) kind: String,
    pub(crate) removed: usize,
    pub(crate) added: usize,
    /// Tokens of the context before.
    pub(crate) before: usize,
    pub(crate) by: String,
    pub(crate) trigger: String,
    pub(crate) location: String,
    /// Gaps of `compressed` before it and of `full` after it, where a model was asked: what each
    /// gets wrong because of it.
    pub(crate) compressed: Option<Per>,
    pub(crate) full: Option<Per>,
}

impl EvictionRow {
    pub(crate) fn new(eviction: &Eviction) -> Self {
        let by = eviction.by.as_ref().map_or_else(String::new, |by| {
            let who = word(&by.kind);
            match (&by.name, by.generation) {
                (Some(name), _) => format!("{who} {name}"),
                (None, Some(generation)) => format!("{who}, {generation}"),
                (None, None) => who,
            }
        });
        let kind = match &eviction.replacement {
            Some(kind) => format!("{}, {}", eviction.operation, word(kind)),
            None => eviction.operation.into(),
        };
        Self {
            context: eviction.context,
            kind,
            removed: eviction.removed,
            added: eviction.added,
            before: eviction.before,
            by,
            trigger: eviction.trigger.as_ref().map_or_else(String::new, word),
            location: eviction.location.clone(),
            compressed: None,
            full: None,
        }
    }
}

/// A word of the record format, as one reads it.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(|word| word.replace('_', " ")))
        .unwrap_or_default()
}

/// The mask, as SVG while that is light and as PNG above that.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mask {
    /// SVG text.
    Svg(String),
    /// The bytes of a PNG file.
    Png(Vec<u8>),
}

impl Mask {
    /// The heaviest SVG that a page takes in.
    const HEAVIEST: usize = 1 << 20;

    /// The lighter way to show a picture; drawn with [`pleach_picture::Theme::Auto`] it follows the
    /// reader.
    ///
    /// # Errors
    /// A picture that cannot be encoded.
    pub(crate) fn new(picture: &Picture) -> Result<Self, PictureError> {
        let svg = picture.svg()?;
        if svg.len() <= Self::HEAVIEST { Ok(Self::Svg(svg)) } else { Ok(Self::Png(picture.png()?)) }
    }

    pub(super) fn markup(&self) -> String {
        match self {
            Self::Svg(svg) => svg.clone(),
            Self::Png(bytes) => {
                let data = base64::engine::general_purpose::STANDARD.encode(bytes);
                format!(
                    "<img alt=\"The mask of the packed layout\" src=\"data:image/png;base64,{data}\">"
                )
            }
        }
    }
}

//! Segments as adapters make them: text with a role, an author and the place where it was read.
use std::fmt::{self, Debug, Write};
use std::hash::{Hash, Hasher};

use pleach_tree::{Location, Origin, Part, Role, Segment, SegmentId, Source};

use rustc_hash::FxHasher;

use super::Item;
use crate::core::wording;

/// Where something was read.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    /// Its index in the header's files.
    pub(crate) file: u32,
    pub(crate) at: Location,
}

impl Spot {
    /// A segment that was read here, under the harness's own key.
    pub(crate) fn segment(&self, key: impl Into<String>, segment: Segment) -> Segment {
        Segment {
            source: Some(Source { file: self.file, line: self.at.line, key: key.into() }),
            ..segment
        }
    }
}

/// A segment of text.
pub(crate) fn text(role: Role, origin: Origin, text: impl Into<String>) -> Segment {
    Segment::new(SegmentId(0), role, origin).with_text(text)
}

/// A part of what a call said; what is recorded of reasoning is a provider's own words for it.
pub(crate) fn said(part: Part, text: impl Into<String>) -> Segment {
    let origin = if part == Part::Reasoning { Origin::ExternalModel } else { Origin::Policy };
    Segment { part: Some(part), ..self::text(Role::Assistant, origin, text) }
}

/// A tool call that a call made.
pub(crate) fn call(id: &str, name: &str, input: &str) -> Segment {
    Segment { calls: vec![id.to_owned()], ..said(Part::ToolCall, wording::call(id, name, input)) }
}

/// What a tool answered.
pub(crate) fn result(call: &str, text: impl Into<String>, is_error: bool) -> Segment {
    let mut segment = self::text(Role::Tool, Origin::Environment, text);
    segment.result_of = Some(call.to_owned());
    if is_error {
        segment.extra.insert("is_error".into(), true.into());
    }
    segment
}

/// A text that quotes what a call said, as the words around it and the call's own segment; none
/// where it does not quote it.
pub(crate) fn quoting(text: &Segment, said: &str, own: Item) -> Option<Vec<Item>> {
    let said = said.trim();
    let whole = text.text.as_deref().filter(|_| !said.is_empty())?;
    let (before, after) = whole.split_once(said)?;
    let words = |words: &str, open| {
        let segment =
            Segment { origin: Origin::Harness, open, text: Some(words.to_owned()), ..text.clone() };
        (!words.is_empty()).then(|| Item::New(vec![segment]))
    };
    Some([words(before, true), Some(own), words(after, false)].into_iter().flatten().collect())
}

/// A number for what segments say, whoever says it.
pub(crate) fn content_number(segments: &[Segment]) -> u64 {
    let mut hasher = FxHasher::default();
    for segment in segments {
        (segment.role, segment.part, segment.text.as_deref(), segment.result_of.as_deref())
            .hash(&mut hasher);
    }
    hasher.finish()
}

/// A number for everything that was read of a record, so that two of one id are told apart without
/// keeping them.
pub(crate) fn content_of(record: &impl Debug) -> u64 {
    struct Hashed(FxHasher);
    impl Write for Hashed {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut hashed = Hashed(FxHasher::default());
    let written = write!(hashed, "{record:?}");
    debug_assert!(written.is_ok(), "a hasher takes any text");
    hashed.0.finish()
}

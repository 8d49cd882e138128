//! How two lists of a context differ.
use pleach_tree::diff::Diff;
use pleach_tree::{SegmentId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// A place where a list lost or got something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// What is gone, in order.
    pub(super) removed: Vec<Span>,
    /// What stands there now, whole segments.
    pub(super) inserted: Vec<SegmentId>,
    /// What is kept before it, `None` at the start of the list.
    pub(super) after: Option<SegmentId>,
    /// Whether it is at the end of the list.
    pub(super) tail: bool,
}

impl Hunk {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.inserted.is_empty()
    }
}

/// The places where `to` differs from `from`; `None` where `to` is in another order or holds more
/// of a segment.
pub(super) fn hunks(
    from: &[Span],
    to: &[Span],
    whole: impl Fn(SegmentId) -> Span,
) -> Option<Vec<Hunk>> {
    let ids = |list: &[Span]| list.iter().map(|span| span.segment).collect::<Vec<_>>();
    let (old, new) = (ids(from), ids(to));
    let standing: FxHashSet<SegmentId> = old.iter().copied().collect();
    if standing.len() != old.len() {
        return None;
    }
    let diff = Diff::new(&old, &new, 1);
    let kept = diff.kept().iter().flat_map(|run| (run.old..run.old_end()).zip(run.new..));
    let end = (from.len(), to.len());
    let mut hunks = Vec::new();
    let mut hunk = Hunk::default();
    let (mut old_at, mut new_at) = (0, 0);
    for (place, at) in kept.chain([end]) {
        for span in &to[new_at..at] {
            if standing.contains(&span.segment) || *span != whole(span.segment) {
                return None;
            }
            hunk.inserted.push(span.segment);
        }
        hunk.removed.extend_from_slice(&from[old_at..place]);
        if let (Some(&before), Some(&span)) = (from.get(place), to.get(at)) {
            if span.start < before.start || before.end < span.end {
                return None;
            }
            hunk.removed.extend(rest(Span { end: span.start, ..before }));
            hunks.push(std::mem::take(&mut hunk));
            hunk.after = Some(span.segment);
            hunk.removed.extend(rest(Span { start: span.end, ..before }));
        }
        (old_at, new_at) = (place + 1, at + 1);
    }
    hunk.tail = true;
    hunks.push(hunk);
    hunks.retain(|hunk| !hunk.is_empty());
    Some(hunks)
}

fn rest(span: Span) -> Option<Span> {
    (!span.is_empty()).then_some(span)
}

/// `from` without `removed`, with `inserted` where the first removed range stood, or one of them in
/// each removed range.
pub(super) fn apply(
    from: &[Span],
    removed: &[Span],
    inserted: &[Span],
    one_each: bool,
) -> Vec<Span> {
    let mut ranges: FxHashMap<SegmentId, Vec<(Span, usize)>> = FxHashMap::default();
    for (index, span) in removed.iter().enumerate() {
        ranges.entry(span.segment).or_default().push((*span, index));
    }
    let mut out = Vec::with_capacity(from.len());
    let mut placed = false;
    for &span in from {
        let mut start = span.start;
        let mut touched = false;
        for &(range, index) in ranges.get(&span.segment).into_iter().flatten() {
            out.extend(rest(Span { start, end: range.start, ..span }));
            (start, touched) = (range.end, true);
            if one_each {
                out.push(inserted[index]);
            } else if !std::mem::replace(&mut placed, true) {
                out.extend_from_slice(inserted);
            }
        }
        if touched { out.extend(rest(Span { start, ..span })) } else { out.push(span) }
    }
    out
}

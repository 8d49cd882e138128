//! Taking ranges out of a context and putting a replacement in.
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Evicted, Place, SegmentId, Span};

/// A context in the middle of an eviction: what is kept, and where each listed range stood.
#[derive(Debug, Default)]
pub(super) struct Cut {
    items: Vec<Item>,
    pub(super) removed: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
enum Item {
    Kept(Span),
    /// Where the first token of the evicted entry stood.
    Hole(usize),
}

/// Ranges to take out of one segment, each with the index of the entry that lists it; sorted and
/// disjoint.
#[derive(Debug, Default)]
pub(super) struct Ranges(FxHashMap<SegmentId, Vec<(u32, u32, usize)>>);

impl Ranges {
    /// Collects the entries; returns also the segments whose entries overlap, which are merged.
    pub(super) fn collect(
        evicted: &[Evicted],
        whole: impl Fn(SegmentId) -> u32,
    ) -> (Self, Vec<SegmentId>) {
        let mut map: FxHashMap<SegmentId, Vec<(u32, u32, usize)>> = FxHashMap::default();
        for (index, entry) in evicted.iter().enumerate() {
            let (start, end) = entry.tokens.unwrap_or_else(|| (0, whole(entry.segment)));
            map.entry(entry.segment).or_default().push((start, end, index));
        }
        let mut overlapping = Vec::new();
        for (&segment, ranges) in &mut map {
            ranges.sort_unstable();
            let mut merged: Vec<(u32, u32, usize)> = Vec::with_capacity(ranges.len());
            for &(start, end, index) in ranges.iter() {
                match merged.last_mut() {
                    Some(last) if start < last.1 || (start, end) == (last.0, last.1) => {
                        last.1 = last.1.max(end);
                        overlapping.push(segment);
                    }
                    _ => merged.push((start, end, index)),
                }
            }
            *ranges = merged;
        }
        overlapping.sort_unstable();
        overlapping.dedup();
        (Self(map), overlapping)
    }

    /// The ranges of a segment, sorted and disjoint.
    pub(super) fn of(&self, segment: SegmentId) -> impl Iterator<Item = (u32, u32)> {
        self.0.get(&segment).into_iter().flatten().map(|&(start, end, _)| (start, end))
    }

    /// Takes the ranges out of `spans`.
    pub(super) fn cut(&self, spans: &[Span]) -> Cut {
        let mut cut = Cut::default();
        let mut seen = FxHashSet::default();
        for &span in spans {
            match self.0.get(&span.segment) {
                Some(ranges) => cut.span(span, ranges, &mut seen),
                None => cut.items.push(Item::Kept(span)),
            }
        }
        cut
    }
}

impl Cut {
    fn span(&mut self, span: Span, ranges: &[(u32, u32, usize)], seen: &mut FxHashSet<usize>) {
        let mut start = span.start;
        let mut touched = false;
        for &(from, to, index) in ranges {
            let (from, to) = (from.max(start), to.min(span.end));
            let empty = span.is_empty() && from == span.start && to == span.end;
            if from >= to && !empty {
                continue;
            }
            touched = true;
            self.keep(Span { start, end: from, ..span });
            if seen.insert(index) {
                self.items.push(Item::Hole(index));
            }
            self.removed.push(Span { start: from, end: to, ..span });
            start = to;
        }
        if touched {
            self.keep(Span { start, ..span });
        } else {
            self.items.push(Item::Kept(span));
        }
    }

    fn keep(&mut self, span: Span) {
        if !span.is_empty() {
            self.items.push(Item::Kept(span));
        }
    }

    /// The spans that are left.
    pub(super) fn kept(&self) -> impl Iterator<Item = Span> {
        self.items.iter().filter_map(|item| match item {
            Item::Kept(span) => Some(*span),
            Item::Hole(_) => None,
        })
    }

    /// The new list, with the replacement where `place` says; `heads` is the number of leading
    /// system spans that are kept.
    pub(super) fn place(
        &self,
        place: Place,
        replacement: &[Span],
        entries: usize,
        heads: usize,
    ) -> Vec<Span> {
        let one_each = place == Place::InPlace && replacement.len() == entries;
        let mut out = Vec::with_capacity(self.items.len() + replacement.len());
        let target = match place {
            Place::Head => Some(heads),
            Place::Index(index) => Some(index as usize),
            Place::AfterKept => Some(self.kept().count()),
            Place::InPlace | Place::BeforeFirst => None,
        };
        let (mut kept, mut placed) = (0, false);
        for item in &self.items {
            if target == Some(kept) && !placed {
                out.extend_from_slice(replacement);
                placed = true;
            }
            match *item {
                Item::Kept(span) => {
                    out.push(span);
                    kept += 1;
                }
                Item::Hole(index) if one_each => out.push(replacement[index]),
                Item::Hole(_) if target.is_none() && !placed => {
                    out.extend_from_slice(replacement);
                    placed = true;
                }
                Item::Hole(_) => {}
            }
        }
        if !placed && !one_each {
            out.extend_from_slice(replacement);
        }
        out
    }
}

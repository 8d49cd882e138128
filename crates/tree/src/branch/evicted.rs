//! Checks of what an eviction lists.
use rustc_hash::{FxHashMap, FxHashSet};

use super::build::TreeBuilder;
use super::cut::Ranges;
use crate::{Evict, Evicted, Fault, Location, Report, Segment, SegmentId, Span};

impl TreeBuilder {
    /// Every range must be a range of its segment, and every token of it must be in the context.
    pub(super) fn check_evicted(
        &self,
        at: &Location,
        before: &[Span],
        record: &mut Evict,
        report: &mut Report,
    ) {
        let from = record.from;
        let mut standing: FxHashMap<SegmentId, Vec<Span>> = FxHashMap::default();
        for span in before {
            standing.entry(span.segment).or_default().push(*span);
        }
        let listed = std::mem::take(&mut record.evicted);
        for (index, mut entry) in listed.into_iter().enumerate() {
            let at = at.key(format!("evicted[{index}]"));
            let segment = entry.segment;
            let Some(found) = self.tree.segment(segment) else {
                report.fault(at, Fault::MissingSegment { segment });
                continue;
            };
            if let Some(range) = entry.tokens {
                let at = at.key(format!("{}.tokens", at.key));
                entry.tokens = self.check_range(&at, found, range, report);
                if entry.tokens.is_some_and(|(start, end)| start == end && found.extent() > 0) {
                    continue;
                }
            }
            let whole = (0, self.extent(segment));
            let (start, end) = entry.tokens.unwrap_or(whole);
            let inside = inside(standing.get(&segment).map_or(&[], Vec::as_slice), (start, end));
            let tokens: u32 = inside.iter().map(|(start, end)| end - start).sum();
            if inside.is_empty() || (entry.tokens.is_some() && tokens < end - start) {
                let key = if entry.tokens.is_some() {
                    format!("{}.tokens", at.key)
                } else {
                    at.key.clone()
                };
                report.fault(at.key(key), Fault::EvictedNotInContext { segment, start, end, from });
                record.evicted.extend(
                    inside.into_iter().map(|(start, end)| Evicted::range(segment, start, end)),
                );
            } else {
                record.evicted.push(entry);
            }
        }
    }

    /// The range as it can be used; `None` for the whole segment.
    fn check_range(
        &self,
        at: &Location,
        of: &Segment,
        (start, end): (u32, u32),
        report: &mut Report,
    ) -> Option<(u32, u32)> {
        let (segment, len) = (of.id, of.extent());
        if of.tokens.is_none() {
            report.fault(at.clone(), Fault::RangeWithoutTokens { segment });
            return None;
        }
        let empty = start == end && len > 0;
        if start > end || end as usize > len || empty {
            report.fault(at.clone(), Fault::RangeOutside { segment, start, end, len });
        }
        let end = end.min(self.extent(segment));
        Some((start.min(end), end))
    }

    /// Ranges that overlap become their union, which stands where the first of them was listed.
    pub(super) fn merge(&self, at: &Location, record: &mut Evict, report: &mut Report) {
        let (ranges, overlapping) = Ranges::collect(&record.evicted, |id| self.extent(id));
        for &segment in &overlapping {
            report.fault(at.key("evicted"), Fault::OverlappingRanges { segment });
        }
        let listed = std::mem::take(&mut record.evicted);
        let whole: FxHashSet<SegmentId> = listed
            .iter()
            .filter(|entry| entry.tokens.is_none())
            .map(|entry| entry.segment)
            .collect();
        let mut merged = FxHashSet::default();
        for entry in listed {
            if !overlapping.contains(&entry.segment) {
                record.evicted.push(entry);
            } else if merged.insert(entry.segment) {
                if whole.contains(&entry.segment) {
                    record.evicted.push(Evicted::whole(entry.segment));
                } else {
                    record.evicted.extend(
                        ranges
                            .of(entry.segment)
                            .map(|(start, end)| Evicted::range(entry.segment, start, end)),
                    );
                }
            }
        }
    }

    /// A replacement must exist, stand once, and not leave in the same record.
    pub(super) fn check_replacement(
        &self,
        at: &Location,
        before: &[Span],
        record: &mut Evict,
        report: &mut Report,
    ) {
        let Some(replacement) = &mut record.replacement else { return };
        if replacement.latent.is_some() && replacement.kind != crate::ReplacementKind::Latent {
            report.fault(at.key("replacement.latent"), Fault::LatentKind);
            replacement.latent = None;
        }
        if replacement.kind == crate::ReplacementKind::None && !replacement.segments.is_empty() {
            let fault = Fault::SegmentsOfNone { count: replacement.segments.len() };
            if !report.fault(at.key("replacement.kind"), fault) {
                replacement.kind = crate::ReplacementKind::Placeholder;
            }
        }
        let mut present: FxHashSet<SegmentId> = before.iter().map(|span| span.segment).collect();
        let listed = std::mem::take(&mut replacement.segments);
        for (index, segment) in listed.into_iter().enumerate() {
            let at = at.key(format!("replacement.segments[{index}]"));
            if !self.tree.segments.contains_key(&segment) {
                report.fault(at, Fault::MissingSegment { segment });
            } else if record.evicted.iter().any(|entry| entry.segment == segment) {
                report.fault(at, Fault::ReplacementEvicted { segment });
                record.evicted.retain(|entry| entry.segment != segment);
            } else if !present.insert(segment) {
                report.fault(at, Fault::DuplicateIdentity { segment });
            } else {
                replacement.segments.push(segment);
            }
        }
    }
}

/// What of a range stands among the spans of its segment; an empty segment that stands there gives
/// an empty range.
fn inside(standing: &[Span], (start, end): (u32, u32)) -> Vec<(u32, u32)> {
    let overlap = |span: &Span| {
        let (from, to) = (span.start.max(start), span.end.min(end));
        (from < to || (span.is_empty() && from == to)).then_some((from, to))
    };
    standing.iter().filter_map(overlap).collect()
}

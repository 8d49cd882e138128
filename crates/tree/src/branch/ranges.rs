//! Checks of what an eviction lists.
use rustc_hash::{FxHashMap, FxHashSet};

use super::build::TreeBuilder;
use super::evict::Cut;
use crate::{Evict, Evicted, Fault, Location, Report, SegmentId, Span};

impl TreeBuilder {
    /// Every range must be a range of its segment, and the segment must be in the context.
    pub(super) fn check_evicted(&self, at: &Location, before: &[Span], record: &mut Evict, report: &mut Report) {
        let present: FxHashSet<SegmentId> = before.iter().map(|span| span.segment).collect();
        let from = record.from;
        let listed = std::mem::take(&mut record.evicted);
        for (index, mut entry) in listed.into_iter().enumerate() {
            let at = at.key(format!("evicted[{index}]"));
            let segment = entry.segment;
            let Some(found) = self.segment(segment) else {
                report.fault(self.lenient, at, Fault::MissingSegment { segment });
                continue;
            };
            let len = found.extent();
            if let Some((start, end)) = entry.tokens {
                if found.tokens.is_none() {
                    report.fault(self.lenient, at.key(format!("{}.tokens", at.key)), Fault::RangeWithoutTokens { segment });
                    entry.tokens = None;
                } else if start > end || end as usize > len {
                    let fault = Fault::RangeOutside { segment, start, end, len };
                    report.fault(self.lenient, at.key(format!("{}.tokens", at.key)), fault);
                    let end = end.min(self.extent(segment));
                    entry.tokens = Some((start.min(end), end));
                }
            }
            if !present.contains(&segment) {
                let (start, end) = entry.tokens.unwrap_or((0, self.extent(segment)));
                report.fault(self.lenient, at, Fault::EvictedNotInContext { segment, start, end, from });
                continue;
            }
            record.evicted.push(entry);
        }
    }

    /// Every token of a listed range must be in the context.
    pub(super) fn check_removed(&self, at: &Location, cut: &Cut, record: &mut Evict, report: &mut Report) {
        let mut listed: FxHashMap<SegmentId, (usize, bool)> = FxHashMap::default();
        for Evicted { segment, tokens, .. } in &record.evicted {
            let entry = listed.entry(*segment).or_default();
            match tokens {
                Some((start, end)) => entry.0 += (end - start) as usize,
                None => entry.1 = true,
            }
        }
        let removed = cut.removed_of();
        for (index, entry) in record.evicted.iter().enumerate() {
            let (Some((start, end)), (asked, whole)) = (entry.tokens, listed[&entry.segment]) else { continue };
            let found = removed.get(&entry.segment).map_or(0, |(_, tokens)| *tokens);
            if !whole && found < asked {
                let fault = Fault::EvictedNotInContext { segment: entry.segment, start, end, from: record.from };
                report.fault(self.lenient, at.key(format!("evicted[{index}].tokens")), fault);
            }
        }
        let inside: FxHashMap<SegmentId, Vec<Span>> = cut.removed.iter().fold(FxHashMap::default(), |mut map, span| {
            map.entry(span.segment).or_insert_with(Vec::new).push(*span);
            map
        });
        self.narrow(record, &inside);
    }

    /// Leaves in the record what lenient reading took out, so that it can be written back as sound records.
    fn narrow(&self, record: &mut Evict, inside: &FxHashMap<SegmentId, Vec<Span>>) {
        if !self.lenient {
            return;
        }
        let listed = std::mem::take(&mut record.evicted);
        let mut done = FxHashSet::default();
        for entry in listed {
            let Some(spans) = inside.get(&entry.segment) else { continue };
            let sound = entry.tokens.is_none_or(|(start, end)| spans.iter().any(|span| span.start <= start && end <= span.end));
            if sound && !done.contains(&entry.segment) {
                if entry.tokens.is_none() {
                    done.insert(entry.segment);
                }
                record.evicted.push(entry);
            } else if !sound && done.insert(entry.segment) {
                record.evicted.retain(|kept| kept.segment != entry.segment);
                record.evicted.extend(spans.iter().map(|span| Evicted::range(span.segment, span.start, span.end)));
            }
        }
    }

    /// A replacement must exist, stand once, and not leave in the same record.
    pub(super) fn check_replacement(&self, at: &Location, before: &[Span], record: &mut Evict, report: &mut Report) {
        let Some(replacement) = &mut record.replacement else { return };
        if replacement.latent.is_some() && replacement.kind != crate::ReplacementKind::Latent {
            let message = "\"latent\" stands in a replacement of another kind".into();
            report.fault(self.lenient, at.key("replacement.latent"), Fault::Field { message });
        }
        let mut present: FxHashSet<SegmentId> = before.iter().map(|span| span.segment).collect();
        let listed = std::mem::take(&mut replacement.segments);
        for (index, segment) in listed.into_iter().enumerate() {
            let at = at.key(format!("replacement.segments[{index}]"));
            if !self.segments.contains_key(&segment) {
                report.fault(self.lenient, at, Fault::MissingSegment { segment });
            } else if record.evicted.iter().any(|entry| entry.segment == segment) {
                report.fault(self.lenient, at, Fault::ReplacementEvicted { segment });
                record.evicted.retain(|entry| entry.segment != segment);
            } else if !present.insert(segment) {
                report.fault(self.lenient, at, Fault::DuplicateIdentity { segment });
            } else {
                replacement.segments.push(segment);
            }
        }
    }
}

//! Eviction records as they are written, and what every context holds.
use std::sync::Arc;

use pleach_tree::{
    Append, ContextId, Evict, Fork, ForkReason, Generation, GenerationId, Outcome, Record, Replace,
    Role, Segment, SegmentId, Source,
};
use rustc_hash::FxHashSet;

/// The records that an adapter writes: it counts the ids of each kind and knows what every context
/// holds.
///
/// Contexts are lists of whole segments here; who evicts a part of one gives the rest as segments
/// of its own, or keeps its own lists.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    records: Vec<Record>,
    segments: u32,
    contexts: u32,
    generations: u32,
    /// Bytes of text, or tokens, of every segment.
    sizes: Vec<u64>,
    /// Where among the records every segment stands.
    places: Vec<u32>,
    systems: FxHashSet<SegmentId>,
    pieces: Vec<Piece>,
}

/// A segment behind what stands before it; contexts with a common start share its pieces.
#[derive(Debug, Clone, Copy)]
struct Piece {
    before: Option<usize>,
    segment: SegmentId,
    /// Bytes of text up to here.
    bytes: u64,
    /// Segments up to here.
    count: u64,
}

/// A context and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) id: ContextId,
    last: Option<usize>,
}

impl Ledger {
    /// Writes a segment, whose id and source are filled in here.
    pub(crate) fn segment(&mut self, source: Source, segment: Segment) -> SegmentId {
        let id = SegmentId(self.segments);
        self.segments += 1;
        self.sizes.push(segment.extent() as u64);
        self.places.push(u32::try_from(self.records.len()).unwrap_or(u32::MAX));
        if segment.role == Role::System {
            self.systems.insert(id);
        }
        self.records.push(Record::Segment(Segment { id, source: Some(source), ..segment }));
        id
    }

    /// Writes a context that is `from` with segments behind it.
    pub(crate) fn append(&mut self, from: Option<Held>, segments: Vec<SegmentId>) -> Held {
        let last = self.extend(from.and_then(|held| held.last), &segments);
        let id = self.context();
        let append = Append::new(from.map(|held| held.id), segments);
        self.records.push(Record::Append(Append { context: id, ..append }));
        Held { id, last }
    }

    /// Writes a context that is `from` in another thread.
    pub(crate) fn fork(&mut self, from: Held, reason: ForkReason) -> Held {
        let id = self.context();
        self.records.push(Record::Fork(Fork { context: id, ..Fork::new(from.id, reason) }));
        Held { id, ..from }
    }

    /// Writes an eviction from a context, whose own context is filled in here and holds `list`.
    pub(crate) fn evict(&mut self, from: Held, evict: Evict, list: &[SegmentId]) -> Held {
        let id = self.context();
        self.records.push(Record::Evict(Box::new(Evict { context: id, from: from.id, ..evict })));
        Held { id, last: self.rebase(from, list) }
    }

    pub(crate) fn is_system(&self, segment: SegmentId) -> bool {
        self.systems.contains(&segment)
    }

    /// Writes a context whose whole list is given, behind another one.
    pub(crate) fn replace(&mut self, from: Held, replace: Replace) -> Held {
        let id = self.context();
        let last = self.rebase(from, &replace.segments);
        self.records.push(Record::Replace(Replace { context: id, from: from.id, ..replace }));
        Held { id, last }
    }

    /// Writes a generation, whose id is filled in here.
    pub(crate) fn generation(&mut self, generation: Generation) -> GenerationId {
        let id = GenerationId(self.generations);
        self.generations += 1;
        self.records.push(Record::Generation(Generation { id, ..generation }));
        id
    }

    /// The segments of a context, in order.
    pub(crate) fn list(&self, held: Option<Held>) -> Vec<SegmentId> {
        let mut list = Vec::new();
        let mut at = held.and_then(|held| held.last);
        while let Some(piece) = at.map(|at| self.pieces[at]) {
            list.push(piece.segment);
            at = piece.before;
        }
        list.reverse();
        list
    }

    /// Writes how a rollout ended.
    pub(crate) fn outcome(&mut self, outcome: Outcome) {
        self.records.push(Record::Outcome(outcome));
    }

    /// Names the thread of every generation, in their order.
    pub(crate) fn name_threads(&mut self, names: &[Arc<str>]) {
        for record in &mut self.records {
            if let Record::Generation(generation) = record
                && let Some(name) = names.get(generation.id.0 as usize)
            {
                name.as_ref().clone_into(&mut generation.thread);
            }
        }
    }

    /// The records, in the order in which they were written.
    pub(crate) fn into_records(self) -> Vec<Record> {
        self.records
    }

    /// A segment as it was written.
    pub(crate) fn written(&self, segment: SegmentId) -> Option<&Segment> {
        match self.records.get(*self.places.get(segment.0 as usize)? as usize) {
            Some(Record::Segment(segment)) => Some(segment),
            _ => None,
        }
    }

    /// Bytes of text, or tokens, of a segment.
    pub(crate) fn size(&self, segment: SegmentId) -> u64 {
        self.sizes.get(segment.0 as usize).copied().unwrap_or_default()
    }

    /// Bytes of text and number of segments in a context.
    pub(crate) fn extent(&self, held: Held) -> (u64, u64) {
        held.last.map_or((0, 0), |last| (self.pieces[last].bytes, self.pieces[last].count))
    }

    fn extend(&mut self, mut before: Option<usize>, segments: &[SegmentId]) -> Option<usize> {
        for &segment in segments {
            let size = self.size(segment);
            let (bytes, count) = before
                .map_or((0, 0), |before| (self.pieces[before].bytes, self.pieces[before].count));
            self.pieces.push(Piece { before, segment, bytes: bytes + size, count: count + 1 });
            before = Some(self.pieces.len() - 1);
        }
        before
    }

    /// The pieces of a list, of which those that a context begins with are its own.
    fn rebase(&mut self, from: Held, list: &[SegmentId]) -> Option<usize> {
        let (mut places, mut at) = (Vec::new(), from.last);
        while let Some(place) = at {
            places.push(place);
            at = self.pieces[place].before;
        }
        let own = places.iter().rev().zip(list);
        let same =
            own.take_while(|&(&place, &segment)| self.pieces[place].segment == segment).count();
        let last = same.checked_sub(1).and_then(|at| places.iter().rev().nth(at)).copied();
        self.extend(last, &list[same..])
    }

    fn context(&mut self) -> ContextId {
        self.contexts += 1;
        ContextId(self.contexts - 1)
    }
}

#[cfg(test)]
mod tests {
    use pleach_tree::{Evicted, Origin};

    use super::*;

    #[test]
    fn an_eviction_shares_the_pieces_of_what_stands_before_its_first_hole() {
        let mut ledger = Ledger::default();
        let source = || Source { file: 0, line: 1, key: String::new() };
        let text =
            |text: &str| Segment::new(SegmentId(0), Role::User, Origin::Human).with_text(text);
        let ids: Vec<SegmentId> =
            (0..1_000).map(|_| ledger.segment(source(), text("ab"))).collect();
        let mut held = ledger.append(None, ids.clone());
        let mut list = ids.clone();
        for _ in 0..100 {
            let gone = list.remove(list.len() - 2);
            let evict = Evict::new(held.id, [Evicted::whole(gone)]);
            held = ledger.evict(held, evict, &list);
        }
        assert_eq!((ledger.list(Some(held)), ledger.extent(held)), (list, (1_800, 900)));
        assert_eq!(ledger.pieces.len(), 1_100);
    }
}

//! Eviction records as they are written, and what every context holds.
use pleach_tree::{
    Append, ContextId, Evict, Extra, Fork, ForkReason, Generation, GenerationId, Record, Replace, Segment, SegmentId, Source,
};

use super::load::Session;

/// The records so far.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) records: Vec<Record>,
    segments: u32,
    contexts: u32,
    generations: u32,
    /// Bytes of text of every segment.
    sizes: Vec<u64>,
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
pub(super) struct Held {
    pub(super) id: ContextId,
    last: Option<usize>,
}

impl Records {
    /// Writes a segment, whose id and source are filled in here.
    pub(super) fn segment(&mut self, session: &Session, entry: usize, key: &str, segment: Segment) -> SegmentId {
        let id = SegmentId(self.segments);
        self.segments += 1;
        self.sizes.push(segment.extent() as u64);
        let entry = &session.entries[entry];
        let source = Source { file: entry.file, line: entry.line, key: key.into() };
        self.records.push(Record::Segment(Segment { id, source: Some(source), ..segment }));
        id
    }

    pub(super) fn append(&mut self, from: Option<Held>, segments: Vec<SegmentId>) -> Held {
        let last = self.extend(from.and_then(|held| held.last), &segments);
        let id = self.context();
        self.records.push(Record::Append(Append {
            context: id,
            from: from.map(|held| held.id),
            segments,
            extra: Extra::new(),
        }));
        Held { id, last }
    }

    pub(super) fn fork(&mut self, from: Held, reason: ForkReason) -> Held {
        let id = self.context();
        self.records.push(Record::Fork(Fork { context: id, from: from.id, reason, extra: Extra::new() }));
        Held { id, ..from }
    }

    /// Writes an eviction, whose context is filled in here and holds `list`.
    pub(super) fn evict(&mut self, evict: Evict, list: &[SegmentId]) -> Held {
        let id = self.context();
        self.records.push(Record::Evict(Evict { context: id, ..evict }));
        Held { id, last: self.extend(None, list) }
    }

    /// Writes a context whose whole list is given.
    pub(super) fn replace(&mut self, replace: Replace) -> Held {
        let id = self.context();
        let last = self.extend(None, &replace.segments);
        self.records.push(Record::Replace(Replace { context: id, ..replace }));
        Held { id, last }
    }

    /// Writes a generation, whose id is filled in here.
    pub(super) fn generation(&mut self, generation: Generation) -> GenerationId {
        let id = GenerationId(self.generations);
        self.generations += 1;
        self.records.push(Record::Generation(Generation { id, ..generation }));
        id
    }

    /// The segments of a context, in order.
    pub(super) fn list(&self, held: Option<Held>) -> Vec<SegmentId> {
        let mut list = Vec::new();
        let mut at = held.and_then(|held| held.last);
        while let Some(piece) = at.map(|at| self.pieces[at]) {
            list.push(piece.segment);
            at = piece.before;
        }
        list.reverse();
        list
    }

    /// Bytes of text of a segment.
    pub(super) fn size(&self, segment: SegmentId) -> u64 {
        self.sizes.get(segment.0 as usize).copied().unwrap_or_default()
    }

    /// Bytes of text and number of segments in a context.
    pub(super) fn extent(&self, held: Held) -> (u64, u64) {
        held.last.map_or((0, 0), |last| (self.pieces[last].bytes, self.pieces[last].count))
    }

    fn extend(&mut self, mut before: Option<usize>, segments: &[SegmentId]) -> Option<usize> {
        for &segment in segments {
            let size = self.size(segment);
            let (bytes, count) = before.map_or((0, 0), |before| (self.pieces[before].bytes, self.pieces[before].count));
            self.pieces.push(Piece { before, segment, bytes: bytes + size, count: count + 1 });
            before = Some(self.pieces.len() - 1);
        }
        before
    }

    fn context(&mut self) -> ContextId {
        self.contexts += 1;
        ContextId(self.contexts - 1)
    }
}

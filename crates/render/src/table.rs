//! The segments of the rendered records, each made once for what it stands for and its ids.
use std::ops::Range;

use pleach_tree::{GenerationId, LossRun, Origin, Record, Role, Segment, SegmentId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use super::RenderError;

/// A part of a rendering: the number of a segment of the tree, and how often it stood before.
pub(super) type PartKey = (u32, u32);

/// What a piece of glue stands behind: a part or the start, and how much other glue.
pub(super) type GlueKey = (Option<PartKey>, u32);

/// The new segments and the records as they grow.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) records: Vec<Record>,
    entries: Vec<TableRow>,
    parts: FxHashMap<(PartKey, Box<[u32]>), SegmentId>,
    glue: FxHashMap<(GlueKey, Box<[u32]>), Vec<SegmentId>>,
    /// Glue that the policy sampled, with the call that it is of.
    sampled: FxHashMap<GlueKey, Vec<(GenerationId, SegmentId)>>,
    gone: FxHashSet<SegmentId>,
}

#[derive(Debug)]
struct TableRow {
    part: Option<PartKey>,
    record: usize,
}

impl Table {
    /// What a new segment renders, `None` for glue.
    pub(super) fn part(&self, id: SegmentId) -> Option<PartKey> {
        self.entries[id.0 as usize].part
    }

    /// The ids of a range.
    pub(super) fn ids(&self, span: Span) -> &[u32] {
        self.segment(span.segment)
            .tokens
            .as_deref()
            .and_then(|ids| ids.get(span.start as usize..span.end as usize))
            .unwrap_or(&[])
    }

    /// The whole of a new segment.
    pub(super) fn whole(&self, segment: SegmentId) -> Span {
        Span {
            segment,
            start: 0,
            end: u32::try_from(self.segment(segment).extent()).unwrap_or(u32::MAX),
        }
    }

    /// Notes that a segment left some context, so that glue is not brought back from there.
    pub(super) fn leave(&mut self, id: SegmentId) {
        self.gone.insert(id);
    }

    /// The new segment for a part with these ids.
    pub(super) fn render(
        &mut self,
        key: PartKey,
        ids: &[u32],
        original: &Segment,
    ) -> Result<SegmentId, RenderError> {
        let lookup = (key, Box::from(ids));
        if let Some(&id) = self.parts.get(&lookup) {
            return Ok(id);
        }
        let mut segment = original.clone();
        segment.tokens = Some(ids.to_vec());
        segment.loss = None;
        if original.tokens.as_deref() != Some(ids) {
            segment.logprobs = None;
        }
        let id = self.push(segment, Some(key))?;
        self.parts.insert(lookup, id);
        Ok(id)
    }

    /// A segment for glue behind `key`, an earlier one where `free` says that it may stand here.
    pub(super) fn glue(
        &mut self,
        key: GlueKey,
        ids: &[u32],
        role: Role,
        free: impl Fn(SegmentId) -> bool,
    ) -> Result<SegmentId, RenderError> {
        let lookup = (key, Box::from(ids));
        let known = self
            .glue
            .get(&lookup)
            .into_iter()
            .flatten()
            .find(|id| free(**id) && !self.gone.contains(id));
        if let Some(&id) = known {
            return Ok(id);
        }
        let segment = Segment::new(SegmentId(0), role, Origin::Harness).with_tokens(ids.to_vec());
        let id = self.push(segment, None)?;
        self.glue.entry(lookup).or_default().push(id);
        Ok(id)
    }

    /// A segment for what a call sampled around its texts, with the loss of the text `like`.
    pub(super) fn sample(
        &mut self,
        key: GlueKey,
        ids: &[u32],
        like: &Segment,
        call: GenerationId,
    ) -> Result<SegmentId, RenderError> {
        let mut segment =
            Segment::new(SegmentId(0), Role::Assistant, Origin::Policy).with_tokens(ids.to_vec());
        let end = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        segment.loss = like.loss.as_ref().map(|runs| {
            let weight = runs.first().map_or(0.0, |run| run.weight);
            vec![LossRun { start: 0, end, weight }]
        });
        let id = self.push(segment, None)?;
        self.sampled.entry(key).or_default().push((call, id));
        Ok(id)
    }

    /// What one of `calls` sampled behind `key`, where `ids` begin with it and it may stand here.
    pub(super) fn sampled(
        &self,
        key: GlueKey,
        ids: &[u32],
        calls: &[GenerationId],
        free: impl Fn(SegmentId) -> bool,
    ) -> Option<SegmentId> {
        let known = self.sampled.get(&key)?.iter();
        let begins = |id: SegmentId| ids.starts_with(self.ids(self.whole(id)));
        known
            .filter(|(call, id)| calls.contains(call) && free(*id) && begins(*id))
            .map(|(_, id)| *id)
            .max_by_key(|id| self.whole(*id).len())
    }

    /// Whole segments with the same ids, for a record that cannot name ranges.
    pub(super) fn as_wholes(&mut self, list: &[Span]) -> Result<Vec<SegmentId>, RenderError> {
        list.iter()
            .map(|&span| {
                if span == self.whole(span.segment) {
                    return Ok(span.segment);
                }
                let (ids, role) = (self.ids(span).to_vec(), self.segment(span.segment).role);
                self.glue((None, u32::MAX), &ids, role, |_| false)
            })
            .collect()
    }

    /// Gives a sampled segment the loss of the segment that it renders.
    ///
    /// Returns false where weights per token cannot be carried over to other tokens.
    pub(super) fn weigh(&mut self, id: SegmentId, original: &Segment) -> bool {
        let (Some(runs), len) = (&original.loss, self.whole(id).end) else { return true };
        let same_ids = original.tokens == self.segment(id).tokens;
        let weight = runs.first().map_or(0.0, |run| run.weight);
        let uniform = runs.iter().all(|run| run.weight == weight);
        let loss = match (same_ids, uniform, len) {
            (true, ..) => Some(runs.clone()),
            (_, true, 0) => Some(Vec::new()),
            (_, true, _) => Some(vec![LossRun { start: 0, end: len, weight }]),
            _ => None,
        };
        let kept = loss.is_some();
        if let Record::Segment(segment) = &mut self.records[self.entries[id.0 as usize].record] {
            segment.loss = loss;
        }
        kept
    }

    /// Takes the loss of a text off its tokens outside of `trained`, where the template names what
    /// is trained; the text's first token is number `at`, and the first behind it is returned.
    pub(super) fn train_only(
        &mut self,
        id: SegmentId,
        at: usize,
        trained: &[Range<usize>],
    ) -> usize {
        let row = &self.entries[id.0 as usize];
        let Record::Segment(segment) = &mut self.records[row.record] else { return at };
        let len = segment.extent();
        let is_whole = trained.iter().any(|span| span.start <= at && at + len <= span.end);
        let has_loss = segment.loss.is_some() || segment.origin == Origin::Policy;
        if row.part.is_none() || trained.is_empty() || is_whole || !has_loss {
            return at + len;
        }
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let all = || vec![LossRun { start: 0, end: number(len), weight: 1.0 }];
        let runs = segment.loss.take().unwrap_or_else(all);
        // A run's tokens, cut where a span begins or ends.
        let edges = trained.iter().flat_map(|span| [span.start, span.end]);
        let edges: Vec<u32> = edges.map(|edge| number(edge.saturating_sub(at))).collect();
        let mut cut = Vec::new();
        for run in runs {
            let inner = edges.iter().filter(|&&edge| run.start < edge && edge < run.end);
            let mut start = run.start;
            for end in inner.copied().chain([run.end]) {
                let is_trained = trained.iter().any(|span| span.contains(&(at + start as usize)));
                let weight = if is_trained { run.weight } else { 0.0 };
                cut.push(LossRun { start, end, weight });
                start = end;
            }
        }
        segment.loss = Some(cut);
        at + len
    }

    fn push(
        &mut self,
        mut segment: Segment,
        part: Option<PartKey>,
    ) -> Result<SegmentId, RenderError> {
        let id = SegmentId(
            u32::try_from(self.entries.len())
                .map_err(|_| RenderError::TooMany { what: "segments" })?,
        );
        segment.id = id;
        self.entries.push(TableRow { part, record: self.records.len() });
        self.records.push(Record::Segment(segment));
        Ok(id)
    }

    fn segment(&self, id: SegmentId) -> &Segment {
        match &self.records[self.entries[id.0 as usize].record] {
            Record::Segment(segment) => segment,
            other => unreachable!("a {} record stands where {id} was written", other.tag()),
        }
    }
}

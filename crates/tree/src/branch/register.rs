//! Contexts made from operations.
use petgraph::graph::NodeIndex;
use rustc_hash::FxHashSet;

use super::build::TreeBuilder;
use super::cut::{Cut, Ranges};
use super::tree::{Change, Context, Event};
use crate::{
    Append, ByKind, ContextId, Evict, Evidence, Fault, Fork, Location, PieceId, Record, Replace,
    ReplacementKind, Report, Role, SegmentId, Span,
};

impl TreeBuilder {
    pub(super) fn push_append(&mut self, at: Location, record: Append, report: &mut Report) {
        if let Some(parent) = self.parent(&at, record.context, record.from, report) {
            self.append(at, parent, record, report);
        }
    }

    fn append(&mut self, at: Location, parent: NodeIndex, mut record: Append, report: &mut Report) {
        match record.from {
            Some(from) => self.make_current(from),
            None => {
                self.state.current = None;
                self.state.present.clear();
            }
        }
        let listed = std::mem::take(&mut record.segments);
        for (index, segment) in listed.into_iter().enumerate() {
            let at = at.key(format!("segments[{index}]"));
            if !self.tree.segments.contains_key(&segment) {
                report.fault(at, Fault::MissingSegment { segment });
            } else if !self.state.present.insert(segment) {
                report.fault(at, Fault::DuplicateIdentity { segment });
            } else {
                self.warn_unoffered(&at, record.from, segment, report);
                self.warn_orphan(&at, segment, "", report);
                record.segments.push(segment);
            }
        }
        if self.refused(report) {
            return;
        }
        let spans: Vec<Span> = record.segments.iter().map(|&id| self.whole(id)).collect();
        let added: usize = spans.iter().map(Span::len).sum();
        let tail = self.tree.pieces.extend(self.tree.graph[parent].tail, spans);
        let tokens = self.tree.graph[parent].tokens + added;
        self.state.current = Some(record.context);
        self.add(at, record.context, parent, (tail, tokens, Vec::new()), Record::Append(record));
    }

    pub(super) fn push_fork(&mut self, at: Location, record: Fork, report: &mut Report) {
        let Some(parent) = self.parent(&at, record.context, Some(record.from), report) else {
            return;
        };
        if self.kv_evict() && self.is_newest(parent, record.from) {
            report.fault(at.clone(), Fault::ForkUnderKvEvict { context: record.context });
        }
        if self.refused(report) {
            return;
        }
        let (tail, tokens) = (self.tree.graph[parent].tail, self.tree.graph[parent].tokens);
        self.add(at, record.context, parent, (tail, tokens, Vec::new()), Record::Fork(record));
    }

    pub(super) fn push_replace(&mut self, at: Location, mut record: Replace, report: &mut Report) {
        let Some(parent) = self.parent(&at, record.context, Some(record.from), report) else {
            return;
        };
        let mut present = FxHashSet::default();
        let listed = std::mem::take(&mut record.segments);
        for (index, segment) in listed.into_iter().enumerate() {
            let at = at.key(format!("segments[{index}]"));
            if !self.tree.segments.contains_key(&segment) {
                report.fault(at, Fault::MissingSegment { segment });
            } else if !present.insert(segment) {
                report.fault(at, Fault::DuplicateIdentity { segment });
            } else {
                record.segments.push(segment);
            }
        }
        if self.refused(report) {
            return;
        }
        let spans: Vec<Span> = record.segments.iter().map(|&id| self.whole(id)).collect();
        let (path, before) = self.path_spans(record.from);
        let removed: Vec<Span> =
            before.iter().filter(|span| !present.contains(&span.segment)).copied().collect();
        self.note_evicted(&removed, false);
        let tail = self.rebuild(&path, &before, &spans);
        let tokens = spans.iter().map(Span::len).sum();
        self.state.present = present;
        self.state.current = Some(record.context);
        self.warn_orphans(&at, &spans, "; the harness sent it so", report);
        self.add(at, record.context, parent, (tail, tokens, removed), Record::Replace(record));
    }

    pub(super) fn push_evict(&mut self, at: Location, mut record: Box<Evict>, report: &mut Report) {
        let Some(parent) = self.parent(&at, record.context, Some(record.from), report) else {
            return;
        };
        self.check_author(&at, &mut record, report);
        let (path, before) = self.path_spans(record.from);
        self.check_evicted(&at, &before, &mut record, report);
        self.check_replacement(&at, &before, &mut record, report);
        self.merge(&at, &mut record, report);
        let (ranges, _) = Ranges::collect(&record.evicted, |id| self.extent(id));
        let cut = ranges.cut(&before);
        if cut.removed.is_empty() {
            report.fault(at.key("evicted"), Fault::EmptyEviction { context: record.context });
            let segments =
                record.replacement.map(|replacement| replacement.segments).unwrap_or_default();
            let mut extra = record.extra;
            extra.remove("segments");
            let append =
                Append { context: record.context, from: Some(record.from), segments, extra };
            return self.append(at, parent, append, report);
        }
        let spans = self.placed(&at, &cut, &mut record, report);
        if self.refused(report) {
            return;
        }
        let indexed = record
            .replacement
            .as_ref()
            .is_some_and(|replacement| replacement.kind == ReplacementKind::Index);
        self.note_evicted(&cut.removed, indexed);
        let tail = self.rebuild(&path, &before, &spans);
        let tokens = spans.iter().map(Span::len).sum();
        self.state.present = spans.iter().map(|span| span.segment).collect();
        self.state.current = Some(record.context);
        let sent = match record.evidence {
            Some(Evidence::Recorded) => "; the harness sent it so",
            Some(Evidence::Inferred) => "; the eviction is inferred",
            None => "",
        };
        self.warn_orphans(&at, &spans, sent, report);
        self.add(at, record.context, parent, (tail, tokens, cut.removed), Record::Evict(record));
    }

    fn placed(
        &self,
        at: &Location,
        cut: &Cut,
        record: &mut Evict,
        report: &mut Report,
    ) -> Vec<Span> {
        let entries = record.evicted.len();
        let Some(replacement) = &mut record.replacement else { return cut.kept().collect() };
        let pieces = cut.kept().count();
        if let crate::Place::Index(index) = replacement.place
            && index as usize > pieces
        {
            report.fault(at.key("replacement.place"), Fault::PlaceOutside { index, pieces });
            replacement.place = crate::Place::AfterKept;
        }
        let spans: Vec<Span> = replacement.segments.iter().map(|&id| self.whole(id)).collect();
        let system = |span: &Span| {
            self.tree.segment(span.segment).is_some_and(|segment| segment.role == Role::System)
        };
        let heads = cut.kept().take_while(system).count();
        cut.place(replacement.place, &spans, entries, heads)
    }

    fn check_author(&self, at: &Location, record: &mut Evict, report: &mut Report) {
        let Some(by) = &mut record.by else { return };
        let Some(generation) = by.generation else { return };
        if !self.tree.generations.contains_key(&generation) {
            report.fault(at.key("by.generation"), Fault::MissingGeneration { generation });
            (by.kind, by.generation) = (ByKind::Unknown, None);
        }
    }

    /// The node a context is made from; `None` where the record cannot be used.
    fn parent(
        &mut self,
        at: &Location,
        id: ContextId,
        from: Option<ContextId>,
        report: &mut Report,
    ) -> Option<NodeIndex> {
        if from == Some(id) {
            report.fault(at.key("from"), Fault::Cycle { context: id });
            return None;
        }
        if self.tree.contexts.contains_key(&id) {
            report.fault(at.key("context"), Fault::DuplicateId { what: "context", id: id.0 });
            return None;
        }
        let Some(from) = from else { return Some(self.origin) };
        let Some(&node) = self.tree.contexts.get(&from) else {
            report.fault(at.key("from"), Fault::MissingContext { context: from });
            return None;
        };
        if self.kv_evict() && !self.is_newest(node, from) {
            report.fault(at.key("from"), Fault::ForkUnderKvEvict { context: id });
        }
        Some(node)
    }

    /// Whether nothing has been made under the root of a context since.
    fn is_newest(&self, node: NodeIndex, context: ContextId) -> bool {
        self.tree.graph[node].root.is_none_or(|root| self.state.newest.get(&root) == Some(&context))
    }

    fn add(
        &mut self,
        at: Location,
        id: ContextId,
        parent: NodeIndex,
        made: (Option<PieceId>, usize, Vec<Span>),
        record: Record,
    ) {
        let root = self.tree.graph[parent].root.or(Some(id));
        let record = self.keep(at, record);
        let (tail, tokens, removed) = made;
        let node = self.tree.graph.add_node(Context { id: Some(id), root, tail, tokens });
        self.tree.graph.add_edge(parent, node, Change { record, removed });
        self.tree.contexts.insert(id, node);
        if let Some(root) = root {
            self.state.newest.insert(root, id);
        }
        self.tree.events.push(Event::Context(id));
    }

    fn whole(&self, segment: SegmentId) -> Span {
        Span { segment, start: 0, end: self.extent(segment) }
    }

    fn path_spans(&self, context: ContextId) -> (Vec<PieceId>, Vec<Span>) {
        let path = self.tree.pieces.path(self.tail(context));
        let spans = path.iter().map(|&piece| self.tree.pieces.span(piece)).collect();
        (path, spans)
    }

    /// Pieces for `spans` that share what they have in common with the path before.
    fn rebuild(&mut self, path: &[PieceId], before: &[Span], spans: &[Span]) -> Option<PieceId> {
        let shared = before.iter().zip(spans).take_while(|(a, b)| a == b).count();
        let parent = shared.checked_sub(1).map(|last| path[last]);
        self.tree.pieces.extend(parent, spans[shared..].iter().copied())
    }

    fn note_evicted(&mut self, removed: &[Span], indexed: bool) {
        for span in removed {
            let offered = self.state.evicted.entry(span.segment).or_default();
            *offered |= indexed;
        }
    }

    fn warn_unoffered(
        &self,
        at: &Location,
        from: Option<ContextId>,
        segment: SegmentId,
        report: &mut Report,
    ) {
        if self.state.evicted.get(&segment) != Some(&false) {
            return;
        }
        let left = |id: ContextId| self.tree.removed(id).iter().any(|span| span.segment == segment);
        if from.is_some_and(|from| self.tree.ancestors(from).any(left)) {
            report.warn(at.clone(), Fault::UnofferedAppend { segment });
        }
    }

    fn warn_orphans(
        &mut self,
        at: &Location,
        spans: &[Span],
        sent: &'static str,
        report: &mut Report,
    ) {
        for span in spans {
            self.warn_orphan(at, span.segment, sent, report);
        }
    }

    fn warn_orphan(
        &mut self,
        at: &Location,
        segment: SegmentId,
        sent: &'static str,
        report: &mut Report,
    ) {
        let Some(call) = self.tree.segment(segment).and_then(|segment| segment.result_of.clone())
        else {
            return;
        };
        let there =
            self.state.calls.get(&call).is_some_and(|caller| self.state.present.contains(caller));
        if !there && self.state.orphans.insert(segment) {
            report.warn(at.clone(), Fault::OrphanResult { segment, call, sent });
        }
    }
}

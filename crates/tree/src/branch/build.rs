use indexmap::IndexMap;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::{FxHashMap, FxHashSet};

use super::check;
use super::piece::Pieces;
use super::tree::{BranchTree, Context, Event};
use crate::{
    CacheSemantics, ContextId, Fault, Fidelity, Generation, GenerationId, Header, Location,
    Outcome, PieceId, Record, Report, Segment, SegmentId, Severity, TreeError,
};

/// Builds a [`BranchTree`] from records in file order, checking each against those above it.
#[derive(Debug)]
pub struct TreeBuilder {
    pub(super) lenient: bool,
    pub(super) header: Option<Header>,
    pub(super) headless: bool,
    pub(super) records: Vec<Record>,
    pub(super) locations: Vec<Location>,
    pub(super) segments: FxHashMap<SegmentId, usize>,
    pub(super) contexts: FxHashMap<ContextId, NodeIndex>,
    pub(super) graph: DiGraph<Context, usize>,
    pub(super) origin: NodeIndex,
    pub(super) pieces: Pieces,
    pub(super) generations: IndexMap<GenerationId, usize>,
    pub(super) outcomes: IndexMap<String, usize>,
    pub(super) owners: FxHashMap<SegmentId, GenerationId>,
    pub(super) events: Vec<Event>,
    pub(super) state: State,
}

/// What the checks need to remember.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The context whose segments `present` holds.
    pub(super) current: Option<ContextId>,
    pub(super) present: FxHashSet<SegmentId>,
    /// Evicted segments, and whether a replacement of kind `index` offers them.
    pub(super) evicted: FxHashMap<SegmentId, bool>,
    /// The segment that makes a tool call.
    pub(super) calls: FxHashMap<String, SegmentId>,
    pub(super) orphans: FxHashSet<SegmentId>,
    pub(super) roots: FxHashMap<(String, String), ContextId>,
    /// Unknown tags, each with where it stands first and how often.
    pub(super) unknown: IndexMap<String, (Location, usize)>,
    /// The newest context under each root, for `kv_evict`.
    pub(super) newest: FxHashMap<ContextId, ContextId>,
}

impl TreeBuilder {
    /// A builder that rejects faults, or repairs what can be repaired where `lenient`.
    pub fn new(lenient: bool) -> Self {
        let mut graph = DiGraph::new();
        let origin = graph.add_node(Context {
            id: None,
            root: None,
            tail: None,
            tokens: 0,
            removed: Vec::new(),
            record: None,
        });
        Self {
            lenient,
            header: None,
            headless: false,
            records: Vec::new(),
            locations: Vec::new(),
            segments: FxHashMap::default(),
            contexts: FxHashMap::default(),
            graph,
            origin,
            pieces: Pieces::default(),
            generations: IndexMap::new(),
            outcomes: IndexMap::new(),
            owners: FxHashMap::default(),
            events: Vec::new(),
            state: State::default(),
        }
    }

    /// Whether a header was read.
    pub fn has_header(&self) -> bool {
        self.header.is_some()
    }

    /// Takes the next record; faults go into `report`.
    pub fn push(&mut self, at: Location, record: Record, report: &mut Report) {
        if !matches!(record, Record::Header(_))
            && self.header.is_none()
            && !self.headless
            && !report.has_errors()
        {
            self.headless = true;
            report.fault(self.lenient, at.clone(), Fault::MissingHeader);
        }
        if self.repeats(&record) {
            return;
        }
        match record {
            Record::Header(header) => self.push_header(at, header, report),
            Record::Segment(segment) => self.push_segment(at, segment, report),
            Record::Append(record) => self.push_append(at, record, report),
            Record::Evict(record) => self.push_evict(at, record, report),
            Record::Replace(record) => self.push_replace(at, record, report),
            Record::Fork(record) => self.push_fork(at, record, report),
            Record::Generation(generation) => self.push_generation(at, generation, report),
            Record::Outcome(outcome) => self.push_outcome(at, outcome, report),
            Record::Unknown(fields) => {
                let record = Record::Unknown(fields);
                self.state.unknown.entry(record.tag().into()).or_insert((at.clone(), 0)).1 += 1;
                self.keep(at, record);
            }
        }
    }

    /// The tree, once every record is in.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] with everything that was found, where any of it is an error.
    pub fn finish(mut self, mut report: Report) -> Result<(BranchTree, Report), TreeError> {
        self.check_loss(&mut report);
        for (tag, (first, count)) in std::mem::take(&mut self.state.unknown) {
            report.warn(first, Fault::UnknownType { tag, count });
        }
        report.sort();
        if self.lenient {
            self.lower_fidelity(&report);
        }
        let Some(header) = self.header.take().filter(|_| !report.has_errors()) else {
            return Err(TreeError::Rejected(report));
        };
        let tree = BranchTree {
            header,
            records: self.records,
            locations: self.locations,
            segments: self.segments,
            contexts: self.contexts,
            graph: self.graph,
            pieces: self.pieces,
            generations: self.generations,
            outcomes: self.outcomes,
            owners: self.owners,
            events: self.events,
        };
        Ok((tree, report))
    }

    /// Whether the record makes a context that the same record has made above.
    fn repeats(&self, record: &Record) -> bool {
        let made = match record {
            Record::Append(append) => append.context,
            Record::Evict(evict) => evict.context,
            Record::Replace(replace) => replace.context,
            Record::Fork(fork) => fork.context,
            _ => return false,
        };
        let first = self.contexts.get(&made).and_then(|&node| self.graph[node].record);
        first.is_some_and(|first| self.records[first] == *record)
    }

    /// What was repaired may not be what the policy saw, and the header says so.
    fn lower_fidelity(&mut self, report: &Report) {
        let loses =
            |fault: &Fault| !matches!(fault, Fault::ByteOrderMark | Fault::GluedRecords { .. });
        if !report.of(Severity::Repaired).any(|diagnostic| loses(&diagnostic.fault)) {
            return;
        }
        let kept = self.records.iter_mut().find_map(|record| match record {
            Record::Header(header) => Some(header),
            _ => None,
        });
        for header in kept.into_iter().chain(&mut self.header) {
            header.fidelity = Fidelity::Inferred;
        }
    }

    /// Stores a record and returns its index.
    pub(super) fn keep(&mut self, at: Location, record: Record) -> usize {
        self.records.push(record);
        self.locations.push(at);
        self.records.len() - 1
    }

    pub(super) fn segment(&self, id: SegmentId) -> Option<&Segment> {
        match &self.records[*self.segments.get(&id)?] {
            Record::Segment(segment) => Some(segment),
            _ => None,
        }
    }

    pub(super) fn extent(&self, id: SegmentId) -> u32 {
        self.segment(id).map_or(0, |segment| u32::try_from(segment.extent()).unwrap_or(u32::MAX))
    }

    pub(super) fn kv_evict(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.cache == CacheSemantics::KvEvict)
    }

    pub(super) fn tail(&self, context: ContextId) -> Option<PieceId> {
        self.contexts.get(&context).and_then(|&node| self.graph[node].tail)
    }

    fn push_header(&mut self, at: Location, header: Header, report: &mut Report) {
        if self.header.is_some() {
            report.fault(self.lenient, at, Fault::SecondHeader);
            return;
        }
        if header.version != 1 {
            report.fault(
                self.lenient,
                at.key("version"),
                Fault::UnsupportedVersion { version: header.version },
            );
        }
        self.header = Some(header.clone());
        self.keep(at, Record::Header(header));
    }

    fn push_segment(&mut self, at: Location, mut segment: Segment, report: &mut Report) {
        if let Some(first) = self.segment(segment.id) {
            if *first != segment {
                let fault = Fault::DuplicateId { what: "segment", id: segment.id.0 };
                report.fault(self.lenient, at.key("id"), fault);
            }
            return;
        }
        let vocab = self.header.as_ref().and_then(|header| header.tokenizer.as_ref()?.vocab_size);
        check::segment(self.lenient, vocab, &mut segment, &at, report);
        let id = segment.id;
        for call in &segment.calls {
            self.state.calls.insert(call.clone(), id);
        }
        let index = self.keep(at, Record::Segment(segment));
        self.segments.insert(id, index);
    }

    fn push_outcome(&mut self, at: Location, outcome: Outcome, report: &mut Report) {
        if let Some(&first) = self.outcomes.get(&outcome.rollout) {
            if self.records[first] != Record::Outcome(outcome.clone()) {
                report.fault(
                    self.lenient,
                    at.key("rollout"),
                    Fault::SecondOutcome { rollout: outcome.rollout },
                );
            }
            return;
        }
        let rollout = outcome.rollout.clone();
        let index = self.keep(at, Record::Outcome(outcome));
        self.outcomes.insert(rollout, index);
    }

    fn push_generation(&mut self, at: Location, mut generation: Generation, report: &mut Report) {
        if let Some(&first) = self.generations.get(&generation.id) {
            if self.records[first] != Record::Generation(generation.clone()) {
                let fault = Fault::DuplicateId { what: "generation", id: generation.id.0 };
                report.fault(self.lenient, at.key("id"), fault);
            }
            return;
        }
        if !self.contexts.contains_key(&generation.context) {
            report.fault(
                self.lenient,
                at.key("context"),
                Fault::MissingContext { context: generation.context },
            );
            return;
        }
        self.check_generation(&at, &mut generation, report);
        let id = generation.id;
        for &segment in &generation.output {
            self.owners.entry(segment).or_insert(id);
        }
        let index = self.keep(at, Record::Generation(generation));
        self.generations.insert(id, index);
        self.events.push(Event::Generation(id));
    }
}

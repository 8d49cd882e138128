use indexmap::IndexMap;
use petgraph::graph::NodeIndex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::check;
use super::tree::{BranchTree, Context, Event};
use crate::record::keys;
use crate::{
    CacheSemantics, ContextId, Fault, Fidelity, Generation, Header, Location, Outcome, PieceId,
    Record, Report, Segment, SegmentId, Severity, TreeError,
};

/// Builds a [`BranchTree`] from records in file order, checking each against those above it.
#[derive(Debug)]
pub struct TreeBuilder {
    pub(super) tree: BranchTree,
    pub(super) origin: NodeIndex,
    /// Whether a record stood before the header.
    headless: bool,
    /// Whether a record at fault is left out whole, and not only what of it is at fault.
    pub(super) refuses: bool,
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
    /// Unknown keys by type of record, each with where it stands first and how often.
    pub(super) unknown_keys: IndexMap<(String, String), (Location, usize)>,
    /// The newest context under each root, for `kv_evict`.
    pub(super) newest: FxHashMap<ContextId, ContextId>,
}

impl Default for TreeBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl TreeBuilder {
    /// A builder of an empty tree.
    pub fn new() -> Self {
        let mut tree = BranchTree::default();
        let origin = tree.graph.add_node(Context { id: None, root: None, tail: None, tokens: 0 });
        Self { tree, origin, headless: false, refuses: false, state: State::default() }
    }

    /// A builder that leaves out a record at fault whole, so that the next one is checked against
    /// what was sound.
    pub(crate) fn refusing() -> Self {
        Self { refuses: true, ..Self::new() }
    }

    /// The tree so far.
    pub(crate) fn tree(&self) -> &BranchTree {
        &self.tree
    }

    /// The records so far.
    pub(crate) fn into_records(self) -> Vec<Record> {
        self.tree.records
    }

    /// Whether a header was read.
    pub fn has_header(&self) -> bool {
        self.tree.header.is_some()
    }

    /// Takes the next record; faults go into `report`, which says whether they are repaired.
    pub fn push(&mut self, at: Location, record: Record, report: &mut Report) {
        if !matches!(record, Record::Header(_))
            && self.tree.header.is_none()
            && !self.headless
            && !report.has_errors()
        {
            self.headless = true;
            report.fault(at.clone(), Fault::MissingHeader);
        }
        if self.repeats(&record) {
            return;
        }
        let Some(record) = self.check_keys(&at, record, report) else { return };
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
        for ((_, key), (first, count)) in std::mem::take(&mut self.state.unknown_keys) {
            report.warn(first, Fault::UnknownKey { key, count });
        }
        report.sort();
        if report.is_lenient() {
            self.lower_fidelity(&report);
        }
        if self.tree.header.is_none() || report.has_errors() {
            return Err(TreeError::Rejected(report));
        }
        Ok((self.tree, report))
    }

    /// Notes keys that are not known; the record with misspelt ones read right where that is
    /// repaired, `None` where its value does not fit and the record is left out.
    fn check_keys(
        &mut self,
        at: &Location,
        mut record: Record,
        report: &mut Report,
    ) -> Option<Record> {
        let mut found = keys::unknown(&record).into_iter();
        while let Some(key) = found.next() {
            let place = at.key(key.location());
            let Some(known) = key.nearly else { continue };
            match key.respelt(&record) {
                Ok(respelt) => {
                    let fault = Fault::MisspeltKey { key: key.key, known };
                    if !report.fault(place, fault) {
                        // A key that is there now is no other one's right spelling any more.
                        record = respelt;
                        found = keys::unknown(&record).into_iter();
                    }
                }
                Err(error) => {
                    let fault = Fault::Field { message: error.to_string() };
                    if !report.fault(place, fault) {
                        return None;
                    }
                }
            }
        }
        for key in keys::unknown(&record).into_iter().filter(|key| key.nearly.is_none()) {
            let place = at.key(key.location());
            let of = (record.tag().to_owned(), key.key);
            self.state.unknown_keys.entry(of).or_insert((place, 0)).1 += 1;
        }
        Some(record)
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
        let first = self.tree.made(made).map(|(_, change)| change.record);
        first.is_some_and(|first| self.tree.records[first] == *record)
    }

    /// What was repaired may not be what the policy saw, and the header says so.
    fn lower_fidelity(&mut self, report: &Report) {
        let loses =
            |fault: &Fault| !matches!(fault, Fault::ByteOrderMark | Fault::GluedRecords { .. });
        if !report.of(Severity::Repaired).any(|diagnostic| loses(&diagnostic.fault)) {
            return;
        }
        if let Some(Record::Header(header)) =
            self.tree.header.map(|header| &mut self.tree.records[header])
        {
            header.fidelity = Fidelity::Inferred;
        }
    }

    /// Whether the record at hand is at fault and to be left out whole.
    pub(super) fn refused(&mut self, report: &Report) -> bool {
        let refused = self.refuses && report.has_errors();
        if refused {
            self.state.current = None;
            self.state.present.clear();
        }
        refused
    }

    /// Stores a record and returns its index.
    pub(super) fn keep(&mut self, at: Location, record: Record) -> usize {
        self.tree.records.push(record);
        self.tree.locations.push(at);
        self.tree.records.len() - 1
    }

    pub(super) fn extent(&self, id: SegmentId) -> u32 {
        self.tree
            .segment(id)
            .map_or(0, |segment| u32::try_from(segment.extent()).unwrap_or(u32::MAX))
    }

    pub(super) fn kv_evict(&self) -> bool {
        self.tree.written_header().is_some_and(|header| header.cache == CacheSemantics::KvEvict)
    }

    pub(super) fn tail(&self, context: ContextId) -> Option<PieceId> {
        self.tree.contexts.get(&context).and_then(|&node| self.tree.graph[node].tail)
    }

    fn push_header(&mut self, at: Location, header: Header, report: &mut Report) {
        if self.has_header() {
            report.fault(at, Fault::SecondHeader);
            return;
        }
        if header.version != 1 {
            report.fault(at.key("version"), Fault::UnsupportedVersion { version: header.version });
        }
        if !self.refused(report) {
            self.tree.header = Some(self.keep(at, Record::Header(header)));
        }
    }

    fn push_segment(&mut self, at: Location, mut segment: Segment, report: &mut Report) {
        if let Some(first) = self.tree.segment(segment.id) {
            if *first != segment {
                let fault = Fault::DuplicateId { what: "segment", id: segment.id.0 };
                report.fault(at.key("id"), fault);
            }
            return;
        }
        let vocab =
            self.tree.written_header().and_then(|header| header.tokenizer.as_ref()?.vocab_size);
        check::segment(vocab, &mut segment, &at, report);
        if self.refused(report) {
            return;
        }
        let id = segment.id;
        for call in &segment.calls {
            self.state.calls.insert(call.clone(), id);
        }
        let index = self.keep(at, Record::Segment(segment));
        self.tree.segments.insert(id, index);
    }

    fn push_outcome(&mut self, at: Location, outcome: Outcome, report: &mut Report) {
        if let Some(&first) = self.tree.outcomes.get(&outcome.rollout) {
            if self.tree.records[first] != Record::Outcome(outcome.clone()) {
                report.fault(at.key("rollout"), Fault::SecondOutcome { rollout: outcome.rollout });
            }
            return;
        }
        let rollout = outcome.rollout.clone();
        let index = self.keep(at, Record::Outcome(outcome));
        self.tree.outcomes.insert(rollout, index);
    }

    fn push_generation(&mut self, at: Location, mut generation: Generation, report: &mut Report) {
        if let Some(&first) = self.tree.generations.get(&generation.id) {
            if self.tree.records[first] != Record::Generation(generation.clone()) {
                let fault = Fault::DuplicateId { what: "generation", id: generation.id.0 };
                report.fault(at.key("id"), fault);
            }
            return;
        }
        if !self.tree.contexts.contains_key(&generation.context) {
            report.fault(at.key("context"), Fault::MissingContext { context: generation.context });
            return;
        }
        self.check_generation(&at, &mut generation, report);
        if self.refused(report) {
            return;
        }
        if let Some(root) = self.tree.graph[self.tree.contexts[&generation.context]].root {
            let thread = (generation.rollout.clone(), generation.thread.clone());
            self.state.roots.entry(thread).or_insert(root);
        }
        let id = generation.id;
        for &segment in &generation.output {
            self.tree.owners.entry(segment).or_insert(id);
        }
        let index = self.keep(at, Record::Generation(generation));
        self.tree.generations.insert(id, index);
        self.tree.events.push(Event::Generation(id));
    }
}

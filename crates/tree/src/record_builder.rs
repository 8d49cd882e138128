use std::io::Write;
use std::sync::Arc;

use crate::branch::TreeBuilder;
use crate::{
    Append, BranchTree, ContextId, Evict, Fork, ForkReason, Generation, GenerationId, Header,
    Location, Origin, Outcome, ReadOptions, Record, Replace, Report, Role, Segment, SegmentId,
    TreeError, write_records,
};

/// Eviction records that are written while a harness runs.
///
/// It gives out the ids, and checks each record as it is made, by the rules of strict reading. A
/// record at fault is refused whole: the error says what is wrong with it and what to do, and the
/// records stay as they were. So what is written can be read, up to what is only known at the end
/// ([`RecordBuilder::finish`]).
///
/// ```
/// use pleach_tree::{
///     By, Evict, Evicted, Fidelity, Header, Origin, Place, RecordBuilder, Replacement,
///     ReplacementKind, Role, Trigger,
/// };
/// let mut log = RecordBuilder::new(Header::new("my-harness", Fidelity::Token))?;
/// let task = log.tokens(Role::User, Origin::Human, [5, 6, 7])?;
/// let prompt = log.append(None, [task])?;
/// let call = log.tokens(Role::Assistant, Origin::Policy, [8, 9])?;
/// log.sample(prompt, [call])?;
/// let result = log.tokens(Role::Tool, Origin::Environment, [10, 11, 12, 13])?;
/// let context = log.append(prompt, [call, result])?;
///
/// // The harness clears the result before the next call.
/// let cleared = log.tokens(Role::Tool, Origin::Harness, [1])?;
/// let placeholder = Replacement::new(ReplacementKind::Placeholder, vec![cleared], Place::InPlace);
/// let context = log.evict(
///     Evict::new(context, [Evicted::whole(result)])
///         .with_replacement(placeholder)
///         .with_author(By::rule("clear-tool-results"))
///         .with_trigger(Trigger::Auto),
/// )?;
/// let answer = log.tokens(Role::Assistant, Origin::Policy, [14])?;
/// log.sample(context, [answer])?;
///
/// // What is no part of a context cannot leave it.
/// let error = log.evict(Evict::new(context, [Evicted::whole(result)])).unwrap_err();
/// assert!(error.to_string().contains("evicted-not-in-context"), "{error}");
///
/// let mut file = Vec::new();
/// log.write_new(&mut file)?;
/// let (tree, _) = log.finish()?;
/// assert_eq!(tree.views().last().map(|view| view.tokens()), Some(vec![5, 6, 7, 8, 9, 1, 14]));
/// # Ok::<(), pleach_tree::TreeError>(())
/// ```
#[derive(Debug)]
pub struct RecordBuilder {
    builder: TreeBuilder,
    /// Warnings so far.
    report: Report,
    /// What errors call the records.
    name: Arc<str>,
    segments: u64,
    contexts: u64,
    generations: u64,
    written: usize,
}

impl RecordBuilder {
    /// Records that begin with a header.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] for a version that this crate does not write.
    pub fn new(header: Header) -> Result<Self, TreeError> {
        let mut new = Self::empty(&header.harness);
        new.push(Record::Header(header))?;
        Ok(new)
    }

    /// Goes on from records that exist, under ids behind all of theirs; they count as written.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] with the faults of the first record that has any.
    pub fn resume(records: impl IntoIterator<Item = Record>) -> Result<Self, TreeError> {
        let mut new = Self::empty("records");
        for record in records {
            match &record {
                Record::Segment(segment) => {
                    new.segments = new.segments.max(u64::from(segment.id.0) + 1);
                }
                Record::Generation(generation) => {
                    new.generations = new.generations.max(u64::from(generation.id.0) + 1);
                }
                _ => {}
            }
            new.push(record)?;
        }
        let contexts = new.tree().contexts().filter_map(crate::Context::id);
        new.contexts = contexts.map(|id| u64::from(id.0) + 1).max().unwrap_or(0);
        new.written = new.records().len();
        Ok(new)
    }

    /// No records yet, which errors call `name`.
    fn empty(name: &str) -> Self {
        Self {
            builder: TreeBuilder::refusing(),
            report: Report::new(ReadOptions::STRICT),
            name: name.into(),
            segments: 0,
            contexts: 0,
            generations: 0,
            written: 0,
        }
    }

    /// A segment; its id is given here, whatever it was.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] where it has neither tokens nor text, or lists that do not fit its
    /// tokens.
    pub fn segment(&mut self, segment: Segment) -> Result<SegmentId, TreeError> {
        let id = SegmentId(id(self.segments, "segments")?);
        self.push(Record::Segment(Segment { id, ..segment }))?;
        self.segments += 1;
        Ok(id)
    }

    /// A segment of token ids.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] for an id outside the header's vocabulary.
    pub fn tokens(
        &mut self,
        role: Role,
        origin: Origin,
        tokens: impl Into<Vec<u32>>,
    ) -> Result<SegmentId, TreeError> {
        self.segment(Segment::new(SegmentId(0), role, origin).with_tokens(tokens.into()))
    }

    /// A segment of text, which is tokenised later.
    ///
    /// # Errors
    /// As [`RecordBuilder::segment`].
    pub fn text(
        &mut self,
        role: Role,
        origin: Origin,
        text: impl Into<String>,
    ) -> Result<SegmentId, TreeError> {
        self.segment(Segment::new(SegmentId(0), role, origin).with_text(text))
    }

    /// A context that is another one with segments behind it; `None` starts a root.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] for a context or segment that does not exist, or a segment that
    /// stands in the context already.
    pub fn append(
        &mut self,
        from: impl Into<Option<ContextId>>,
        segments: impl Into<Vec<SegmentId>>,
    ) -> Result<ContextId, TreeError> {
        self.context(|context| Record::Append(Append { context, ..Append::new(from, segments) }))
    }

    /// A context that is another one with ranges taken out; its id is given here.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] for ranges that are not in the context, a replacement that does not
    /// exist or stands there already, or an author that is no generation.
    pub fn evict(&mut self, evict: Evict) -> Result<ContextId, TreeError> {
        self.context(|context| Record::Evict(Box::new(Evict { context, ..evict })))
    }

    /// A context whose whole list is given; its id is given here.
    ///
    /// # Errors
    /// As [`RecordBuilder::append`].
    pub fn replace(&mut self, replace: Replace) -> Result<ContextId, TreeError> {
        self.context(|context| Record::Replace(Replace { context, ..replace }))
    }

    /// A copy of a context for another thread.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] for a context that does not exist, or under cache `kv_evict`.
    pub fn fork(&mut self, from: ContextId, reason: ForkReason) -> Result<ContextId, TreeError> {
        self.context(|context| Record::Fork(Fork { context, ..Fork::new(from, reason) }))
    }

    /// A call of the policy in the main thread of rollout `r0`.
    ///
    /// # Errors
    /// As [`RecordBuilder::generation`].
    pub fn sample(
        &mut self,
        context: ContextId,
        output: impl Into<Vec<SegmentId>>,
    ) -> Result<GenerationId, TreeError> {
        self.generation(Generation::new(GenerationId(0), context, output.into()))
    }

    /// A call of the policy; its id is given here.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] for a context or segment that does not exist, an output that stands
    /// in the context or was sampled by another call, a thread with a second root, or recorded
    /// prompt ids that are not those of the context.
    pub fn generation(&mut self, generation: Generation) -> Result<GenerationId, TreeError> {
        let id = GenerationId(id(self.generations, "generations")?);
        self.push(Record::Generation(Generation { id, ..generation }))?;
        self.generations += 1;
        Ok(id)
    }

    /// How a rollout ended.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] where the rollout has another outcome already.
    pub fn outcome(&mut self, outcome: Outcome) -> Result<(), TreeError> {
        self.push(Record::Outcome(outcome))
    }

    /// The records so far, the header first.
    pub fn records(&self) -> &[Record] {
        self.builder.tree().records()
    }

    /// What the records say so far: contexts, views and the rest.
    pub fn tree(&self) -> &BranchTree {
        self.builder.tree()
    }

    /// Writes the records that were made since the last call, one JSON object a line.
    ///
    /// # Errors
    /// Those of `writer`; the records then count as not written.
    pub fn write_new(&mut self, writer: impl Write) -> Result<(), TreeError> {
        write_records(writer, &self.records()[self.written..])?;
        self.written = self.records().len();
        Ok(())
    }

    /// The tree of all records, and the warnings that came up.
    ///
    /// # Errors
    /// [`TreeError::Rejected`] with what is only known at the end: a segment that declares loss and
    /// was sampled by no generation.
    pub fn finish(self) -> Result<(BranchTree, Report), TreeError> {
        self.builder.finish(self.report)
    }

    /// The records, where no tree is wanted.
    pub fn into_records(self) -> Vec<Record> {
        self.builder.into_records()
    }

    fn context(
        &mut self,
        record: impl FnOnce(ContextId) -> Record,
    ) -> Result<ContextId, TreeError> {
        let id = ContextId(id(self.contexts, "contexts")?);
        self.push(record(id))?;
        self.contexts += 1;
        Ok(id)
    }

    fn push(&mut self, record: Record) -> Result<(), TreeError> {
        let line = self.records().len() as u64 + 1;
        let mut report = Report::new(ReadOptions::STRICT);
        self.builder.push(Location::line(&self.name, line), record, &mut report);
        if report.has_errors() {
            return Err(TreeError::Rejected(report));
        }
        self.report.diagnostics.extend(report.diagnostics);
        Ok(())
    }
}

fn id(count: u64, what: &'static str) -> Result<u32, TreeError> {
    u32::try_from(count).map_err(|_| TreeError::TooMany { what })
}

use indexmap::IndexMap;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use rustc_hash::FxHashMap;

use super::piece::Pieces;
use crate::{
    Append, ContextId, Evict, Fork, Generation, GenerationId, Header, Location, Outcome, Piece,
    PieceId, Record, Replace, Segment, SegmentId, Span, View,
};

/// An immutable list of segment ranges: what stands in front of a policy at one moment.
#[derive(Debug, Clone)]
pub struct Context {
    pub(crate) id: Option<ContextId>,
    pub(crate) root: Option<ContextId>,
    pub(crate) tail: Option<PieceId>,
    pub(crate) tokens: usize,
}

impl Context {
    /// Its id; `None` for the empty context that roots are appended to.
    pub fn id(&self) -> Option<ContextId> {
        self.id
    }

    /// The root it descends from.
    pub fn root(&self) -> Option<ContextId> {
        self.root
    }

    /// Its last piece, `None` where it holds none.
    pub fn tail(&self) -> Option<PieceId> {
        self.tail
    }

    /// Number of tokens (bytes of text where segments are not tokenised yet).
    pub fn tokens(&self) -> usize {
        self.tokens
    }
}

/// An edge of the graph: which record made one context from another, and what it took out.
///
/// The record itself stands in the list of records; [`BranchTree::operation`] gives it.
#[derive(Debug, Clone)]
pub struct Change {
    pub(crate) record: usize,
    pub(crate) removed: Vec<Span>,
}

impl Change {
    /// Index of its record among [`BranchTree::records`].
    pub fn record(&self) -> usize {
        self.record
    }

    /// What left the context before, in that context's order.
    pub fn removed(&self) -> &[Span] {
        &self.removed
    }
}

/// The operation that made a context.
#[derive(Debug, Clone, Copy)]
pub enum Operation<'t> {
    /// Segments were put behind a context, or behind nothing.
    Append(&'t Append),
    /// Ranges were taken out.
    Evict(&'t Evict),
    /// The whole list was given anew.
    Replace(&'t Replace),
    /// The context was copied.
    Fork(&'t Fork),
}

/// Contexts and generations in the order in which the file makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A context was made.
    Context(ContextId),
    /// The policy was called.
    Generation(GenerationId),
}

/// What one file of eviction records says: segments, contexts, generations and outcomes.
///
/// Contexts are the nodes and operations the edges of a petgraph graph, [`BranchTree::graph`].
/// Built by [`BranchTree::read`] or a [`TreeBuilder`](crate::TreeBuilder), validated as it is
/// built, and never changed after.
#[derive(Debug, Clone, Default)]
pub struct BranchTree {
    pub(crate) records: Vec<Record>,
    pub(crate) locations: Vec<Location>,
    /// Index of the header's record, which every finished tree has.
    pub(crate) header: Option<usize>,
    pub(crate) segments: FxHashMap<SegmentId, usize>,
    pub(crate) contexts: FxHashMap<ContextId, NodeIndex>,
    pub(crate) graph: DiGraph<Context, Change>,
    pub(crate) pieces: Pieces,
    pub(crate) generations: IndexMap<GenerationId, usize>,
    pub(crate) outcomes: IndexMap<String, usize>,
    pub(crate) owners: FxHashMap<SegmentId, GenerationId>,
    pub(crate) events: Vec<Event>,
}

impl BranchTree {
    /// The file's header.
    pub fn header(&self) -> &Header {
        match self.written_header() {
            Some(header) => header,
            None => unreachable!("a tree is finished with a header or not at all"),
        }
    }

    /// The header as far as the file has been read.
    pub(crate) fn written_header(&self) -> Option<&Header> {
        match &self.records[self.header?] {
            Record::Header(header) => Some(header),
            _ => None,
        }
    }

    /// All records, repaired ones as they were repaired, in file order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// A segment by its id.
    pub fn segment(&self, id: SegmentId) -> Option<&Segment> {
        match &self.records[*self.segments.get(&id)?] {
            Record::Segment(segment) => Some(segment),
            _ => None,
        }
    }

    /// A context by its id.
    pub fn context(&self, id: ContextId) -> Option<&Context> {
        Some(&self.graph[*self.contexts.get(&id)?])
    }

    /// All contexts in the order in which they were made.
    pub fn contexts(&self) -> impl Iterator<Item = &Context> {
        self.graph.node_weights().filter(|context| context.id.is_some())
    }

    /// The branch tree as a petgraph graph, for petgraph's algorithms.
    ///
    /// Its first node is the empty context that roots are appended to. [`BranchTree::node`] and
    /// [`Context::id`] lead from an id to its node and back.
    ///
    /// ```
    /// use petgraph::algo::dominators;
    /// use petgraph::graph::NodeIndex;
    /// use pleach_tree::{BranchTree, ContextId, ReadOptions};
    /// let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
    /// {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
    /// {"t":"append","context":0,"from":null,"segments":[0]}
    /// {"t":"fork","context":1,"from":0,"reason":"retry"}
    /// {"t":"fork","context":2,"from":0,"reason":"subagent"}
    /// "#;
    /// let (tree, _) = BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT)?;
    /// let (graph, empty) = (tree.graph(), NodeIndex::new(0));
    /// let above = dominators::simple_fast(graph, empty);
    /// let fork = tree.node(ContextId(2)).ok_or("no such context")?;
    /// let from = above.immediate_dominator(fork).ok_or("a root")?;
    /// assert_eq!(graph[from].id(), Some(ContextId(0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn graph(&self) -> &DiGraph<Context, Change> {
        &self.graph
    }

    /// The node of a context in [`BranchTree::graph`].
    pub fn node(&self, id: ContextId) -> Option<NodeIndex> {
        self.contexts.get(&id).copied()
    }

    /// The edge that leads to a context, and the node that it comes from.
    pub(super) fn made(&self, id: ContextId) -> Option<(NodeIndex, &Change)> {
        let edge = self.graph.edges_directed(self.node(id)?, Direction::Incoming).next()?;
        Some((edge.source(), edge.weight()))
    }

    /// The operation that made a context.
    pub fn operation(&self, id: ContextId) -> Option<Operation<'_>> {
        self.operation_of(self.made(id)?.1)
    }

    /// The operation of an edge of [`BranchTree::graph`].
    pub fn operation_of(&self, change: &Change) -> Option<Operation<'_>> {
        match self.records.get(change.record)? {
            Record::Append(record) => Some(Operation::Append(record)),
            Record::Evict(record) => Some(Operation::Evict(record)),
            Record::Replace(record) => Some(Operation::Replace(record)),
            Record::Fork(record) => Some(Operation::Fork(record)),
            _ => None,
        }
    }

    /// What the operation that made a context took out of the one before, in that one's order.
    pub fn removed(&self, id: ContextId) -> &[Span] {
        self.made(id).map_or(&[], |(_, change)| change.removed())
    }

    /// The context that a context was made from, `None` for a root.
    pub fn parent(&self, id: ContextId) -> Option<ContextId> {
        self.graph[self.made(id)?.0].id
    }

    /// A context and those that it descends from, the root last.
    pub fn ancestors(&self, id: ContextId) -> impl Iterator<Item = ContextId> {
        let start = self.contexts.contains_key(&id).then_some(id);
        std::iter::successors(start, |&id| self.parent(id))
    }

    /// The contexts that were made from a context, in file order.
    pub fn children(&self, id: ContextId) -> Vec<ContextId> {
        let Some(node) = self.node(id) else { return Vec::new() };
        let mut children: Vec<NodeIndex> =
            self.graph.neighbors_directed(node, Direction::Outgoing).collect();
        children.sort_unstable();
        children.into_iter().filter_map(|child| self.graph[child].id).collect()
    }

    /// All pieces; a parent stands before its children.
    pub fn pieces(&self) -> &[Piece] {
        self.pieces.as_slice()
    }

    /// The pieces from the first to `tail`, which is what a context holds.
    pub fn path(&self, tail: Option<PieceId>) -> Vec<PieceId> {
        self.pieces.path(tail)
    }

    /// The segment ranges of a context, in order.
    pub fn spans(&self, id: ContextId) -> Option<Vec<Span>> {
        let context = self.context(id)?;
        Some(self.path(context.tail).into_iter().map(|piece| self.pieces.span(piece)).collect())
    }

    /// Contexts and generations in the order in which the file makes them.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Number of generations.
    pub fn generation_count(&self) -> usize {
        self.generations.len()
    }

    /// All generations in file order.
    pub fn generations(&self) -> impl ExactSizeIterator<Item = &Generation> {
        self.generations.values().map(|&at| self.generation_at(at))
    }

    /// A generation by its id.
    pub fn generation(&self, id: GenerationId) -> Option<&Generation> {
        self.generations.get(&id).map(|&at| self.generation_at(at))
    }

    /// What a generation saw and said.
    pub fn view(&self, id: GenerationId) -> Option<View<'_>> {
        let generation = self.generation(id)?;
        Some(View::new(self, generation, self.context(generation.context)?))
    }

    /// The views of all generations in file order.
    pub fn views(&self) -> impl Iterator<Item = View<'_>> {
        self.generations.keys().filter_map(|&id| self.view(id))
    }

    /// The outcomes of rollouts, in file order.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.values().filter_map(|&at| match &self.records[at] {
            Record::Outcome(outcome) => Some(outcome),
            _ => None,
        })
    }

    /// The generation whose output a segment is, where loss on it counts.
    pub fn owner(&self, segment: SegmentId) -> Option<GenerationId> {
        self.owners.get(&segment).copied()
    }

    /// Where a context was defined.
    pub fn context_location(&self, id: ContextId) -> Option<&Location> {
        Some(&self.locations[self.made(id)?.1.record])
    }

    /// Where a segment was defined.
    pub fn segment_location(&self, id: SegmentId) -> Option<&Location> {
        Some(&self.locations[*self.segments.get(&id)?])
    }

    /// Where a generation was defined.
    pub fn generation_location(&self, id: GenerationId) -> Option<&Location> {
        Some(&self.locations[*self.generations.get(&id)?])
    }

    /// The first segment without tokens, which no layout can take.
    pub fn first_without_tokens(&self) -> Option<SegmentId> {
        self.records.iter().find_map(|record| match record {
            Record::Segment(segment) if segment.tokens.is_none() => Some(segment.id),
            _ => None,
        })
    }

    fn generation_at(&self, at: usize) -> &Generation {
        match &self.records[at] {
            Record::Generation(generation) => generation,
            other => unreachable!("index {at} holds a {} record", other.tag()),
        }
    }
}

use indexmap::IndexMap;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
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
    pub(crate) removed: Vec<Span>,
    pub(crate) record: Option<usize>,
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

    /// What the operation that made it took out of the context before, in that context's order.
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
/// Built by [`BranchTree::read`] or a [`TreeBuilder`](crate::TreeBuilder), validated as it is
/// built, and never changed after.
#[derive(Debug, Clone)]
pub struct BranchTree {
    pub(crate) records: Vec<Record>,
    pub(crate) locations: Vec<Location>,
    pub(crate) header: Header,
    pub(crate) segments: FxHashMap<SegmentId, usize>,
    pub(crate) contexts: FxHashMap<ContextId, NodeIndex>,
    pub(crate) graph: DiGraph<Context, usize>,
    pub(crate) pieces: Pieces,
    pub(crate) generations: IndexMap<GenerationId, usize>,
    pub(crate) outcomes: IndexMap<String, usize>,
    pub(crate) owners: FxHashMap<SegmentId, GenerationId>,
    pub(crate) events: Vec<Event>,
}

impl BranchTree {
    /// The file's header.
    pub fn header(&self) -> &Header {
        &self.header
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

    /// The operation that made a context.
    pub fn operation(&self, id: ContextId) -> Option<Operation<'_>> {
        let node = *self.contexts.get(&id)?;
        let edge = self.graph.edges_directed(node, Direction::Incoming).next()?;
        match &self.records[*edge.weight()] {
            Record::Append(record) => Some(Operation::Append(record)),
            Record::Evict(record) => Some(Operation::Evict(record)),
            Record::Replace(record) => Some(Operation::Replace(record)),
            Record::Fork(record) => Some(Operation::Fork(record)),
            _ => None,
        }
    }

    /// The context that a context was made from, `None` for a root.
    pub fn parent(&self, id: ContextId) -> Option<ContextId> {
        let node = *self.contexts.get(&id)?;
        self.graph
            .neighbors_directed(node, Direction::Incoming)
            .next()
            .and_then(|parent| self.graph[parent].id)
    }

    /// The contexts that were made from a context, in file order.
    pub fn children(&self, id: ContextId) -> Vec<ContextId> {
        let Some(&node) = self.contexts.get(&id) else { return Vec::new() };
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
        Some(&self.locations[self.context(id)?.record?])
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

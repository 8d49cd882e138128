//! A script played into records.
use pleach_tree::{
    By, ByKind, Evict, Evicted, Extra, ForkReason, Generation, GenerationId, Origin, Part, Place,
    Replacement, Segment, SegmentId, Source,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::step::{Author, Call, Change, Item, Node, Step, Swap};
use super::{Script, Spot, content_number};
use crate::core::draft::Draft;
use crate::core::ledger::Held;
use crate::core::threads::{self, Branch};

/// What stands behind a node.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) held: Option<Held>,
    /// What comes behind the context in the next request.
    pending: Vec<SegmentId>,
    /// Whether anything but the output of a call is pending.
    unsent: bool,
}

/// The replay so far.
pub(super) struct Play<'s> {
    pub(super) draft: &'s mut Draft,
    /// The segments that each node brought.
    pub(super) written: Vec<Vec<SegmentId>>,
    /// The segments that stand or stood for a tool call's result.
    results: FxHashMap<String, Vec<SegmentId>>,
    /// What each result was swapped for, over time.
    pub(super) forms: FxHashMap<SegmentId, Vec<SegmentId>>,
    /// The result that each of those stands for.
    roots: FxHashMap<SegmentId, SegmentId>,
    /// A number for the content of each segment, where a list is told by content.
    pub(super) prints: Option<Vec<u64>>,
    /// The list that each rewriting node made.
    pub(super) lists: FxHashMap<usize, Vec<SegmentId>>,
    generations: Vec<Option<GenerationId>>,
}

/// How the nodes hang together.
struct Shape {
    /// Nodes of the same conversation that go on from a node.
    own: Vec<u32>,
    /// Nodes of any conversation that do.
    all: Vec<u32>,
    /// Whether an own one was played already, and whether one of those was a call.
    met: Vec<bool>,
    calls: Vec<bool>,
}

impl Shape {
    /// How nodes hang together, and each as a node of the tree of calls.
    fn of(nodes: &[Node]) -> (Self, Vec<Branch>) {
        let none = || vec![false; nodes.len()];
        let mut shape = Self {
            own: vec![0; nodes.len()],
            all: vec![0; nodes.len()],
            met: none(),
            calls: none(),
        };
        let mut branches = Vec::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            let parent =
                node.parent.filter(|&parent| nodes[parent].conversation == node.conversation);
            parent.into_iter().for_each(|parent| shape.own[parent] += 1);
            node.parent.into_iter().for_each(|parent| shape.all[parent] += 1);
            let is_call = matches!(node.step, Step::Call(_));
            branches.push(Branch {
                parent,
                conversation: node.conversation,
                place: at as u64,
                is_call,
            });
        }
        (shape, branches)
    }

    /// Why a node opens a branch: it is in another conversation than the one it goes on from, or
    /// not the first that goes on from it.
    fn opens(&mut self, nodes: &[Node], at: usize) -> Option<ForkReason> {
        let node = &nodes[at];
        let parent = node.parent?;
        if nodes[parent].conversation != node.conversation {
            return Some(node.fork.unwrap_or(ForkReason::Subagent));
        }
        let is_call = matches!(node.step, Step::Call(_));
        let first = !std::mem::replace(&mut self.met[parent], true);
        let retried = self.calls[parent] && is_call;
        self.calls[parent] |= is_call;
        let reason = if retried { ForkReason::Retry } else { ForkReason::Rewind };
        (!first).then(|| node.fork.unwrap_or(reason))
    }
}

/// Plays every node, each behind the one it goes on from.
pub(super) fn play(script: &mut Script) {
    let mut nodes = std::mem::take(&mut script.nodes);
    let (mut shape, branches) = Shape::of(&nodes);
    let order: Vec<usize> = (0..nodes.len()).collect();
    let conversations: Vec<&str> =
        script.conversations.iter().map(|conversation| conversation.name.as_str()).collect();
    let threads = threads::names(&branches, &order, &conversations);
    let told = |node: &Node| match &node.step {
        Step::List(list) => list.items.iter().any(|item| matches!(item, Item::Told(_))),
        _ => false,
    };
    let prints = nodes.iter().any(told).then(Vec::new);
    let mut play = Play {
        draft: &mut script.draft,
        written: vec![Vec::new(); nodes.len()],
        results: FxHashMap::default(),
        forms: FxHashMap::default(),
        roots: FxHashMap::default(),
        lists: FxHashMap::default(),
        prints,
        generations: vec![None; nodes.len()],
    };
    let mut states: Vec<Option<State>> = vec![None; nodes.len()];
    let mut left = shape.all.clone();
    for at in 0..nodes.len() {
        let parent = nodes[at].parent;
        let mut state = match parent {
            None => State::default(),
            Some(parent) => {
                left[parent] -= 1;
                if left[parent] == 0 { states[parent].take() } else { states[parent].clone() }
                    .unwrap_or_default()
            }
        };
        if let (Some(parent), Some(reason)) = (parent, shape.opens(&nodes, at))
            && let Some(held) = state.held.filter(|_| parent < at)
        {
            state.held = Some(play.draft.ledger.fork(held, reason));
        }
        let node = &mut nodes[at];
        let step = std::mem::replace(&mut node.step, Step::Put(Vec::new()));
        let spot = node.spot.clone();
        let rollout = script.conversations[node.conversation].rollout.as_deref();
        play.step(at, step, &spot, &mut state, (&threads[at], rollout));
        let ends = shape.all[at] == 0;
        if ends && state.unsent || shape.own[at] > 1 || shape.all[at] > shape.own[at] {
            play.settle(&mut state);
        }
        if !ends {
            states[at] = Some(state);
        }
    }
}

impl Play<'_> {
    fn step(
        &mut self,
        at: usize,
        step: Step,
        spot: &Spot,
        state: &mut State,
        thread: (&str, Option<&str>),
    ) {
        match step {
            Step::Put(segments) => {
                let written = self.write(segments, spot);
                state.unsent |= !written.is_empty();
                state.pending.extend_from_slice(&written);
                self.written[at] = written;
            }
            Step::Call(call) => self.call(at, call, spot, state, thread),
            Step::List(list) => {
                self.settle(state);
                self.list(at, *list, spot, state);
            }
            Step::Swap(swap) => {
                self.settle(state);
                self.swap(*swap, spot, state);
            }
        }
    }

    /// Writes segments that a node brings.
    pub(super) fn write(&mut self, segments: Vec<Segment>, spot: &Spot) -> Vec<SegmentId> {
        segments.into_iter().map(|segment| self.write_one(segment, spot)).collect()
    }

    fn write_one(&mut self, mut segment: Segment, spot: &Spot) -> SegmentId {
        let here = || Source { file: spot.file, line: spot.at.line, key: String::new() };
        let source = segment.source.take().unwrap_or_else(here);
        let call = segment.result_of.clone();
        if let Some(prints) = &mut self.prints {
            prints.push(content_number(std::slice::from_ref(&segment)));
        }
        let id = self.draft.ledger.segment(source, segment);
        if let Some(call) = call {
            self.results.entry(call).or_default().push(id);
        }
        id
    }

    /// Puts what is pending into the context.
    fn settle(&mut self, state: &mut State) {
        state.unsent = false;
        let pending = std::mem::take(&mut state.pending);
        if !pending.is_empty() {
            state.held = Some(self.draft.ledger.append(state.held, pending));
        }
    }

    fn call(
        &mut self,
        at: usize,
        call: Call,
        spot: &Spot,
        state: &mut State,
        thread: (&str, Option<&str>),
    ) {
        self.settle(state);
        let held = match state.held {
            Some(held) => held,
            None => self.draft.ledger.append(None, Vec::new()),
        };
        let mut output = call.output;
        if self.draft.ledger.extent(held).0 == 0 {
            let message = "nothing stands before the call; its text carries no loss";
            self.draft.fault(&spot.at, "", "empty-context", message);
            output
                .iter_mut()
                .filter(|said| said.origin == Origin::Policy)
                .for_each(|said| said.origin = Origin::ExternalModel);
        }
        let mut unrecorded = call.unrecorded;
        if output
            .iter()
            .any(|said| said.part == Some(Part::Reasoning) && said.origin != Origin::Policy)
        {
            unrecorded.push("reasoning".into());
        }
        let written = self.write(output, spot);
        let mut generation = Generation::new(GenerationId(0), held.id, written.clone());
        thread.0.clone_into(&mut generation.thread);
        if let Some(rollout) = thread.1 {
            rollout.clone_into(&mut generation.rollout);
        }
        generation.policy = call.model.as_deref().map(str::to_owned);
        generation.unrecorded = unrecorded;
        self.generations[at] = Some(self.draft.ledger.generation(generation));
        state.held = Some(held);
        if !call.dropped {
            state.pending.extend_from_slice(&written);
        }
        self.written[at] = written;
    }

    /// Who decided a change.
    pub(super) fn by(&self, change: &Change) -> By {
        match &change.author {
            Author::Known(by) => by.clone(),
            Author::Of(node) => {
                self.generations[*node].map_or_else(|| By::new(ByKind::Unknown), By::policy)
            }
        }
    }

    fn swap(&mut self, swap: Swap, spot: &Spot, state: &mut State) {
        let list = self.draft.ledger.list(state.held);
        let there: FxHashSet<SegmentId> = list.iter().copied().collect();
        let mut holes: FxHashMap<SegmentId, SegmentId> = FxHashMap::default();
        let mut evicted = Vec::new();
        for (call, segment) in swap.results {
            let forms = self.results.get(&call).map_or(&[][..], Vec::as_slice);
            match forms.iter().copied().find(|form| there.contains(form)) {
                Some(hole) if holes.contains_key(&hole) => {}
                Some(hole) => {
                    let put = self.write_one(segment, spot);
                    holes.insert(hole, put);
                    evicted.push(hole);
                    let root = self.roots.get(&hole).copied().unwrap_or(hole);
                    self.roots.insert(put, root);
                    self.forms.entry(root).or_default().push(put);
                }
                None => {
                    let message = format!(
                        "the result of call {call} is not in the context; it is passed over"
                    );
                    self.draft.fault(&spot.at, swap.key, "cleared-missing", message);
                }
            }
        }
        let Some(held) = state.held.filter(|_| !evicted.is_empty()) else { return };
        let put = evicted.iter().map(|hole| holes[hole]).collect();
        let list: Vec<SegmentId> =
            list.into_iter().map(|id| holes.get(&id).copied().unwrap_or(id)).collect();
        let evict = Evict {
            context: held.id,
            from: held.id,
            evicted: evicted.into_iter().map(Evicted::whole).collect(),
            replacement: Some(Replacement::new(swap.change.kind, put, Place::InPlace)),
            by: Some(self.by(&swap.change)),
            trigger: swap.change.trigger,
            evidence: Some(swap.change.evidence),
            extra: Extra::new(),
        };
        state.held = Some(self.draft.ledger.evict(held, evict, &list));
    }
}

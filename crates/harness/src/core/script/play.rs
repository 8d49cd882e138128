//! A script played into records.
use pleach_tree::{By, ByKind, ForkReason, GenerationId, Segment, SegmentId};
use rustc_hash::FxHashMap;

use super::player::{Player, Site};
use super::step::{Author, Call, Change, Item, Node, Step};
use super::{Script, Spot};
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
    pub(super) player: Player,
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
    let mut play = Play {
        draft: &mut script.draft,
        written: vec![Vec::new(); nodes.len()],
        lists: FxHashMap::default(),
        player: Player::new(nodes.iter().any(told)),
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
                let by = self.by(&swap.change);
                state.held = self.player.swap(self.draft, state.held, *swap, by, spot);
            }
        }
    }

    /// Writes segments that a node brings.
    pub(super) fn write(&mut self, segments: Vec<Segment>, spot: &Spot) -> Vec<SegmentId> {
        self.player.write(self.draft, segments, spot)
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
        (thread, rollout): (&str, Option<&str>),
    ) {
        self.settle(state);
        let dropped = call.dropped;
        let site = Site { spot, key: "", thread, rollout, copied: false };
        let called = self.player.call(self.draft, state.held, call, site);
        self.generations[at] = called.generation;
        state.held = Some(called.held);
        if !dropped {
            state.pending.extend_from_slice(&called.output);
        }
        self.written[at] = called.output;
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
}

//! The events that a request shows.
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::script::Item;

/// An event that a request can show.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) id: String,
    /// The node that brought it, and which of its segments are the event's.
    pub(super) node: usize,
    pub(super) parts: Option<(usize, usize)>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A tool call of a response.
    Action {
        response: String,
        call: String,
    },
    /// What answers a call.
    Answer {
        call: String,
    },
    Other,
}

impl Shown {
    pub(super) fn items(&self) -> Vec<Item> {
        match self.parts {
            Some((start, end)) => (start..end).map(|part| Item::Part(self.node, part)).collect(),
            None => vec![Item::Of(self.node)],
        }
    }
}

/// How many actions each response has, over all events.
pub(super) type Batches = FxHashMap<String, usize>;

/// What a request shows of the events: no half of a pair, and no part of a response of which
/// another part is gone.
pub(super) fn whole(events: &[Shown], batches: &Batches) -> Vec<Shown> {
    let mut left: Vec<&Shown> = events.iter().collect();
    loop {
        let (mut actions, mut answers) = (FxHashSet::default(), FxHashSet::default());
        let mut here: FxHashMap<&str, usize> = FxHashMap::default();
        for event in &left {
            match &event.kind {
                Kind::Action { response, call } => {
                    actions.insert(call.as_str());
                    *here.entry(response.as_str()).or_default() += 1;
                }
                Kind::Answer { call } => {
                    answers.insert(call.as_str());
                }
                Kind::Other => {}
            }
        }
        let stays = |event: &Shown| match &event.kind {
            Kind::Action { response, call } => {
                answers.contains(call.as_str())
                    && here.get(response.as_str()) == batches.get(response)
            }
            Kind::Answer { call } => actions.contains(call.as_str()),
            Kind::Other => true,
        };
        let kept: Vec<&Shown> = left.iter().copied().filter(|event| stays(event)).collect();
        if kept.len() == left.len() {
            return kept.into_iter().cloned().collect();
        }
        left = kept;
    }
}

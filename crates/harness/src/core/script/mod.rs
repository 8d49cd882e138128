//! What a harness's own log says happened, step by step, and the records that follow from it.
//!
//! An adapter that knows what its harness did, because the log says so, writes a [`Script`]: one
//! [`Node`] for everything that brings something into a context, calls the model, or rewrites the
//! list that the next request holds. Playing the script gives contexts, generations and evictions,
//! a fork wherever a second node goes on from the same one, and a name for the thread of every
//! branch.
//!
//! What a step does to a context is the [`Player`]'s: an adapter whose order no script can give, as
//! lines of Claude Code are placed while they are played, uses it as it is.
mod list;
mod part;
mod play;
mod player;
mod step;

pub(crate) use part::{Spot, call, content_number, content_of, quoting, result, said, text};
pub(crate) use player::{Player, Reduced, Site};
pub(crate) use step::{Author, Back, Call, Change, Item, List, Node, Step, Swap};

use std::collections::BTreeMap;

use pleach_tree::{Fidelity, ForkReason, JsonLines, Location, Outcome, ReadOptions};
use serde::de::DeserializeOwned;

use crate::core::draft::Draft;
use crate::core::input::Member;
use crate::{Conversion, HarnessError};

/// Everything that a log says, in order.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) draft: Draft,
    pub(crate) nodes: Vec<Node>,
    /// The threads that nodes belong to; the first one is the main thread.
    conversations: Vec<Conversation>,
    /// How rollouts ended.
    pub(crate) outcomes: Vec<Outcome>,
    /// How often a type was met that the adapter does not know, and where first.
    unknown: BTreeMap<String, (Location, u64)>,
}

/// Where the next step of a conversation goes: behind the last one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    /// The thread that steps belong to.
    pub(crate) conversation: usize,
    /// The last node; `None` before anything was said.
    pub(crate) at: Option<usize>,
}

impl Cursor {
    /// Before the first step of a thread.
    pub(crate) fn new(conversation: usize) -> Self {
        Self { conversation, at: None }
    }

    /// Adds a step and stands behind it; its node.
    pub(crate) fn push(&mut self, script: &mut Script, spot: &Spot, step: Step) -> usize {
        let node = script.push(self.at, self.conversation, spot, step);
        self.at = Some(node);
        node
    }
}

/// A thread of a rollout.
#[derive(Debug)]
struct Conversation {
    name: String,
    /// The rollout, where the log has several.
    rollout: Option<String>,
}

impl Script {
    /// A script of what `harness` wrote, message by message, with the main thread and nothing in
    /// it.
    pub(crate) fn new(harness: &str, options: ReadOptions) -> Self {
        Self::of(Draft::new(harness, Fidelity::Message, options))
    }

    /// A script with the main thread and nothing in it, of files that were read already.
    pub(crate) fn of(draft: Draft) -> Self {
        Self {
            draft,
            nodes: Vec::new(),
            conversations: vec![Conversation { name: "main".into(), rollout: None }],
            outcomes: Vec::new(),
            unknown: BTreeMap::new(),
        }
    }

    /// Adds a thread, whose contexts start from nothing or from a node of another one.
    pub(crate) fn conversation(&mut self, name: impl Into<String>) -> usize {
        self.conversations.push(Conversation { name: name.into(), rollout: None });
        self.conversations.len() - 1
    }

    /// Adds a thread of a rollout of its own.
    pub(crate) fn conversation_of(&mut self, rollout: &str, name: impl Into<String>) -> usize {
        self.conversations
            .push(Conversation { name: name.into(), rollout: Some(rollout.to_owned()) });
        self.conversations.len() - 1
    }

    /// Adds a node behind `parent`, which must be there already. Where steps follow one another, a
    /// [`Cursor`] knows the parent.
    pub(crate) fn push(
        &mut self,
        parent: Option<usize>,
        conversation: usize,
        spot: &Spot,
        step: Step,
    ) -> usize {
        let parent = parent.filter(|&parent| parent < self.nodes.len());
        self.nodes.push(Node { parent, conversation, spot: spot.clone(), step, fork: None });
        self.nodes.len() - 1
    }

    /// Says why a node opens a branch, where that is not a rewind or a retry.
    pub(crate) fn forks(&mut self, node: usize, reason: ForkReason) {
        self.nodes[node].fork = Some(reason);
    }

    /// Counts a type that the adapter does not know.
    pub(crate) fn unknown(&mut self, kind: &str, at: &Location) {
        match self.unknown.get_mut(kind) {
            Some(found) => found.1 += 1,
            None => {
                self.unknown.insert(kind.to_owned(), (at.clone(), 1));
            }
        }
    }

    /// Reads every value of a file of JSON Lines; `take` gets each with the place where it stands.
    ///
    /// # Errors
    /// [`HarnessError::Io`]; what is wrong with a line goes into the report.
    pub(crate) fn lines<T: DeserializeOwned>(
        &mut self,
        member: &Member,
        mut take: impl FnMut(&mut Self, T, &Spot),
    ) -> Result<(), HarnessError> {
        let file = self.draft.file(member);
        let mut lines = JsonLines::new(member.open()?, member.name.clone(), self.draft.options);
        let mut values = Vec::new();
        let io = |source| HarnessError::io(&member.name, source);
        while let Some(at) = lines.next_line(&mut values, &mut self.draft.report).map_err(io)? {
            let spot = Spot { file, at };
            for value in values.drain(..) {
                take(self, value, &spot);
            }
        }
        Ok(())
    }

    /// Plays the script to its end.
    ///
    /// # Errors
    /// [`HarnessError::Rejected`] with every fault of the files.
    pub(crate) fn play(mut self) -> Result<Conversion, HarnessError> {
        for (kind, (at, count)) in std::mem::take(&mut self.unknown) {
            let message = format!(
                "type {kind:?} is not known to this adapter; what is of it ({count}) is taken as no context"
            );
            self.draft.warn(&at, "type", "unknown-type", message);
        }
        play::play(&mut self);
        for outcome in self.outcomes {
            self.draft.ledger.outcome(outcome);
        }
        self.draft.finish()
    }
}

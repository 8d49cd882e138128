//! What can happen in a log.
use std::ops::Range;
use std::sync::Arc;

use pleach_tree::{By, ByKind, Evidence, ForkReason, ReplacementKind, Segment, Trigger};

use super::{Script, Spot};

/// One step of a log, behind the one that it goes on from.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) parent: Option<usize>,
    pub(crate) conversation: usize,
    pub(crate) spot: Spot,
    pub(crate) step: Step,
    /// Why it opens a branch, where it does.
    pub(crate) fork: Option<ForkReason>,
}

/// What a node does.
#[derive(Debug)]
pub(crate) enum Step {
    /// Brings segments into the context.
    Put(Vec<Segment>),
    /// Calls the model.
    Call(Call),
    /// Rewrites the whole list.
    List(Box<List>),
    /// Puts something else for results of tool calls, where they stand.
    Swap(Box<Swap>),
}

/// A call of the model.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// What it said, which the next request shows too.
    pub(crate) output: Vec<Segment>,
    pub(crate) model: Option<Arc<str>>,
    /// What else of the output is not recorded; reasoning is told from the segments.
    pub(crate) unrecorded: Vec<String>,
    /// Whether no later request shows what it said.
    pub(crate) dropped: bool,
}

/// The list that requests hold from here on.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) items: Vec<Item>,
    pub(crate) change: Change,
}

/// A part of a list.
#[derive(Debug)]
pub(crate) enum Item {
    /// What a node brought into the context, in the form it has there.
    Of(usize),
    /// One segment of a node, by its index.
    Part(usize, usize),
    /// Some segments of the list that a node made.
    Listed(usize, Range<usize>),
    /// Segments that were not there before.
    New(Vec<Segment>),
    /// A message given by its content: the one of the same content that is there already, else a
    /// new one.
    Told(Vec<Segment>),
}

/// Where a list goes on after something was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Back {
    /// Behind a node, as it was then.
    To(Option<usize>),
    /// With the first segments of a list that a node made.
    Into(usize, usize),
}

impl Back {
    /// The node to go on from; where that is inside a list, one that cuts it is added.
    pub(crate) fn node(
        self,
        script: &mut Script,
        conversation: usize,
        spot: &Spot,
    ) -> Option<usize> {
        match self {
            Self::To(node) => node,
            Self::Into(node, count) => {
                let change =
                    Change::new(ReplacementKind::None).by(Author::Known(By::new(ByKind::Human)));
                let list = List { items: vec![Item::Listed(node, 0..count)], change };
                Some(script.push(Some(node), conversation, spot, Step::List(Box::new(list))))
            }
        }
    }
}

/// Results that are cleared.
#[derive(Debug)]
pub(crate) struct Swap {
    /// What stands for the result of each call.
    pub(crate) results: Vec<(String, Segment)>,
    /// Whether an id that several calls have means the results of all of them.
    pub(crate) every: bool,
    pub(crate) change: Change,
    /// The key in the log that names the calls.
    pub(crate) key: &'static str,
}

/// Who changed a list, why, and how it is known.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) kind: ReplacementKind,
    pub(crate) author: Author,
    pub(crate) trigger: Option<Trigger>,
    pub(crate) evidence: Evidence,
    /// Whether the log records it as a compaction, so that one which removes nothing is worth a
    /// word.
    pub(crate) compacts: bool,
}

/// Who decided a change.
#[derive(Debug, Clone)]
pub(crate) enum Author {
    Known(By),
    /// The call of a node.
    Of(usize),
}

impl Change {
    /// A change that the log records, by an author who is not recorded.
    pub(crate) fn new(kind: ReplacementKind) -> Self {
        Self {
            kind,
            author: Author::Known(By::new(ByKind::Unknown)),
            trigger: None,
            evidence: Evidence::Recorded,
            compacts: kind == ReplacementKind::Summary,
        }
    }

    /// The same change by this author.
    pub(crate) fn by(self, author: Author) -> Self {
        Self { author, ..self }
    }

    /// The same change, which may be none.
    pub(crate) fn quiet(self) -> Self {
        Self { compacts: false, ..self }
    }

    /// The same change with what set it off.
    pub(crate) fn trigger(self, trigger: Option<Trigger>) -> Self {
        Self { trigger, ..self }
    }
}

use std::collections::VecDeque;

use pleach_tree::SegmentId;

use super::Id;
use crate::core::ledger::Held;
use pleach_tree::diff::common_prefix;

/// Where a thread stands behind a call: what the next prompt holds if it goes on from it.
#[derive(Debug, Clone)]
pub(super) struct Head {
    /// What the call was given and said.
    pub(super) units: Vec<u32>,
    pub(super) ids: Vec<Id>,
    /// Where the output begins.
    pub(super) prompt: usize,
    pub(super) context: Held,
    pub(super) output: Vec<SegmentId>,
    pub(super) node: usize,
    pub(super) conversation: usize,
    /// The thread that the log names.
    pub(super) thread: Option<String>,
    /// Contexts of calls that `units` begins with, shortest first.
    pub(super) marks: Vec<Mark>,
    /// Where units were changed; a segment behind one may be there in part only.
    pub(super) cuts: Vec<usize>,
}

/// A call whose prompt is the first `prompt` units of a list, and whose output goes on to `end`, if
/// it is in the list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) prompt: usize,
    pub(super) end: Option<usize>,
    pub(super) context: Held,
    pub(super) node: usize,
}

impl Head {
    /// What the call said.
    pub(super) fn said(&self) -> &[u32] {
        &self.units[self.prompt..]
    }

    /// Whether one segment ends and another begins before unit `at`.
    pub(super) fn is_boundary(&self, at: usize) -> bool {
        let ends = at.checked_sub(1).and_then(|before| self.ids.get(before)).zip(self.ids.get(at));
        ends.is_none_or(|(before, behind)| before.segment != behind.segment)
    }

    /// How many units a prompt begins with that stand here.
    pub(super) fn shared(&self, prompt: &[u32]) -> usize {
        common_prefix(&self.units, prompt)
    }

    /// Whether the units from `from` to `to` stand as they were appended.
    pub(super) fn is_uncut(&self, from: usize, to: usize) -> bool {
        !self.cuts.iter().any(|&cut| from <= cut && cut < to)
    }

    /// The marks that the first `shared` units hold, that of the call itself last.
    pub(super) fn marks_within(&self, shared: usize) -> Vec<Mark> {
        let end = Some(self.units.len()).filter(|&end| end <= shared);
        let own = Mark { prompt: self.prompt, end, context: self.context, node: self.node };
        let mut marks: Vec<Mark> =
            self.marks.iter().copied().chain([own]).filter(|mark| mark.prompt <= shared).collect();
        for mark in &mut marks {
            mark.end = mark.end.filter(|&end| end <= shared);
        }
        marks
    }
}

/// The heads of one rollout: where its threads stand, and where they stood before something left.
#[derive(Debug, Default)]
pub(super) struct Heads {
    pub(super) live: Vec<Head>,
    stale: VecDeque<Head>,
}

/// How many of the places before an eviction are remembered; a prompt that goes back further starts
/// anew.
const STALE: usize = 16;
/// How many threads are remembered.
const LIVE: usize = 64;

impl Heads {
    pub(super) fn push(&mut self, head: Head) {
        if self.live.len() == LIVE {
            self.live.remove(0);
        }
        self.live.push(head);
    }

    pub(super) fn retire(&mut self, head: Head) {
        if self.stale.len() == STALE {
            self.stale.pop_front();
        }
        self.stale.push_back(head);
    }

    /// Every head, the newest first, live ones before those that were left; with the index among
    /// the live ones.
    pub(super) fn all(&self) -> impl Iterator<Item = (Option<usize>, &Head)> {
        let live = self.live.iter().enumerate().rev().map(|(at, head)| (Some(at), head));
        live.chain(self.stale.iter().rev().map(|head| (None, head)))
    }
}

//! The list that the next request holds, so that rollbacks and old compactions find their place in
//! it.
use super::known::Key;
use crate::core::script::{Back, Item};

/// One entry of the list.
#[derive(Debug, Clone)]
pub(super) struct HistoryEntry {
    pub(super) from: From,
    /// Where the list ends with it.
    pub(super) back: Back,
    /// Whether it begins a turn.
    pub(super) turn: bool,
    /// Whether it is what the harness puts in before a turn.
    pub(super) context: bool,
    /// Whether it is the summary of a compaction, which a later one does not keep.
    pub(super) summary: bool,
    /// Bytes of its text.
    pub(super) bytes: usize,
    /// What its items are known by.
    pub(super) keys: Vec<Key>,
}

/// What brought an entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum From {
    Node(usize),
    /// Some segments of a list that a node made.
    List {
        node: usize,
        start: usize,
        end: usize,
    },
}

impl HistoryEntry {
    /// What a node brought.
    pub(super) fn of(node: usize, turn: bool, context: bool, bytes: usize, keys: Vec<Key>) -> Self {
        Self {
            from: From::Node(node),
            back: Back::To(Some(node)),
            turn,
            context,
            summary: false,
            bytes,
            keys,
        }
    }

    fn item(&self) -> Item {
        match self.from {
            From::Node(node) => Item::Of(node),
            From::List { node, start, end } => Item::Listed(node, start..end),
        }
    }
}

/// The entries of the list, in order.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) entries: Vec<HistoryEntry>,
}

impl History {
    /// Takes back the newest turns; also says whether there were as many.
    pub(super) fn back(&mut self, turns: usize) -> Option<(Back, bool)> {
        let starts: Vec<usize> =
            (0..self.entries.len()).filter(|&at| self.entries[at].turn).collect();
        let first = *starts.first()?;
        let enough = turns <= starts.len();
        let mut cut =
            starts.len().checked_sub(turns).and_then(|at| starts.get(at)).copied().unwrap_or(first);
        while cut > first && self.entries[cut - 1].context {
            cut -= 1;
        }
        self.entries.truncate(cut);
        Some((self.entries.last().map_or(Back::To(None), |entry| entry.back), enough))
    }

    /// The entries that an old compaction keeps: those before the first turn, and the newest
    /// prompts that fit into the budget of the harness; also whether the oldest of them was cut to
    /// fit.
    pub(super) fn kept(&self) -> (Vec<(Item, HistoryEntry)>, bool) {
        /// What the harness keeps of prompts, in bytes: 20,000 tokens that it takes for 4 bytes
        /// each.
        const BUDGET: usize = 80_000;
        let first = self.entries.iter().position(|entry| entry.turn).unwrap_or(self.entries.len());
        let (mut left, mut cut, mut kept) = (BUDGET, false, Vec::new());
        for entry in self.entries[first..].iter().rev().filter(|entry| entry.turn && !entry.summary)
        {
            if left == 0 {
                break;
            }
            kept.push(entry);
            cut = entry.bytes > left;
            left = left.saturating_sub(entry.bytes);
        }
        kept.reverse();
        let before = self.entries[..first].iter();
        (before.chain(kept).map(|entry| (entry.item(), entry.clone())).collect(), cut)
    }
}

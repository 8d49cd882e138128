//! What was met in a rollout and what of it the history holds, so that what is written again is
//! told from what is new.
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::history::HistoryEntry;
use super::item::Piece;

/// What an item is known by, with a number for what it says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Its own id.
    Item(Arc<str>, u64),
    /// The id of the tool call that it makes.
    Call(Arc<str>, u64),
    /// The id of the tool call that it answers.
    Output(Arc<str>, u64),
    /// Only what it says, which others may say as well.
    Text(u64),
}

impl Key {
    /// What a piece is known by; an output by its call alone, as ids of calls are what the harness
    /// pairs by.
    pub(super) fn of(piece: &Piece, id: Option<&str>, number: u64) -> Vec<Self> {
        let own = id.map(|id| Self::Item(id.into(), number));
        match piece {
            Piece::Said(segments) if segments.iter().any(|said| !said.calls.is_empty()) => {
                let calls = segments
                    .iter()
                    .flat_map(|said| &said.calls)
                    .map(|call| Self::Call(call.as_str().into(), number));
                own.into_iter().chain(calls).collect()
            }
            Piece::Said(_) | Piece::Given { .. } => {
                own.into_iter().chain([Self::Text(number)]).collect()
            }
            Piece::Output(segment) => {
                vec![Self::Output(segment.result_of.as_deref().unwrap_or_default().into(), number)]
            }
            Piece::Silent | Piece::Unknown(_) => Vec::new(),
        }
    }
}

/// What an item is beside those above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    New,
    /// One of the rollout that this one was forked from.
    Copied,
    /// It stood above and was taken out: what was sampled once is context here.
    Again,
    /// The history holds it.
    Repeated,
    /// It has no id, and what it says was said above; `stands` where the history holds that. What
    /// is beside it decides.
    Doubt {
        stands: bool,
    },
}

impl Standing {
    /// What the two are as parts of one run; none where they cannot be.
    pub(super) fn joined(self, next: Self) -> Option<Self> {
        match (self, next) {
            (one, other) if one == other => Some(one),
            (Self::Doubt { .. }, Self::Doubt { .. }) => Some(Self::Doubt { stands: false }),
            (Self::Doubt { .. }, sure @ (Self::New | Self::Again))
            | (sure @ (Self::New | Self::Again), Self::Doubt { .. }) => Some(sure),
            (Self::Doubt { stands: true }, Self::Repeated)
            | (Self::Repeated, Self::Doubt { stands: true }) => Some(Self::Repeated),
            _ => None,
        }
    }
}

/// Keys, and the ids of calls among them.
#[derive(Debug, Default)]
struct Keys {
    all: FxHashSet<Key>,
    called: FxHashSet<Arc<str>>,
    answered: FxHashSet<Arc<str>>,
}

impl Keys {
    fn add(&mut self, key: &Key) {
        match key {
            Key::Call(call, _) => self.called.insert(call.clone()),
            Key::Output(call, _) => self.answered.insert(call.clone()),
            Key::Item(..) | Key::Text(_) => false,
        };
        self.all.insert(key.clone());
    }
}

/// What was met.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Everything; what was sampled once is never sampled again.
    ever: Keys,
    /// What the history holds, with the run that is open.
    live: Keys,
    /// Ids that name calls which differ.
    shared: FxHashSet<Arc<str>>,
}

impl Known {
    pub(super) fn standing(&self, keys: &[Key]) -> Standing {
        let named = self.telling(keys);
        if named.is_empty() {
            return match keys.iter().any(|key| self.ever.all.contains(key)) {
                true => {
                    Standing::Doubt { stands: keys.iter().any(|key| self.live.all.contains(key)) }
                }
                false => Standing::New,
            };
        }
        let (mut stands, mut met) = (false, false);
        for key in named {
            stands |= self.live.all.contains(key);
            met |= self.ever.all.contains(key);
        }
        match (stands, met) {
            (true, _) => Standing::Repeated,
            (false, true) => Standing::Again,
            (false, false) => Standing::New,
        }
    }

    /// The keys that tell an item from others: its own id, else that of its call, unless several
    /// calls have that and one is answered.
    fn telling<'k>(&self, keys: &'k [Key]) -> Vec<&'k Key> {
        let own: Vec<&Key> = keys.iter().filter(|key| matches!(key, Key::Item(..))).collect();
        let tells = |key: &&Key| match key {
            Key::Text(_) => false,
            Key::Call(call, _) => {
                !(self.shared.contains(call) && self.live.answered.contains(call))
            }
            Key::Item(..) | Key::Output(..) => true,
        };
        if own.is_empty() { keys.iter().filter(tells).collect() } else { own }
    }

    /// The key that an item which was met is known by.
    pub(super) fn named<'k>(&self, keys: &'k [Key], standing: Standing) -> Option<&'k Key> {
        let among = match standing {
            Standing::Repeated => &self.live,
            Standing::Again => &self.ever,
            Standing::New | Standing::Copied | Standing::Doubt { .. } => return None,
        };
        self.telling(keys).into_iter().find(|key| among.all.contains(key))
    }

    pub(super) fn add(&mut self, keys: &[Key]) {
        for key in keys {
            self.ever.add(key);
            self.live.add(key);
        }
    }

    /// Lets the history hold these entries and nothing else.
    pub(super) fn hold(&mut self, entries: &[HistoryEntry]) {
        self.live = Keys::default();
        for entry in entries {
            self.add(&entry.keys);
        }
    }

    /// The id of a call that named another one above, where that is not said yet.
    pub(super) fn shares(&mut self, keys: &[Key]) -> Option<Arc<str>> {
        let call = keys.iter().find_map(|key| match key {
            Key::Call(call, _)
                if self.ever.called.contains(call) && !self.ever.all.contains(key) =>
            {
                Some(call)
            }
            _ => None,
        })?;
        self.shared.insert(call.clone()).then(|| call.clone())
    }

    /// Whether a call of this id was ever made.
    pub(super) fn was_made(&self, call: &str) -> bool {
        self.ever.called.contains(call)
    }

    /// Whether the history holds a call of this id.
    pub(super) fn is_made(&self, call: &str) -> bool {
        self.live.called.contains(call)
    }

    /// Whether the history holds an output for this id.
    pub(super) fn is_answered(&self, call: &str) -> bool {
        self.live.answered.contains(call)
    }

    pub(super) fn stands(&self, key: &Key) -> bool {
        self.live.all.contains(key)
    }
}

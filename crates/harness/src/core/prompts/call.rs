use std::sync::Arc;

use pleach_tree::{By, ByKind, Extra, Segment};

use crate::core::script::Spot;

/// A call of the model as a log gives it.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) rollout: String,
    /// The thread that the log itself names; the prompt then goes on from that thread's last call
    /// whatever it holds.
    pub(crate) thread: Option<String>,
    pub(crate) prompt: Vec<u32>,
    pub(crate) said: Vec<Said>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) unrecorded: Vec<String>,
    pub(crate) spot: Spot,
    /// The harness's own key of the call.
    pub(crate) key: String,
    pub(crate) extra: Extra,
    pub(crate) lineage: Lineage,
}

/// What a log itself says of where a prompt comes from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lineage {
    /// How many units of the prompt are all that an earlier call was given and said.
    pub(crate) parent: Option<usize>,
    /// Who changed the list that the call before left.
    pub(crate) by: Option<By>,
}

/// A segment that a call said, and its units as later prompts show them.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) segment: Segment,
    pub(crate) units: Vec<u32>,
}

impl Call {
    /// Who changed the list before it, where no words tell whose they are.
    pub(super) fn doer(&self) -> By {
        self.lineage.by.clone().unwrap_or_else(|| By::new(ByKind::Unknown))
    }

    /// The units of all that was said.
    pub(super) fn output(&self) -> Vec<u32> {
        self.said.iter().flat_map(|said| said.units.iter().copied()).collect()
    }
}

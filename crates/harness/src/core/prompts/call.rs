use std::sync::Arc;

use pleach_tree::{Extra, Segment};

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
}

/// A segment that a call said, and its units as later prompts show them.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) segment: Segment,
    pub(crate) units: Vec<u32>,
}

impl Call {
    /// The units of all that was said.
    pub(super) fn output(&self) -> Vec<u32> {
        self.said.iter().flat_map(|said| said.units.iter().copied()).collect()
    }
}

use serde::{Deserialize, Serialize};

use super::Extra;
use crate::{ContextId, GenerationId, SegmentId};

fn first_rollout() -> String {
    "r0".into()
}

fn main_thread() -> String {
    "main".into()
}

/// One call of the policy: one context and the segments it sampled there.
///
/// Loss applies to a generation's output and nowhere else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generation {
    /// Id, unique among generations.
    pub id: GenerationId,
    /// The context it was sampled under.
    pub context: ContextId,
    /// The segments it sampled, in order.
    pub output: Vec<SegmentId>,
    /// The rollout it belongs to.
    #[serde(default = "first_rollout")]
    pub rollout: String,
    /// The thread of that rollout.
    #[serde(default = "main_thread")]
    pub thread: String,
    /// Which weights sampled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// What of the output was not recorded token for token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<String>,
    /// The prompt ids that the engine recorded, checked against the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<Vec<u32>>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Generation {
    /// A generation of the main thread of rollout `r0`.
    pub fn new(id: GenerationId, context: ContextId, output: Vec<SegmentId>) -> Self {
        Self {
            id,
            context,
            output,
            rollout: first_rollout(),
            thread: main_thread(),
            policy: None,
            unrecorded: Vec::new(),
            prompt_tokens: None,
            extra: Extra::new(),
        }
    }

    /// The same call as one of another rollout.
    #[must_use]
    pub fn in_rollout(mut self, rollout: impl Into<String>) -> Self {
        self.rollout = rollout.into();
        self
    }

    /// The same call as one of another thread.
    #[must_use]
    pub fn in_thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = thread.into();
        self
    }
}

/// How a rollout ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// With an answer.
    Finished,
    /// At a cap on steps or compactions, without one.
    Overlong,
    /// By an error or from the outside.
    Aborted,
}

/// The reward of a rollout and the group it is compared in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The rollout.
    pub rollout: String,
    /// The group of rollouts of one prompt.
    pub group: String,
    /// The reward.
    pub reward: f64,
    /// How it ended.
    pub status: Status,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Outcome {
    /// The reward of a rollout that is in group `group`.
    pub fn new(
        rollout: impl Into<String>,
        group: impl Into<String>,
        reward: f64,
        status: Status,
    ) -> Self {
        let (rollout, group) = (rollout.into(), group.into());
        Self { rollout, group, reward, status, extra: Extra::new() }
    }
}

//! The parts of a trajectory that are read.
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Trajectory {
    pub(super) schema_version: Option<String>,
    pub(super) trajectory_id: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) agent: Agent,
    pub(super) steps: Vec<TrajectoryStep>,
    pub(super) continued_trajectory_ref: Option<String>,
    pub(super) subagent_trajectories: Option<Vec<Trajectory>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Agent {
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) model_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TrajectoryStep {
    pub(super) step_id: Option<i64>,
    pub(super) source: String,
    pub(super) model_name: Option<String>,
    pub(super) message: Value,
    pub(super) reasoning_content: Option<String>,
    pub(super) tool_calls: Option<Vec<ToolCall>>,
    pub(super) observation: Option<Observation>,
    pub(super) metrics: Option<Metrics>,
    pub(super) is_copied_context: Option<bool>,
    pub(super) llm_call_count: Option<u64>,
    pub(super) extra: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    pub(super) tool_call_id: String,
    pub(super) function_name: String,
    pub(super) arguments: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Observation {
    pub(super) results: Vec<ObservationResult>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ObservationResult {
    pub(super) source_call_id: Option<String>,
    pub(super) content: Value,
    pub(super) subagent_trajectory_ref: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metrics {
    pub(super) prompt_token_ids: Option<Vec<u32>>,
    pub(super) completion_token_ids: Option<Vec<u32>>,
    pub(super) logprobs: Option<Vec<Option<f64>>>,
}

/// What a step does to the context before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boundary {
    Replace,
    Truncate,
    Append,
    /// Something was taken out, and what is not said.
    Unsaid,
}

impl Trajectory {
    /// Everything that is known of the version, where it is one that is not read.
    pub(super) fn unsupported(&self) -> Option<&str> {
        let version = self.schema_version.as_deref()?;
        let number = version.trim_start_matches("ATIF-").trim_start_matches('v');
        let minor = number.strip_prefix("1.").and_then(|minor| minor.parse::<u32>().ok());
        (minor.is_none_or(|minor| minor > 8)).then_some(version)
    }
}

impl TrajectoryStep {
    /// Whether a model was called in it, here and not in another trajectory.
    pub(super) fn is_call(&self) -> bool {
        self.source == "agent"
            && self.is_copied_context != Some(true)
            && self.llm_call_count != Some(0)
    }

    pub(super) fn boundary(&self) -> Option<Boundary> {
        let management = self.extra.as_ref()?.get("context_management")?;
        let kind = management.get("type").and_then(Value::as_str);
        match management.get("boundary").and_then(Value::as_str) {
            Some("replace") => Some(Boundary::Replace),
            Some("truncate") => Some(Boundary::Truncate),
            Some("append") => Some(Boundary::Append),
            _ => match kind {
                Some("compaction") => Some(Boundary::Replace),
                Some("injection") => Some(Boundary::Append),
                Some("pruning") => Some(Boundary::Unsaid),
                _ => None,
            },
        }
    }

    /// Prompt and completion ids, where both are recorded.
    pub(super) fn ids(&self) -> Option<(&[u32], &[u32])> {
        let metrics = self.metrics.as_ref()?;
        Some((metrics.prompt_token_ids.as_deref()?, metrics.completion_token_ids.as_deref()?))
    }
}

/// The text of a message or an observation: text, or parts of which those without text are their
/// JSON.
pub(super) fn text(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text).collect::<Vec<_>>().join("\n"),
        part => match part.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => {
                let mut part = part.clone();
                crate::core::wording::leave_out_data("", &mut part);
                part.to_string()
            }
        },
    }
}

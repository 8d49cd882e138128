//! Samples, steps and rollouts as trainers write them.
use std::fmt;

use pleach_tree::{Extra, Outcome, Status};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::nested::{List, Object, Weight};
use super::response::AgentResponse;
use super::traces::{Trace, Traces};

/// A sample, or a list of them, as groups are written.
#[derive(Debug)]
pub(super) enum Samples {
    List(Vec<Samples>),
    Sample(Box<Sample>),
}

impl<'de> Deserialize<'de> for Samples {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Samples;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sample, or a list of samples")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Samples, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = items.next_element()? {
            list.push(entry);
        }
        Ok(Samples::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Samples, A::Error> {
        Sample::deserialize(MapAccessDeserializer::new(map))
            .map(|sample| Samples::Sample(Box::new(sample)))
    }
}

/// An id that some write as a number.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Name {
    Text(String),
    Number(i64),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// Ids that were sampled, with the ids before them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ids {
    pub(super) prompt_ids: Option<Vec<u32>>,
    #[serde(alias = "response_ids")]
    pub(super) completion_ids: Option<Vec<u32>>,
    #[serde(alias = "response_mask")]
    pub(super) completion_mask: Option<Vec<Option<Weight>>>,
    #[serde(alias = "response_logprobs")]
    pub(super) completion_logprobs: Option<Vec<Option<f64>>>,
}

/// What stands under `tokens`: the ids of a slime sample, or all there is of a verifiers step.
#[derive(Debug)]
pub(super) enum TokensField {
    List(Vec<u32>),
    Step(Ids),
    /// How many there are, in a row that samples are gathered in.
    Count,
}

impl<'de> Deserialize<'de> for TokensField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TokensVisitor)
    }
}

struct TokensVisitor;

impl<'de> Visitor<'de> for TokensVisitor {
    type Value = TokensField;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of token ids, or the token lists of a step")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<TokensField, A::Error> {
        let mut list = Vec::new();
        while let Some(id) = items.next_element()? {
            list.push(id);
        }
        Ok(TokensField::List(list))
    }

    fn visit_u64<E>(self, _: u64) -> Result<TokensField, E> {
        Ok(TokensField::Count)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TokensField, A::Error> {
        Ids::deserialize(MapAccessDeserializer::new(map)).map(TokensField::Step)
    }
}

/// One step of a verifiers rollout.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenStep {
    pub(super) tokens: Option<TokensField>,
    pub(super) trajectory_id: Option<Name>,
}

/// What stands under a key, null too: a reward that is no number is one all the same.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// A rollout, a step by itself, or a sample of several turns.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sample {
    pub(super) trajectory: Option<Vec<TokenStep>>,
    pub(super) tokens: Option<TokensField>,
    pub(super) prompt_ids: Option<Vec<u32>>,
    pub(super) completion_ids: Option<Vec<u32>>,
    pub(super) completion_mask: Option<Vec<Option<Weight>>>,
    pub(super) completion_logprobs: Option<Vec<Option<f64>>>,
    pub(super) response_ids: Option<Vec<u32>>,
    pub(super) response_mask: Option<Vec<Option<Weight>>>,
    pub(super) response_logprobs: Option<Vec<Option<f64>>>,
    pub(super) response_length: Option<usize>,
    pub(super) loss_mask: Option<Vec<Option<Weight>>>,
    pub(super) rollout_log_probs: Option<Vec<Option<f64>>>,
    pub(super) remove_sample: bool,
    mask_sample: Option<Value>,
    // Records of gateways, one a call.
    pub(super) prompt_token_ids: Option<Vec<u32>>,
    pub(super) prompt_ids_suffix: Option<Vec<u32>>,
    pub(super) prompt_is_delta: Option<Value>,
    pub(super) generation_token_ids: Option<Vec<u32>>,
    pub(super) completion_token_ids: Option<Vec<u32>>,
    pub(super) generation_log_probs: Option<Vec<Option<f64>>>,
    pub(super) logprobs: Option<Value>,
    pub(super) is_valid: Option<Value>,
    pub(super) lineage_id: Option<Name>,
    pub(super) trace_id: Option<Name>,
    pub(super) parent_trace_id: Option<Name>,
    pub(super) model_call_id: Option<Name>,
    pub(super) parent_call_id: Option<Name>,
    pub(super) request_id: Option<Name>,
    pub(super) parent_session_id: Option<Name>,
    weight_version: Option<Name>,
    // Rows of which every token has its mask.
    pub(super) input_ids: Option<Vec<u32>>,
    pub(super) old_log_probs: Option<Vec<Option<f64>>>,
    pub(super) advantage: Option<Value>,
    pub(super) group_id: Option<Name>,
    model_version: Option<Name>,
    // What holds several records.
    pub(super) schema_version: Option<Value>,
    pub(super) version: Option<Value>,
    completions: List<Object<Sample>>,
    deltas: List<Object<Sample>>,
    samples: List<Object<Sample>>,
    pub(super) training_traces: Object<Traces>,
    pub(super) traces: List<Trace>,
    pub(super) response: Object<AgentResponse>,
    #[serde(rename = "_ng_rollout_id")]
    gym_rollout: Option<Name>,
    #[serde(rename = "_ng_task_index")]
    gym_task: Option<Name>,
    #[serde(rename = "_ng_rollout_index")]
    gym_index: Option<Name>,
    rollout_id: Option<Name>,
    trajectory_id: Option<Name>,
    session_id: Option<Name>,
    group_index: Option<Name>,
    index: Option<Name>,
    example_id: Option<Name>,
    uid: Option<Name>,
    #[serde(deserialize_with = "present")]
    reward: Option<Value>,
    #[serde(deserialize_with = "present")]
    reward_score: Option<Value>,
    status: Option<String>,
    is_truncated: Option<bool>,
    error: Option<Value>,
    pub(super) model: Option<String>,
    weight_versions: Vec<Name>,
}

impl Sample {
    /// The records that it holds, each with its key.
    pub(super) fn nested(&mut self) -> Vec<(String, Sample)> {
        let lists = [
            ("completions", &mut self.completions),
            ("deltas", &mut self.deltas),
            ("samples", &mut self.samples),
        ];
        let mut nested = Vec::new();
        for (key, list) in lists {
            for (index, sample) in std::mem::take(&mut list.0).into_iter().enumerate() {
                nested.extend(sample.0.map(|sample| (format!("{key}[{index}]"), *sample)));
            }
        }
        nested
    }

    /// Whether nothing of it is to be trained.
    pub(super) fn is_masked(&self) -> bool {
        self.remove_sample || self.mask_sample == Some(Value::Bool(true))
    }

    /// The rollout that the sample is of, where it says so.
    pub(super) fn rollout(&self) -> Option<String> {
        let named = [&self.gym_rollout, &self.rollout_id, &self.session_id, &self.trajectory_id];
        let named = named.into_iter().flatten().next();
        let group = self.group_index.as_ref().or(self.gym_task.as_ref());
        match (named, group, self.index.as_ref().or(self.gym_index.as_ref())) {
            (Some(name), ..) => Some(name.to_string()),
            (None, Some(group), Some(index)) => Some(format!("{group}/{index}")),
            (None, None, Some(index)) => Some(index.to_string()),
            _ => None,
        }
    }

    /// Whether it is all of a rollout: several turns in one sequence, or something with a reward of
    /// its own.
    pub(super) fn is_whole(&self) -> bool {
        self.tokens.is_some()
            || self.response_ids.is_some()
            || self.reward.is_some()
            || self.reward_score.is_some()
    }

    /// Which weights sampled it.
    pub(super) fn policy(&self) -> Option<String> {
        let versions = [self.weight_versions.last(), self.weight_version.as_ref()];
        let version = versions.into_iter().flatten().next().or(self.model_version.as_ref());
        version.map(ToString::to_string).or_else(|| self.model.clone())
    }

    /// Its reward and how it ended, where there is a reward.
    pub(super) fn outcome(&self, rollout: &str) -> Option<Outcome> {
        let mut extra = Extra::new();
        let reward = match &self.reward {
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::Object(parts)) => {
                extra.insert("rewards".into(), Value::Object(parts.clone()));
                ["score", "reward"].iter().find_map(|key| parts.get(*key)?.as_f64())
            }
            _ => self.reward_score.as_ref().and_then(Value::as_f64),
        };
        let failed = self.error.as_ref().is_some_and(|error| !error.is_null());
        let status = match self.status.as_deref() {
            Some("aborted" | "failed") => Status::Aborted,
            Some("truncated") => Status::Overlong,
            _ if failed => Status::Aborted,
            _ if self.is_truncated == Some(true) => Status::Overlong,
            _ => Status::Finished,
        };
        let groups =
            [&self.group_index, &self.example_id, &self.uid, &self.group_id, &self.gym_task];
        let group = groups.into_iter().flatten().next();
        let group = group.map_or_else(|| rollout.to_owned(), ToString::to_string);
        Some(Outcome { rollout: rollout.to_owned(), group, reward: reward?, status, extra })
    }
}

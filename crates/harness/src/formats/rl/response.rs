//! Responses of NeMo Gym's agents: every call of one, with what witnesses a compaction before it.
use pleach_tree::{By, Extra, Location};
use serde::Deserialize;

use super::Log;
use super::calls::{Owner, Sequence};
use super::capture::path;
use super::nested::{List, Object};
use super::sample::{Name, Sample};
use crate::core::prompts::Lineage;

/// The response of an agent, as far as its calls are in it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AgentResponse {
    model: Option<String>,
    output: List<TokenItem>,
    completion_evidence: List<Witness>,
    model_call_metadata: List<Witness>,
    boundary_events: List<Boundary>,
    context_compaction_contract: Object<Contract>,
    rollout_trace_contract: Object<Contract>,
}

/// Ids that stand at an item of a response, or in the evidence of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenItem {
    prompt_token_ids: Option<Vec<u32>>,
    generation_token_ids: Option<Vec<u32>>,
    generation_log_probs: Option<Vec<Option<f64>>>,
}

/// What is recorded of how the context of one call came about.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Witness {
    completion_id: Option<Name>,
    expected_append_compatible: Option<bool>,
    compaction_event_id: Option<Name>,
    policy_decision: Object<Policy>,
    eligible: Option<bool>,
    prompt_token_ids: Option<Vec<u32>>,
    sampled_token_ids: Option<Vec<u32>>,
    sampled_logprobs: Option<Vec<Option<f64>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Policy {
    policy_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Boundary {
    event_id: Option<Name>,
    policy_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Contract {
    rollout_id: Option<Name>,
}

/// A call with its key and what witnesses it.
type Witnessed = (String, TokenItem, Witness);

impl AgentResponse {
    /// The calls in their order, each with its key and what witnesses it; or how many calls are
    /// described and how many have ids, where these are not as many.
    fn calls(&mut self) -> Result<Vec<Witnessed>, (usize, usize)> {
        let evidence = std::mem::take(&mut self.completion_evidence.0);
        if !evidence.is_empty() {
            let ids = |(index, mut witness): (usize, Witness)| {
                let item = TokenItem {
                    prompt_token_ids: witness.prompt_token_ids.take(),
                    generation_token_ids: witness.sampled_token_ids.take(),
                    generation_log_probs: witness.sampled_logprobs.take(),
                };
                (format!("completion_evidence[{index}]"), item, witness)
            };
            return Ok(evidence.into_iter().enumerate().map(ids).collect());
        }
        let output = std::mem::take(&mut self.output.0);
        let mut items: Vec<(usize, TokenItem)> = output.into_iter().enumerate().collect();
        items.retain(|(_, item)| item.generation_token_ids.is_some());
        let mut witnesses = std::mem::take(&mut self.model_call_metadata.0);
        if !witnesses.is_empty() && witnesses.len() != items.len() {
            return Err((witnesses.len(), items.len()));
        }
        witnesses.resize_with(items.len(), Witness::default);
        let call = |((index, item), witness)| (format!("output[{index}]"), item, witness);
        Ok(items.into_iter().zip(witnesses).map(call).collect())
    }

    /// The policy whose doing a context is, where the call begins a rewritten one.
    fn by(&self, witness: &Witness) -> Option<By> {
        let event = witness.compaction_event_id.as_ref()?.to_string();
        let of = |boundary: &&Boundary| {
            boundary.event_id.as_ref().is_some_and(|id| id.to_string() == event)
        };
        let named = self.boundary_events.0.iter().find(of);
        let named = named.and_then(|boundary| boundary.policy_name.clone());
        let policy = || witness.policy_decision.0.as_ref()?.policy_name.clone();
        Some(By::rule(named.or_else(policy).unwrap_or_else(|| "compaction".into())))
    }

    fn rollout(&self) -> Option<String> {
        let contracts = [&self.context_compaction_contract.0, &self.rollout_trace_contract.0];
        let id = contracts.into_iter().flatten().find_map(|contract| contract.rollout_id.as_ref());
        id.map(ToString::to_string)
    }
}

impl Log {
    /// The calls of an agent's response.
    pub(super) fn response(
        &mut self,
        mut response: AgentResponse,
        sample: &Sample,
        at: &Location,
        key: &str,
    ) {
        let rollout = response.rollout().or_else(|| sample.rollout());
        let rollout = rollout.unwrap_or_else(|| format!("r{}", self.samples - 1));
        let calls = match response.calls() {
            Ok(calls) => calls,
            Err((witnesses, items)) => {
                let message = format!(
                    "{witnesses} calls are described and {items} items have ids; the response is left out"
                );
                let key = format!("{key}.model_call_metadata");
                self.draft.fault(at, &key, "call-metadata", message);
                return;
            }
        };
        if calls.is_empty() {
            let message = "no item of the response has token ids; run it with `token_id_capture`";
            self.draft.fault(at, key, "no-tokens", message);
            return;
        }
        let mut before: Vec<u32> = Vec::new();
        for (inner, item, witness) in calls {
            let key = path(key, &inner);
            let (Some(prompt), Some(said)) = (item.prompt_token_ids, item.generation_token_ids)
            else {
                self.no_ids(at, &key);
                continue;
            };
            if witness.expected_append_compatible == Some(true) && !prompt.starts_with(&before) {
                let message = "the prompt does not go on from the call before, as its record says";
                self.draft.fault(at, &key, "undeclared-rewrite", message);
            }
            let place = Owner {
                rollout: &rollout,
                thread: Some("main".into()),
                policy: sample.policy().or_else(|| response.model.clone()).map(Into::into),
                trained: !sample.is_masked() && witness.eligible != Some(false),
                call: witness.completion_id.as_ref().map(Name::to_string),
                lineage: Lineage { parent: None, by: response.by(&witness) },
                extra: Extra::new(),
            };
            let start = prompt.len();
            before = [prompt, said].concat();
            let sequence = Sequence {
                ids: before.clone(),
                prompt: start,
                mask: None,
                logprobs: item.generation_log_probs,
                turns: false,
            };
            self.calls(sequence, &place, at, &key);
        }
        self.outcome(&rollout, sample, at);
    }
}

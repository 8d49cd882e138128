//! Calls as gateways record them: one a record, with the ids of the whole prompt or of what stands
//! behind an earlier call.
use indexmap::IndexMap;
use pleach_tree::{Extra, Location};
use serde_json::Value;

use super::Log;
use super::calls::{Owner, Sequence};
use super::sample::{Name, Sample};
use crate::core::prompts::Lineage;

/// Calls that later ones may go on from, as pieces behind the calls before them.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pieces: Vec<Piece>,
    named: IndexMap<(String, String), usize>,
}

#[derive(Debug)]
struct Piece {
    behind: Option<usize>,
    ids: Vec<u32>,
}

impl Captured {
    /// All that a call was given and said.
    fn view(&self, mut at: usize) -> Vec<u32> {
        let mut path = vec![at];
        while let Some(behind) = self.pieces.get(at).and_then(|piece| piece.behind) {
            path.push(behind);
            at = behind;
        }
        let pieces = path.into_iter().rev().filter_map(|at| self.pieces.get(at));
        pieces.flat_map(|piece| piece.ids.iter().copied()).collect()
    }

    fn find(&self, rollout: &str, call: &str) -> Option<usize> {
        self.named.get(&(rollout.to_owned(), call.to_owned())).copied()
    }

    fn note(&mut self, rollout: &str, call: String, piece: Piece) {
        self.named.insert((rollout.to_owned(), call), self.pieces.len());
        self.pieces.push(piece);
    }
}

impl Log {
    /// The call of a record.
    pub(super) fn captured(&mut self, mut sample: Sample, at: &Location, key: &str) {
        if sample.is_valid == Some(Value::Bool(false)) {
            let message = "the gateway marks the record as not fit for training; it is left out";
            self.draft.fault(at, &path(key, "is_valid"), "invalid-record", message);
            return;
        }
        // The calls of NeMo Gym are at version 3, records of Switchyard at 1.
        self.version(sample.schema_version.as_ref(), 3, at, &path(key, "schema_version"));
        let rollout = sample.rollout().unwrap_or_else(|| "r0".into());
        let completion = sample.generation_token_ids.take().or(sample.completion_token_ids.take());
        let (delta, given) = match sample.prompt_ids_suffix.take() {
            Some(suffix) => (true, Some(suffix)),
            None => {
                let delta = sample.prompt_is_delta == Some(Value::Bool(true));
                (delta, sample.prompt_token_ids.take())
            }
        };
        let (Some(given), Some(said)) = (given, completion) else {
            self.no_ids(at, key);
            return;
        };
        let parent = sample.parent_call().map(|name| (self.captured.find(&rollout, &name), name));
        if let (true, Some((None, name))) = (delta, &parent) {
            let message = format!(
                "the call goes on from {name}, which does not stand before it; it is left out"
            );
            self.draft.fault(at, key, "unknown-parent", message);
            return;
        }
        let parent = parent.and_then(|(found, _)| found);
        let before = parent.map_or_else(Vec::new, |parent| self.captured.view(parent));
        let (prompt, parent) = match delta {
            true => ([before.as_slice(), &given].concat(), parent),
            false => {
                let goes_on = given.starts_with(&before);
                (given, parent.filter(|_| goes_on))
            }
        };
        let shared = parent.map(|_| before.len());
        let call = sample.call();
        if let Some(name) = &call {
            let new = prompt.get(shared.unwrap_or_default()..).unwrap_or_default();
            let ids = [new, &said].concat();
            self.captured.note(&rollout, name.clone(), Piece { behind: parent, ids });
        }
        if said.is_empty() {
            let message = "the request has no answer; it is no call";
            self.draft.warn(at, key, "failed-call", message);
            return;
        }
        let place = Owner {
            rollout: &rollout,
            thread: sample.lineage_id.as_ref().map(Name::to_string),
            policy: sample.policy().map(Into::into),
            trained: !sample.is_masked(),
            call,
            lineage: Lineage { parent: shared, by: None },
            extra: sample.session_extra(),
        };
        let sequence = Sequence {
            prompt: prompt.len(),
            ids: [prompt, said].concat(),
            mask: None,
            logprobs: sample.captured_logprobs(),
            turns: false,
        };
        self.calls(sequence, &place, at, key);
        self.outcome(&rollout, &sample, at);
    }

    /// Notes a version that is newer than what was read, whose keys may mean something else.
    pub(super) fn version(&mut self, found: Option<&Value>, last: u64, at: &Location, key: &str) {
        let newer = |found: &&Value| found.as_u64().is_none_or(|version| version > last);
        if let Some(version) = found.filter(|found| !found.is_null()).filter(newer) {
            let message = format!("version {version} is not known; it is read as version {last}");
            self.draft.warn(at, key, "unknown-version", message);
        }
    }

    /// The calls of a row in which every token has its mask and log-probability.
    pub(super) fn row(&mut self, mut sample: Sample, at: &Location, key: &str) {
        let rollout = sample.rollout().unwrap_or_else(|| format!("r{}", self.samples - 1));
        let (Some(ids), Some(mask)) = (sample.input_ids.take(), sample.completion_mask.take())
        else {
            self.no_ids(at, key);
            return;
        };
        let place = Owner {
            rollout: &rollout,
            thread: Some("main".into()),
            policy: sample.policy().map(Into::into),
            trained: !sample.is_masked(),
            call: None,
            lineage: Lineage::default(),
            extra: sample.row_extra(),
        };
        let sequence = Sequence {
            ids,
            prompt: 0,
            mask: Some(super::calls::weights(mask)),
            logprobs: sample.old_log_probs.take(),
            turns: true,
        };
        self.calls(sequence, &place, at, key);
        self.outcome(&rollout, &sample, at);
    }
}

/// A key inside the value at a path.
pub(super) fn path(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }
}

impl Sample {
    /// The record's own name of its call.
    fn call(&self) -> Option<String> {
        let names = [&self.trace_id, &self.model_call_id, &self.request_id];
        names.into_iter().flatten().next().map(ToString::to_string)
    }

    /// The name of the call that its prompt goes on from.
    fn parent_call(&self) -> Option<String> {
        let names = [&self.parent_trace_id, &self.parent_call_id];
        names.into_iter().flatten().next().map(ToString::to_string)
    }

    fn captured_logprobs(&mut self) -> Option<Vec<Option<f64>>> {
        let list = |value: Value| match value {
            Value::Array(items) => Some(items.iter().map(Value::as_f64).collect()),
            _ => None,
        };
        self.generation_log_probs.take().or_else(|| self.logprobs.take().and_then(list))
    }

    fn session_extra(&self) -> Extra {
        named(&[("parent_session_id", self.parent_session_id.as_ref())])
    }

    fn row_extra(&self) -> Extra {
        let mut extra = named(&[("group_id", self.group_id.as_ref())]);
        if let Some(advantage) = self.advantage.as_ref().filter(|value| value.is_number()) {
            extra.insert("advantage".into(), advantage.clone());
        }
        extra
    }
}

fn named(names: &[(&str, Option<&Name>)]) -> Extra {
    let some = names.iter().filter_map(|(key, name)| Some(((*key).to_owned(), (*name)?)));
    some.map(|(key, name)| (key, Value::String(name.to_string()))).collect()
}

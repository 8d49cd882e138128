//! Training traces of NeMo Gym: every sampled span is a call.
use std::collections::HashMap;

use pleach_tree::{Extra, Location};
use serde::Deserialize;
use serde_json::Value;

use super::Log;
use super::calls::{Owner, Sequence, weights};
use super::capture::path;
use super::nested::{List, Weight};
use super::sample::{Name, Sample};
use crate::core::prompts::Lineage;

/// What a rollout's captured calls were projected to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Traces {
    schema_version: Option<Value>,
    rollout_id: Option<Name>,
    traces: List<Trace>,
}

/// One sequence of ids, with the spans of it that are trained here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Trace {
    trace_id: Option<Name>,
    model_call_ids: Vec<Name>,
    token_ids: Vec<u32>,
    generation_logprobs: Vec<Option<f64>>,
    loss_mask: Vec<Option<Weight>>,
    sampled_spans: Vec<SampledSpan>,
}

#[derive(Debug, Deserialize)]
struct SampledSpan {
    model_call_id: Name,
    start: usize,
    end: usize,
}

impl Traces {
    /// Traces that stand by themselves.
    pub(super) fn of(traces: List<Trace>, schema_version: Option<Value>) -> Self {
        Self { schema_version, rollout_id: None, traces }
    }
}

impl Log {
    /// The calls of training traces. A branch of a call goes on from it; what has a prompt of its
    /// own is a thread of its own, because the traces stand in the order of names and not of time.
    pub(super) fn traces(&mut self, traces: Traces, sample: &Sample, at: &Location, key: &str) {
        let rollout = traces.rollout_id.as_ref().map(Name::to_string).or_else(|| sample.rollout());
        let rollout = rollout.unwrap_or_else(|| format!("r{}", self.samples - 1));
        self.version(traces.schema_version.as_ref(), 1, at, &path(key, "schema_version"));
        let mut ends: HashMap<String, usize> = HashMap::new();
        for (index, mut trace) in traces.traces.0.into_iter().enumerate() {
            let key = path(key, &format!("traces[{index}]"));
            let size = trace.token_ids.len();
            let (logprobs, mask) = (trace.generation_logprobs.len(), trace.loss_mask.len());
            if (logprobs, mask) != (size, size) {
                let message = format!(
                    "the trace has {size} ids, {logprobs} log-probabilities and {mask} masks; it is left out"
                );
                self.draft.fault(at, &key, "trace-lists", message);
                continue;
            }
            let mask = weights(std::mem::take(&mut trace.loss_mask));
            trace.sampled_spans.sort_by_key(|span| span.start);
            let (mut covered, mut sound) = (0, true);
            for span in &trace.sampled_spans {
                if span.start < covered.max(1) || span.end <= span.start || span.end > size {
                    let message = format!(
                        "span {}..{} of call {} is not within the {size} ids behind the span before it; it is left out",
                        span.start, span.end, span.model_call_id
                    );
                    self.draft.fault(at, &key, "sampled-span", message);
                    sound = false;
                    continue;
                }
                if sound {
                    self.unowned(&mask[covered..span.start], at, &key);
                }
                covered = span.end;
                let lineage = Lineage { parent: trace.parent(span, &ends), by: None };
                ends.insert(span.model_call_id.to_string(), span.end);
                let place = Owner {
                    rollout: &rollout,
                    thread: trace.root(),
                    policy: sample.policy().map(Into::into),
                    trained: !sample.is_masked(),
                    call: Some(span.model_call_id.to_string()),
                    lineage,
                    extra: Extra::new(),
                };
                let sequence = Sequence {
                    ids: trace.token_ids[..span.end].to_vec(),
                    prompt: span.start,
                    mask: Some(mask[span.start..span.end].to_vec()),
                    logprobs: Some(trace.generation_logprobs[span.start..span.end].to_vec()),
                    turns: false,
                };
                self.calls(sequence, &place, at, &key);
            }
            if sound {
                self.unowned(mask.get(covered..).unwrap_or_default(), at, &key);
            }
        }
        self.outcome(&rollout, sample, at);
    }

    /// A weight where no span says who sampled it.
    fn unowned(&mut self, mask: &[f64], at: &Location, key: &str) {
        if mask.iter().any(|weight| *weight != 0.0) {
            let message = "ids outside its sampled spans have a weight; they are not trained";
            self.draft.fault(at, &format!("{key}.loss_mask"), "unowned-weight", message);
        }
    }
}

impl Trace {
    /// The call that the first prompt of the trace is of.
    fn root(&self) -> Option<String> {
        self.model_call_ids.first().or(self.trace_id.as_ref()).map(ToString::to_string)
    }

    /// Where the call before a span ends, of which this trace may hold a copy only.
    fn parent(&self, span: &SampledSpan, ends: &HashMap<String, usize>) -> Option<usize> {
        let own = span.model_call_id.to_string();
        let names: Vec<String> = self.model_call_ids.iter().map(ToString::to_string).collect();
        let at = names.iter().position(|name| *name == own)?.checked_sub(1)?;
        ends.get(&names[at]).copied().filter(|&end| end <= span.start)
    }
}

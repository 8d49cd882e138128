//! Token logs of reinforcement learning, read from verifiers 0.1.8 to 0.1.12 with prime-rl, slime
//! 0.2 and verl 0.6.
//!
//! The views are given: every sampled run of ids with the ids before it. What left the context
//! between two of them is found where a prompt does not extend the one before, so evictions are
//! inferred and everything else is exact.
//!
//! # What is read
//! - **verifiers rollouts**:
//!   `{"trajectory":[{"tokens":{"prompt_ids","completion_ids","completion_mask","completion_logprobs"}, "trajectory_id"}], "reward", "example_id"}`,
//!   one a line; a `trajectory_id` is a thread.
//! - **Steps by themselves**: `{"prompt_ids","completion_ids",..}`, with a `rollout_id` or
//!   `trajectory_id` where they have one. Those without are the steps of one rollout, in threads
//!   that follow from their prompts, unless they have a reward of their own.
//! - **slime samples**:
//!   `{"tokens","response_length","loss_mask","rollout_log_probs","reward","status","group_index","index"}`.
//!   Every run of the response under mask 1 is a generation, what stands between runs came from the
//!   environment. Samples of one `index` (or `session_id`) are one rollout, in the order of the
//!   file.
//! - **verl outputs**: `{"prompt_ids","response_ids","response_mask","response_logprobs"}`, masks
//!   as in slime.
//!
//! Records of gateways and trainers that capture every call, written from their public code:
//! - **Switchyard** (NVIDIA-NeMo/Switchyard#63 at 7098508), a file a call or the answer of
//!   `/v1/sessions/ID/completions`, which holds them in their order:
//!   `{"session_id","parent_session_id","prompt_token_ids","generation_token_ids","generation_log_probs","is_valid"}`.
//!   A session is a rollout; the session that it was started from is kept at its calls.
//! - **NeMo Gym's captured calls** (NVIDIA-NeMo/Gym at 1cf6755, `ID.tokens.jsonl`): the same lists
//!   with `rollout_id`, `model_call_id` and `parent_call_id`. A named parent that the prompt holds
//!   is what it goes on from.
//! - **NeMo Gym's training traces** (NVIDIA-NeMo/Gym#3212 at f926489):
//!   `{"training_traces":{"rollout_id","traces":[{"model_call_ids","token_ids","generation_logprobs","loss_mask","sampled_spans"}]},"reward"}`,
//!   or what stands under `training_traces` by itself. A span is a call, and one behind a call of
//!   another trace forks from it. The traces stand in the order of names and not of time, so a
//!   prompt that goes on from none is a thread of its own, and no eviction is inferred for it.
//! - **NeMo Gym's responses** (NVIDIA-NeMo/Gym#2616 at 2ac833e): items of `response.output` with
//!   `prompt_token_ids`, or calls under `completion_evidence`, in the order of time. Where
//!   `model_call_metadata` or that evidence names a `compaction_event_id`, what left is by the rule
//!   that its `boundary_events` name; where it says that a prompt goes on and it does not, that is
//!   a fault.
//! - **rLLM's gateway** (rllm-org/rllm, branch terminal-rl at a5fa9aa): traces with
//!   `prompt_token_ids` and `completion_token_ids`, or compact ones with `prompt_ids_suffix` behind
//!   `parent_trace_id`, alone or in `{"format":"compact","deltas":[]}`. A `lineage_id` is a thread.
//! - **TRL's rows** (huggingface/trl#7328 at 0ca121c):
//!   `{"input_ids","completion_mask","old_log_probs","advantage","group_id"}`, masks as in slime, or
//!   the `samples` that a `TreeRow` gathers. A row is a rollout, because rows do not say which of
//!   them are of one conversation; group and advantage are kept at its calls. What a row is packed
//!   to no longer holds what is not trained, and is refused.
//!
//! Masks are numbers or booleans. Each as one value a line, as a document, or in lists of any
//! depth. Roles are not recorded: what no policy sampled has the role user.
mod calls;
mod capture;
mod nested;
mod response;
mod sample;
mod traces;

use indexmap::IndexMap;
use pleach_tree::{Fidelity, Location, Outcome, ReadOptions};

use crate::core::draft::Draft;
use crate::core::format::Format;
use crate::core::prompts::{Prompts, Tokens};
use crate::core::shape::{Kind, Shape};
use crate::{Conversion, HarnessError, Input};
use capture::Captured;
use sample::{Sample, Samples, TokensField};
use traces::Traces;

/// How such logs are told from other files.
pub(crate) const FORMAT: Format = Format::new(
    "rl",
    "token logs of prime-rl, verifiers, slime, verl, NeMo Gym, Switchyard, rLLM or TRL",
    is_log,
    convert,
);

fn is_log(shape: &Shape) -> bool {
    let is = |at: &str| {
        let list = |key: &str| shape.kind(&format!("{at}{key}")) == Some(Kind::List);
        let has = |key: &str| shape.has(&format!("{at}{key}"));
        let captured = (list("prompt_token_ids") || list("prompt_ids_suffix"))
            && (list("generation_token_ids") || list("completion_token_ids"));
        let row = list("input_ids") && list("completion_mask") && list("old_log_probs");
        let rollout = list("trajectory")
            && (shape.has(&format!("{at}trajectory[].tokens.prompt_ids"))
                || shape.has(&format!("{at}trajectory[].trajectory_id")));
        let step = list("prompt_ids") && (list("completion_ids") || list("response_ids"));
        rollout || step || captured || row || list("tokens") && has("response_length")
    };
    let of_gym = |at: &str| {
        let has = |key: &str| shape.has(&format!("{at}{key}"));
        let traces = has("traces[].sampled_spans") && has("traces[].token_ids");
        let response = shape.kind(&format!("{at}response.output")) == Some(Kind::List)
            && (has("responses_create_params") || has("_ng_rollout_id") || has("_ng_task_index"));
        has("training_traces.traces") || traces || response
    };
    let inside = ["", "[].", "[][].", "completions[].", "[].completions[].", "deltas[]."];
    inside.into_iter().chain(["[].deltas[].", "samples[].", "[].samples[]."]).any(is)
        || ["", "[]."].into_iter().any(of_gym)
}

/// A log while it is read.
struct Log {
    draft: Draft,
    prompts: Prompts<Tokens>,
    outcomes: IndexMap<String, Outcome>,
    file: u32,
    samples: usize,
    captured: Captured,
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let member = input.main();
    let mut draft = Draft::new("rl", Fidelity::Token, options);
    let file = draft.file(&member);
    let mut log = Log {
        draft,
        prompts: Prompts::default(),
        outcomes: IndexMap::new(),
        file,
        samples: 0,
        captured: Captured::default(),
    };
    let mut report = log.draft.report.take();
    member.values(options, &mut report, |entry: Samples, at, _| log.entry(entry, at))?;
    report.diagnostics.append(&mut log.draft.report.diagnostics);
    log.draft.report = report;
    let Log { mut draft, prompts, outcomes, .. } = log;
    prompts.finish(&mut draft);
    outcomes.into_values().for_each(|outcome| draft.ledger.outcome(outcome));
    draft.finish()
}

impl Log {
    fn entry(&mut self, entry: Samples, at: &Location) {
        match entry {
            Samples::List(entries) => entries.into_iter().for_each(|entry| self.entry(entry, at)),
            Samples::Sample(sample) => self.record(*sample, at, ""),
        }
    }

    /// A record of whichever shape, or what holds several.
    fn record(&mut self, mut sample: Sample, at: &Location, key: &str) {
        let nested = sample.nested();
        if !nested.is_empty() {
            self.version(sample.version.as_ref(), 1, at, &capture::path(key, "version"));
            for (inner, sample) in nested {
                self.record(sample, at, &capture::path(key, &inner));
            }
            return;
        }
        self.samples += 1;
        let traces = std::mem::take(&mut sample.traces);
        let steps = sample.trajectory.is_some()
            || matches!(sample.tokens, Some(TokensField::List(_) | TokensField::Step(_)));
        if let Some(traces) = sample.training_traces.0.take() {
            self.traces(*traces, &sample, at, &capture::path(key, "training_traces"));
        } else if !traces.0.is_empty() {
            self.traces(Traces::of(traces, sample.schema_version.take()), &sample, at, key);
        } else if steps || sample.prompt_ids.is_some() {
            self.sample(sample, at);
        } else if sample.prompt_token_ids.is_some() || sample.prompt_ids_suffix.is_some() {
            self.captured(sample, at, key);
        } else if let Some(response) = sample.response.0.take() {
            self.response(*response, &sample, at, &capture::path(key, "response"));
        } else if sample.input_ids.is_some() {
            self.row(sample, at, key);
        } else {
            self.sample(sample, at);
        }
    }

    /// Notes how a rollout ended; a second sample of it may not say otherwise.
    fn outcome(&mut self, rollout: &str, sample: &Sample, at: &Location) {
        let Some(outcome) = sample.outcome(rollout) else { return };
        match self.outcomes.get(rollout) {
            None => {
                self.outcomes.insert(rollout.to_owned(), outcome);
            }
            Some(first) if *first == outcome => {}
            Some(first) => {
                let message = format!(
                    "rollout {rollout} has reward {} here and {} before; the first is kept",
                    outcome.reward, first.reward
                );
                self.draft.fault(at, "reward", "second-outcome", message);
            }
        }
    }
}

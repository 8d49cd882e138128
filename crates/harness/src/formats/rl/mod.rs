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
//! Masks are numbers or booleans. Each as one value a line, as a document, or in lists of any depth. Roles are not recorded: what
//! no policy sampled has the role user.
mod calls;
mod sample;

use indexmap::IndexMap;
use pleach_tree::{Fidelity, Location, Outcome, ReadOptions};

use crate::core::draft::Draft;
use crate::core::format::Format;
use crate::core::prompts::{Prompts, Tokens};
use crate::core::shape::{Kind, Shape};
use crate::{Conversion, HarnessError, Input};
use sample::{Sample, Samples};

/// How such logs are told from other files.
pub(crate) const FORMAT: Format =
    Format::new("rl", "token logs of prime-rl, verifiers, slime or verl", is_log, convert);

fn is_log(shape: &Shape) -> bool {
    let is = |at: &str| {
        let list = |key: &str| shape.kind(&format!("{at}{key}")) == Some(Kind::List);
        let rollout = list("trajectory")
            && (shape.has(&format!("{at}trajectory[].tokens.prompt_ids"))
                || shape.has(&format!("{at}trajectory[].trajectory_id")));
        let step = list("prompt_ids") && (list("completion_ids") || list("response_ids"));
        rollout || step || list("tokens") && shape.has(&format!("{at}response_length"))
    };
    ["", "[].", "[][]."].into_iter().any(is)
}

/// A log while it is read.
struct Log {
    draft: Draft,
    prompts: Prompts<Tokens>,
    outcomes: IndexMap<String, Outcome>,
    file: u32,
    samples: usize,
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let member = input.main();
    let mut draft = Draft::new("rl", Fidelity::Token, options);
    let file = draft.file(&member);
    let mut log =
        Log { draft, prompts: Prompts::default(), outcomes: IndexMap::new(), file, samples: 0 };
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
            Samples::Sample(sample) => {
                self.samples += 1;
                self.sample(*sample, at);
            }
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

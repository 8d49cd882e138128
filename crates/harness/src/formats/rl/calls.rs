//! Calls out of samples.
use std::ops::Range;
use std::sync::Arc;

use pleach_tree::{Extra, Location, LossRun, Origin, Role, Segment, SegmentId};

use super::Log;
use super::nested::Weight;
use super::sample::{Ids, Sample, TokensField};
use crate::core::prompts::{Call, Lineage, Said};
use crate::core::script::Spot;

/// The ids of a whole sequence, and which of them were sampled.
pub(super) struct Sequence {
    pub(super) ids: Vec<u32>,
    /// Where the prompt ends.
    pub(super) prompt: usize,
    /// Weights of what stands behind the prompt.
    pub(super) mask: Option<Vec<f64>>,
    pub(super) logprobs: Option<Vec<Option<f64>>>,
    /// Whether a weight of 0 says that something else than the policy wrote a token, or only that
    /// it carries no loss.
    pub(super) turns: bool,
}

/// Which rollout and thread a sequence is of, and what is known of its call.
pub(super) struct Owner<'p> {
    pub(super) rollout: &'p str,
    pub(super) thread: Option<String>,
    pub(super) policy: Option<Arc<str>>,
    pub(super) trained: bool,
    /// The log's own name of the call.
    pub(super) call: Option<String>,
    pub(super) lineage: Lineage,
    pub(super) extra: Extra,
}

impl Log {
    pub(super) fn sample(&mut self, mut sample: Sample, at: &Location) {
        let named = sample.rollout();
        let policy: Option<Arc<str>> = sample.policy().map(Into::into);
        let trained = !sample.is_masked();
        if let Some(steps) = sample.trajectory.take() {
            let rollout = named.unwrap_or_else(|| format!("r{}", self.samples - 1));
            for (index, step) in steps.into_iter().enumerate() {
                let key = format!("trajectory[{index}]");
                let Some(TokensField::Step(ids)) = step.tokens else {
                    let message = "the step has no token lists; it is left out";
                    self.draft.fault(at, &format!("{key}.tokens"), "no-tokens", message);
                    continue;
                };
                let thread =
                    Some(step.trajectory_id.map_or_else(|| "main".into(), |id| id.to_string()));
                let place = Owner::of(&rollout, thread, policy.clone(), trained);
                match sequence(ids) {
                    Some(sequence) => self.calls(sequence, &place, at, &key),
                    None => self.no_ids(at, &key),
                }
            }
            self.outcome(&rollout, &sample, at);
            return;
        }
        // Steps that name no rollout are those of one, found by what they hold; a sample with its
        // reward is a rollout by itself.
        let named = named.or_else(|| sample.is_whole().then(|| format!("r{}", self.samples - 1)));
        let thread = named.is_some().then(|| "main".to_owned());
        let rollout = named.unwrap_or_else(|| "r0".into());
        let place = Owner::of(&rollout, thread, policy, trained);
        match flat(&mut sample) {
            Some(sequence) => self.calls(sequence, &place, at, ""),
            None => self.no_ids(at, ""),
        }
        self.outcome(&rollout, &sample, at);
    }

    pub(super) fn no_ids(&mut self, at: &Location, key: &str) {
        self.draft.fault(
            at,
            key,
            "no-tokens",
            "the sample has no prompt and completion ids, or fewer than it says; it is left out",
        );
    }

    /// One call for each run that was sampled.
    pub(super) fn calls(
        &mut self,
        mut sequence: Sequence,
        place: &Owner<'_>,
        at: &Location,
        key: &str,
    ) {
        self.check(&mut sequence, at, key);
        let spot = Spot { file: self.file, at: at.clone() };
        for range in sequence.sampled() {
            let (segment, units) =
                (sequence.segment(&range, place.trained), sequence.ids[range.clone()].to_vec());
            let call = Call {
                rollout: place.rollout.to_owned(),
                thread: place.thread.clone(),
                prompt: sequence.ids[..range.start].to_vec(),
                said: vec![Said { segment, units }],
                model: place.policy.clone(),
                unrecorded: Vec::new(),
                spot: spot.clone(),
                key: match &place.call {
                    Some(call) => call.clone(),
                    None if key.is_empty() => place.rollout.to_owned(),
                    None => key.to_owned(),
                },
                extra: place.extra.clone(),
                lineage: place.lineage.clone(),
            };
            self.prompts.push(&mut self.draft, call);
        }
    }

    /// Drops lists that do not fit, each with a fault.
    fn check(&mut self, sequence: &mut Sequence, at: &Location, key: &str) {
        let len = sequence.ids.len() - sequence.prompt;
        let path =
            |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
        if let Some(mask) = sequence
            .mask
            .as_ref()
            .filter(|mask| mask.len() != len || mask.iter().any(|weight| !weight.is_finite()))
        {
            let wrong = match mask.iter().position(|weight| !weight.is_finite()) {
                Some(index) if mask.len() == len => format!("weight of id {index} is no number"),
                _ => format!("mask has {} entries for {len} ids", mask.len()),
            };
            let message = format!("the {wrong}; nothing of the sample carries loss");
            self.draft.fault(at, &path("mask"), "mask-length", message);
            (sequence.mask, sequence.turns) = (Some(vec![0.0; len]), false);
        }
        let Some(logprobs) = &sequence.logprobs else { return };
        let kept = |(index, value): (usize, &Option<f64>)| {
            let sampled = sequence
                .mask
                .as_ref()
                .is_none_or(|mask| mask.get(index).is_some_and(|weight| *weight != 0.0));
            !sampled || value.is_some_and(|value| value.is_finite() && value <= 0.0)
        };
        let message = if logprobs.len() != len {
            format!(
                "there are {} log-probabilities for {len} ids; they are dropped",
                logprobs.len()
            )
        } else if let Some((index, value)) = logprobs.iter().enumerate().find(|&entry| !kept(entry))
        {
            let value = value.map_or("null".into(), |value| value.to_string());
            format!(
                "log-probability {value} of id {index} is above 0 or no number; they are dropped"
            )
        } else {
            return;
        };
        self.draft.fault(at, &path("logprobs"), "logprobs", message);
        sequence.logprobs = None;
    }
}

impl<'p> Owner<'p> {
    fn of(
        rollout: &'p str,
        thread: Option<String>,
        policy: Option<Arc<str>>,
        trained: bool,
    ) -> Self {
        let (call, lineage, extra) = (None, Lineage::default(), Extra::new());
        Self { rollout, thread, policy, trained, call, lineage, extra }
    }
}

impl Sequence {
    /// The runs of ids that the policy sampled.
    fn sampled(&self) -> Vec<Range<usize>> {
        let end = self.ids.len();
        let Some(mask) = self.mask.as_ref().filter(|_| self.turns) else {
            return (self.prompt < end).then_some(self.prompt..end).into_iter().collect();
        };
        let mut runs: Vec<Range<usize>> = Vec::new();
        for at in (self.prompt..end).filter(|at| mask[at - self.prompt] != 0.0) {
            match runs.last_mut() {
                Some(run) if run.end == at => run.end += 1,
                _ => runs.push(at..at + 1),
            }
        }
        runs
    }

    fn segment(&self, range: &Range<usize>, trained: bool) -> Segment {
        let mut segment = Segment::new(SegmentId(0), Role::Assistant, Origin::Policy)
            .with_tokens(self.ids[range.clone()].to_vec());
        let own = range.start - self.prompt..range.end - self.prompt;
        let some = |logprobs: &Vec<Option<f64>>| {
            logprobs[own.clone()].iter().copied().collect::<Option<Vec<f64>>>()
        };
        segment.logprobs = self.logprobs.as_ref().and_then(some);
        let weights = self.mask.as_ref().map(|mask| &mask[own.clone()]);
        let mut runs: Vec<LossRun> = Vec::new();
        for at in 0..own.len() {
            let weight = if trained { weights.map_or(1.0, |weights| weights[at]) } else { 0.0 };
            let start = u32::try_from(at).unwrap_or(u32::MAX);
            match runs.last_mut() {
                Some(run) if run.weight == weight => run.end += 1,
                _ => runs.push(LossRun { start, end: start + 1, weight }),
            }
        }
        segment.loss = Some(runs).filter(|runs| runs.iter().any(|run| run.weight != 1.0));
        segment
    }
}

/// Weights, of which those that are no number are none.
pub(super) fn weights(mask: Vec<Option<Weight>>) -> Vec<f64> {
    mask.into_iter().map(|weight| weight.map_or(f64::NAN, |Weight(weight)| weight)).collect()
}

fn sequence(ids: Ids) -> Option<Sequence> {
    let (mut all, completion) = (ids.prompt_ids?, ids.completion_ids?);
    let prompt = all.len();
    all.extend(completion);
    Some(Sequence {
        ids: all,
        prompt,
        mask: ids.completion_mask.map(weights),
        logprobs: ids.completion_logprobs,
        turns: false,
    })
}

/// The sequence of a sample that is no rollout of steps.
fn flat(sample: &mut Sample) -> Option<Sequence> {
    if let Some(TokensField::List(ids)) = sample.tokens.take() {
        let prompt = ids.len().checked_sub(sample.response_length?)?;
        return Some(Sequence {
            ids,
            prompt,
            mask: sample.loss_mask.take().map(weights),
            logprobs: sample.rollout_log_probs.take(),
            turns: true,
        });
    }
    let turns = sample.completion_ids.is_none();
    sequence(Ids {
        prompt_ids: sample.prompt_ids.take(),
        completion_ids: sample.completion_ids.take().or(sample.response_ids.take()),
        completion_mask: sample.completion_mask.take().or(sample.response_mask.take()),
        completion_logprobs: sample.completion_logprobs.take().or(sample.response_logprobs.take()),
    })
    .map(|sequence| Sequence { turns, ..sequence })
}

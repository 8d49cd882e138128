//! Steps whose prompts are recorded id for id.
use std::sync::Arc;

use pleach_tree::{Extra, Origin, Role, Segment, SegmentId};

use super::import::Part;
use super::model::TrajectoryStep;
use crate::core::draft::Draft;
use crate::core::prompts::{Call, Lineage, Prompts, Said, Tokens};
use crate::{Conversion, HarnessError};

pub(super) fn convert(mut draft: Draft, parts: Vec<Part>) -> Result<Conversion, HarnessError> {
    let mut prompts: Prompts<Tokens> = Prompts::default();
    let mut thread = String::from("main");
    for part in parts {
        thread = part.thread.unwrap_or(thread);
        let model = part.trajectory.agent.model_name;
        let rollout = part.rollout.unwrap_or_else(|| "r0".into());
        for (index, step) in
            part.trajectory.steps.iter().enumerate().filter(|(_, step)| step.is_call())
        {
            let Some((prompt, completion)) = step.ids() else { continue };
            let key = format!("{}steps[{index}]", part.key);
            let segment = segment(&mut draft, step, completion, &part.spot.at, &key);
            let model: Option<Arc<str>> =
                step.model_name.as_deref().or(model.as_deref()).map(Into::into);
            let call = Call {
                rollout: rollout.clone(),
                thread: Some(thread.clone()),
                prompt: prompt.to_vec(),
                said: vec![Said { segment, units: completion.to_vec() }],
                model,
                unrecorded: Vec::new(),
                spot: part.spot.clone(),
                key,
                extra: Extra::new(),
                lineage: Lineage::default(),
            };
            prompts.push(&mut draft, call);
        }
    }
    prompts.finish(&mut draft);
    draft.finish()
}

fn segment(
    draft: &mut Draft,
    step: &TrajectoryStep,
    completion: &[u32],
    at: &pleach_tree::Location,
    key: &str,
) -> Segment {
    let mut segment = Segment::new(SegmentId(0), Role::Assistant, Origin::Policy)
        .with_tokens(completion.to_vec());
    let Some(logprobs) = step.metrics.as_ref().and_then(|metrics| metrics.logprobs.as_ref()) else {
        return segment;
    };
    let sound = |value: &Option<f64>| value.filter(|value| value.is_finite() && *value <= 0.0);
    let sound: Option<Vec<f64>> = logprobs.iter().map(sound).collect();
    segment.logprobs = sound.filter(|logprobs| logprobs.len() == completion.len());
    if segment.logprobs.is_none() {
        let message = format!(
            "the log-probabilities are not {} numbers of at most 0; they are dropped",
            completion.len()
        );
        draft.fault(at, &format!("{key}.metrics.logprobs"), "logprobs", message);
    }
    segment
}

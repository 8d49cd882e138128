//! Checks of one record by itself.
use crate::{Fault, Location, LossRun, Report, Segment};

/// Checks a segment's token lists and takes out what lenient reading drops.
pub(super) fn segment(
    vocab: Option<u32>,
    segment: &mut Segment,
    at: &Location,
    report: &mut Report,
) {
    if segment.tokens.is_none() && segment.text.is_none() {
        report.fault(at.clone(), Fault::NoContent { segment: segment.id });
    }
    if let (Some(vocab), Some(tokens)) = (vocab, &segment.tokens)
        && let Some((index, &token)) = tokens.iter().enumerate().find(|(_, token)| **token >= vocab)
    {
        let fault = Fault::OutsideVocabulary { segment: segment.id, token, vocab };
        report.fault(at.key(format!("tokens[{index}]")), fault);
    }
    if let Some((key, fault)) = logprobs(segment) {
        report.fault(at.key(key), fault);
        segment.logprobs = None;
    }
    if let Some(fault) = segment.loss.as_ref().and_then(|runs| loss(segment, runs)) {
        report.fault(at.key("loss"), fault);
        segment.loss = None;
    }
}

fn logprobs(segment: &Segment) -> Option<(String, Fault)> {
    let logprobs = segment.logprobs.as_ref()?;
    let tokens = segment.tokens.as_ref().map_or(0, Vec::len);
    if logprobs.len() != tokens {
        return Some((
            "logprobs".into(),
            Fault::LengthMismatch { what: "logprobs", len: logprobs.len(), tokens },
        ));
    }
    let bad = logprobs.iter().position(|value| !value.is_finite() || *value > 0.0)?;
    Some((format!("logprobs[{bad}]"), Fault::Logprob { at: bad, value: logprobs[bad] }))
}

fn loss(segment: &Segment, runs: &[LossRun]) -> Option<Fault> {
    let mut next = 0;
    for run in runs {
        if run.start != next || run.end <= run.start {
            return Some(Fault::LossRuns { segment: segment.id, at: next });
        }
        if !run.weight.is_finite() {
            return Some(Fault::LossWeight { segment: segment.id, weight: run.weight });
        }
        next = run.end;
    }
    let tokens = segment.tokens.as_ref().map_or(0, Vec::len);
    (next as usize != tokens).then_some(Fault::LengthMismatch {
        what: "loss runs",
        len: next as usize,
        tokens,
    })
}

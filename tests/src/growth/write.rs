//! Segments of all kinds from the few numbers of a text.
use pleach_tree::{By, ByKind, Evidence, ForkReason, Trigger};
use pleach_tree::{
    Extra, GenerationId, LossRun, Origin, Part, Place, ReplacementKind, Role, Segment, SegmentId,
    Source,
};

use super::step::Text;

const WEIGHTS: [f64; 6] = [1.0, 0.0, 0.5, 0.1, 2.0, -0.25];

/// Unknown fields, as a newer version might write them.
pub(super) fn extra(full: bool) -> Extra {
    let mut extra = Extra::new();
    if full {
        let nested: Extra =
            [("b".to_string(), 1.into()), ("a".to_string(), Vec::<u32>::new().into())]
                .into_iter()
                .collect();
        extra.insert("x_later".into(), nested.into());
        extra.insert("x_also".into(), "\u{2028}\u{1f3a1}".into());
    }
    extra
}

/// The segment of a text; `sampled` where the policy wrote it in a generation.
pub(super) fn segment(id: u32, text: &Text, sampled: bool) -> Segment {
    let role = [Role::User, Role::System, Role::Tool, Role::Assistant][usize::from(text.role % 4)];
    let others = [Origin::Environment, Origin::Harness, Origin::Human, Origin::ExternalModel];
    let origin = match text.origin {
        5.. if sampled => Origin::Policy,
        0..=3 if sampled => Origin::Policy,
        4 if sampled => Origin::ExternalModel,
        origin => others[usize::from(origin % 4)],
    };
    let mut segment =
        Segment::new(SegmentId(id), if sampled { Role::Assistant } else { role }, origin);
    let len = text.tokens.len();
    segment.loss = runs(&text.weights, len as u32, sampled && origin == Origin::Policy);
    if text.full {
        segment.text = Some("a \"text\"\n".into());
        segment.logprobs = Some((0..len).map(|at| -0.37 * at as f64).collect());
        segment.source = Some(Source { file: 0, line: 3, key: format!("key-{id}") });
        segment.part = sampled.then_some(Part::Content);
        segment.extra = extra(true);
    }
    segment.with_tokens(text.tokens.clone())
}

fn runs(weights: &[(u8, u8)], len: u32, sampled: bool) -> Option<Vec<LossRun>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for &(count, weight) in weights {
        let end = (start + u32::from(count.max(1))).min(len);
        if start < end {
            let weight = if sampled { WEIGHTS[usize::from(weight) % WEIGHTS.len()] } else { 0.0 };
            runs.push(LossRun { start, end, weight });
        }
        start = end;
    }
    if start < len && !runs.is_empty() {
        runs.push(LossRun { start, end: len, weight: if sampled { 1.0 } else { 0.0 } });
    }
    (!weights.is_empty() && (len == 0 || !runs.is_empty())).then_some(runs)
}

/// A kind of replacement; `none` only where it has no segments.
pub(super) fn kind(number: u8, segments: &[SegmentId]) -> ReplacementKind {
    use ReplacementKind::{Index, None, Placeholder, Summary, Truncation};
    let kinds = [Placeholder, Summary, Truncation, Index, None];
    kinds[usize::from(number) % if segments.is_empty() { 5 } else { 4 }]
}

/// A place; `pieces` is what is left after removal.
pub(super) fn place(number: u8, pieces: usize) -> Place {
    match number {
        0..=2 => Place::InPlace,
        3 => Place::BeforeFirst,
        4 => Place::Head,
        5 => Place::AfterKept,
        other => Place::Index((usize::from(other) * 5 % (pieces + 1)) as u32),
    }
}

pub(super) fn by(number: u8, last: Option<GenerationId>) -> Option<By> {
    let kinds = [ByKind::ExternalModel, ByKind::Provider, ByKind::Human, ByKind::Unknown];
    Some(match (number, last) {
        (0, _) => return None,
        (1, Some(generation)) => By::policy(generation),
        (2, _) => By::rule("chat_template"),
        (3, _) => By::rule("clear_tool_results"),
        (other, _) => By::new(kinds[usize::from(other % 4)]),
    })
}

pub(super) fn trigger(number: u8) -> Option<Trigger> {
    [None, Some(Trigger::Auto), Some(Trigger::Manual), Some(Trigger::Policy)]
        [usize::from(number % 4)]
}

pub(super) fn evidence(number: u8) -> Option<Evidence> {
    [None, Some(Evidence::Recorded), Some(Evidence::Inferred)][usize::from(number % 3)]
}

pub(super) fn reason(number: u8) -> ForkReason {
    use ForkReason::{Resume, Retry, Rewind, Subagent, Summarizer};
    [Rewind, Retry, Subagent, Summarizer, Resume][usize::from(number % 5)]
}

//! Contract: clipped records are sound records of the same tree. Every context, operation and
//! generation stays, every eviction still removes something of what it removed, and what stays of a
//! segment is a part of it with its own log-probabilities and weights.
use pleach_tree::{
    Append, BranchTree, Context, ContextId, Evict, Evicted, Extra, Fidelity, Generation,
    GenerationId, Header, LossRun, Origin, Place, ReadOptions, Record, Replacement,
    ReplacementKind, Role, Segment, SegmentId, Span, clip,
};
use proptest::prelude::*;

fn segment(id: u32, role: Role, origin: Origin, len: u32) -> Segment {
    Segment::new(SegmentId(id), role, origin).with_tokens((id * 1000..id * 1000 + len).collect())
}

fn append(context: u32, from: Option<u32>, segments: &[u32]) -> Record {
    let segments = segments.iter().copied().map(SegmentId).collect();
    Record::Append(Append {
        context: ContextId(context),
        from: from.map(ContextId),
        segments,
        extra: Extra::new(),
    })
}

fn evict(context: u32, from: u32, evicted: Vec<Evicted>, replacement: Option<u32>) -> Record {
    let replacement = replacement.map(|id| {
        Replacement::new(ReplacementKind::Truncation, vec![SegmentId(id)], Place::BeforeFirst)
    });
    let (context, from, extra) = (ContextId(context), ContextId(from), Extra::new());
    Record::Evict(Box::new(Evict {
        context,
        from,
        evicted,
        replacement,
        by: None,
        trigger: None,
        evidence: None,
        extra,
    }))
}

fn tree(records: Vec<Record>) -> BranchTree {
    BranchTree::from_records(records, "clip", ReadOptions::STRICT)
        .map_err(|error| error.to_string())
        .unwrap()
        .0
}

/// A rollout whose tool result leaves in stretches, the last of them by name.
fn rollout(len: u32, borders: &[u32]) -> Vec<Record> {
    let mut sampled = segment(2, Role::Assistant, Origin::Policy, len);
    sampled.logprobs = Some((0..len).map(|at| -f64::from(at)).collect());
    let third = len / 3;
    sampled.loss = Some(if third > 0 {
        vec![(0, third, 0.5).into(), (third, len, 2.0).into()]
    } else {
        vec![(0, len, 1.0).into()]
    });
    let mut records = vec![
        Record::Header(Header::new("test", Fidelity::Token)),
        Record::Segment(segment(0, Role::User, Origin::Human, len)),
        Record::Segment(segment(1, Role::Tool, Origin::Environment, len)),
        append(0, None, &[0, 1]),
        Record::Segment(sampled),
        Record::Generation(Generation::new(GenerationId(0), ContextId(0), vec![SegmentId(2)])),
        append(1, Some(0), &[2]),
        Record::Segment(segment(3, Role::Tool, Origin::Harness, len)),
    ];
    let mut context = 1;
    for pair in borders.windows(2).filter(|pair| pair[0] < pair[1]) {
        let replacement = (context == 1).then_some(3);
        records.push(evict(
            context + 1,
            context,
            vec![Evicted::range(SegmentId(1), pair[0], pair[1])],
            replacement,
        ));
        context += 1;
    }
    let left = borders.first().is_some_and(|first| *first > 0)
        || borders.last().is_none_or(|last| *last < len);
    if left {
        records.push(evict(context + 1, context, vec![Evicted::whole(SegmentId(1))], None));
        context += 1;
    }
    records.push(Record::Segment(segment(4, Role::Assistant, Origin::Policy, 1)));
    records.push(Record::Generation(Generation::new(
        GenerationId(1),
        ContextId(context),
        vec![SegmentId(4)],
    )));
    records
}

fn removed(tree: &BranchTree) -> Vec<Vec<SegmentId>> {
    let of = |spans: &[Span]| spans.iter().map(|span| span.segment).collect();
    tree.contexts().filter_map(Context::id).map(|id| of(tree.removed(id))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_clipped_tree_has_the_same_shape(
        len in 1..60_u32,
        keep in 0..20_u32,
        borders in prop::collection::btree_set(0..60_u32, 0..6),
    ) {
        let borders: Vec<u32> = borders.into_iter().filter(|border| *border <= len).collect();
        let records = rollout(len, &borders);
        let (old, new) = (tree(records.clone()), tree(clip(&records, keep)));
        prop_assert_eq!(old.events(), new.events());
        prop_assert_eq!(removed(&old), removed(&new));
        for (before, after) in old.contexts().zip(new.contexts()) {
            prop_assert_eq!(before.tokens() == 0, after.tokens() == 0);
            let [left, leaves] =
                [(&old, before), (&new, after)].map(|(tree, c)| tree.removed(c.id().unwrap()));
            let shorter = |(a, b): (&Span, &Span)| b.len() <= a.len() && a.is_empty() == b.is_empty();
            prop_assert!(left.iter().zip(leaves).all(shorter));
        }
        let extra = 2 * borders.len() + 1;
        for record in new.records() {
            let Record::Segment(segment) = record else { continue };
            let tokens = segment.tokens.as_ref().unwrap();
            prop_assert!(tokens.len() <= keep.max(1) as usize + extra);
            prop_assert!(tokens.is_sorted());
            let (old, offset) = (old.segment(segment.id).unwrap(), segment.id.0 * 1000);
            prop_assert_eq!(tokens.first(), old.tokens.as_ref().unwrap().first());
            for (at, token) in (0..).zip(tokens) {
                prop_assert_eq!(segment.declared_weight(at), old.declared_weight(token - offset));
                let logprob = segment.logprobs.as_ref().map(|logprobs| logprobs[at as usize]);
                prop_assert_eq!(logprob, old.logprobs.as_ref().map(|logprobs| logprobs[(token - offset) as usize]));
            }
        }
    }
}

#[test]
fn the_ends_of_a_segment_stay_and_its_lists_are_cut_alike() {
    let mut sampled = segment(0, Role::Assistant, Origin::Policy, 10).with_text("of ten tokens");
    sampled.logprobs = Some((0..10).map(|at| -f64::from(at)).collect());
    sampled.loss =
        Some(vec![(0, 1, 0.0).into(), (1, 4, 1.0).into(), (4, 6, 3.0).into(), (6, 10, 0.5).into()]);
    let Record::Segment(segment) = clip(&[Record::Segment(sampled)], 5).remove(0) else {
        panic!("it is a segment")
    };
    assert_eq!(segment.tokens, Some(vec![0, 1, 2, 8, 9]));
    assert_eq!(segment.logprobs, Some(vec![0.0, -1.0, -2.0, -8.0, -9.0]));
    let runs: Vec<LossRun> = vec![(0, 1, 0.0).into(), (1, 3, 1.0).into(), (3, 5, 0.5).into()];
    assert_eq!((segment.loss, segment.text), (Some(runs), None));
}

#[test]
fn a_range_in_the_middle_keeps_a_token_and_its_eviction() {
    let clipped = clip(&rollout(50, &[20, 24, 30]), 4);
    let ranges: Vec<_> = clipped
        .iter()
        .filter_map(|record| match record {
            Record::Evict(evict) => Some(evict.evicted[0].tokens),
            _ => None,
        })
        .collect();
    assert_eq!(ranges, [Some((2, 3)), Some((3, 4)), None]);
    let tree = tree(clipped);
    let first: Vec<u32> = tree.segment(SegmentId(1)).unwrap().tokens.clone().unwrap();
    assert_eq!(first, [1000, 1001, 1020, 1024, 1048, 1049]);
}

#[test]
fn what_is_short_stays_as_it_is() {
    let records = rollout(6, &[2, 4]);
    assert_eq!(clip(&records, 6), records);
    let text = Record::Segment(
        Segment::new(SegmentId(9), Role::User, Origin::Human)
            .with_text("a long text without tokens"),
    );
    assert_eq!(clip(std::slice::from_ref(&text), 2), [text]);
}

#[test]
fn recorded_prompts_are_dropped() {
    let mut generation = Generation::new(GenerationId(0), ContextId(0), Vec::new());
    generation.prompt_tokens = Some(vec![1, 2, 3]);
    let Record::Generation(generation) = clip(&[Record::Generation(generation)], 2).remove(0)
    else {
        panic!("it is one")
    };
    assert_eq!(generation.prompt_tokens, None);
}

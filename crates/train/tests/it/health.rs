//! Contract: each health figure is the count that its name says, by hand on a small tree, and is
//! absent where its part was not measured.

use crate::fixtures::{
    table::Table,
    trees::{GROUP, GROUP_CUT, LONGER, longer_cut, read},
};
use pleach_layout::{LayoutKind, Layouts, TermId};
use pleach_train::{
    BatchTerms, ObjectiveError, TrainError,
    advantage::Timeline,
    diagnostics::{
        ClipDistance, Count, GapSummary, Health, HealthFigure, RolloutHealth, clip_fractions,
    },
    objective::{SdccCoverage, certify},
};
use std::collections::BTreeMap;

fn rollouts(records: &str, kind: LayoutKind, computed: Option<u64>) -> RolloutHealth {
    let tree = read(records);
    RolloutHealth::of(&Layouts::new(&tree).unwrap(), kind, computed).unwrap()
}

#[test]
fn the_figures_of_a_small_group_are_those_counted_by_hand() {
    let found = rollouts(GROUP, LayoutKind::Packed, Some(2 * 63));
    assert_eq!(found.coverage, 1.0);
    assert_eq!(
        found.segments,
        Count { mean: 1.5, max: 2, histogram: BTreeMap::from([(1, 1), (2, 1)]) }
    );
    assert_eq!(
        found.evictions,
        Count { mean: 0.5, max: 1, histogram: BTreeMap::from([(0, 1), (1, 1)]) }
    );
    assert_eq!(found.evicted_fraction, Some(1.0 / 6.0));
    assert_eq!(
        found.effective_length,
        Count { mean: 6.5, max: 8, histogram: BTreeMap::from([(5, 1), (8, 1)]) }
    );
    assert_eq!(found.token_reuse, Some(18.0 / 13.0));
    let pairs = [1, 2, 3, 4, 5, 6, 5, 2, 3, 4, 5, 6, 7].iter().sum::<u64>();
    assert_eq!(found.pair_overhead, Some(126.0 / pairs as f64));
    assert!(rollouts(GROUP, LayoutKind::Packed, None).pair_overhead.is_none());
}

#[test]
fn records_that_say_the_same_in_more_contexts_and_segments_have_the_same_figures() {
    assert_eq!(
        rollouts(GROUP, LayoutKind::Packed, None),
        rollouts(GROUP_CUT, LayoutKind::Packed, None)
    );
}

#[test]
fn an_eviction_that_puts_the_same_tokens_back_changes_only_what_counts_evictions_and_what_went_through()
 {
    let (whole, cut) = (
        rollouts(LONGER, LayoutKind::Packed, None),
        rollouts(&longer_cut(), LayoutKind::Packed, None),
    );
    assert_eq!(
        whole.segments,
        Count { mean: 1.5, max: 2, histogram: BTreeMap::from([(1, 1), (2, 1)]) }
    );
    assert_eq!(cut.segments, Count { mean: 2.0, max: 2, histogram: BTreeMap::from([(2, 2)]) });
    assert_eq!((whole.evictions.mean, cut.evictions.mean), (0.5, 1.0));
    assert_eq!(
        (whole.effective_length.mean, cut.effective_length.mean),
        (8.0, 9.0),
        "two tokens of one rollout are there again"
    );
    assert_eq!((whole.coverage, whole.token_reuse), (cut.coverage, cut.token_reuse));
}

#[test]
fn parts_that_were_never_filled_count_nothing() {
    assert_eq!(Timeline::default().segments(), 0);
    assert_eq!(SdccCoverage { sampled: 1, supervised: 2, diverging: 0 }.untrained(), 0);
}

#[test]
fn a_tree_in_which_nothing_happened_has_figures_of_0() {
    let header =
        "{\"t\":\"header\",\"version\":1,\"harness\":\"example\",\"fidelity\":\"token\"}\n";
    let found = rollouts(header, LayoutKind::Packed, Some(1));
    assert_eq!((found.segments.mean, found.evicted_fraction, found.token_reuse), (0.0, None, None));
    assert_eq!((found.coverage, found.pair_overhead), (1.0, None));
}

#[test]
fn clipping_is_counted_by_the_distance_from_the_last_eviction() {
    let tree = read(GROUP);
    let eras = Layouts::new(&tree).unwrap().eras();
    let terms = BatchTerms {
        sources: vec![0; 7],
        targets: vec![0; 7],
        weights: vec![1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0],
        ids: [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1)]
            .map(|(generation, offset)| TermId::new(generation, offset))
            .to_vec(),
    };
    let found = clip_fractions(&terms, &[0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0], &eras).unwrap();
    let group = |from: Option<u32>, to, terms, clipped| ClipDistance { from, to, terms, clipped };
    assert_eq!(
        found,
        [group(None, None, 4, 1), group(Some(0), Some(1), 1, 1), group(Some(1), Some(4), 1, 0)]
    );
    let short = clip_fractions(&terms, &[0.0; 6], &eras).unwrap_err();
    let expected = ObjectiveError::SignalLength { what: "clipped terms", terms: 7, found: 6 };
    assert_eq!(short, TrainError::Objective(expected));
    assert_eq!(
        (found[0].fraction(), found[1].fraction(), group(None, None, 0, 0).fraction()),
        (0.25, 1.0, 0.0)
    );
}

#[test]
fn a_figure_is_there_exactly_where_its_part_was_measured() {
    let empty = Health::default();
    assert!(HealthFigure::ALL.iter().all(|&figure| empty.figure(figure).is_none()));
    let tree = read(GROUP);
    let layouts = Layouts::new(&tree).unwrap();
    let model = Table::seeded(1);
    let certificate = certify(&model, &model, &layouts).unwrap();
    let health = Health {
        rollouts: Some(rollouts(GROUP, LayoutKind::Compressed, Some(100))),
        gap: Some(GapSummary { terms: 7, mean: 0.25, max: 1.0, signed_mean: -0.1 }),
        certificate: Some(certificate.clone()),
        clipping: vec![ClipDistance { from: None, to: None, terms: 8, clipped: 2 }],
    };
    assert!(
        HealthFigure::ALL.iter().all(|&figure| health.figure(figure).is_some_and(f64::is_finite))
    );
    assert_eq!(health.figure(HealthFigure::ClipFraction), Some(0.25));
    assert_eq!(health.figure(HealthFigure::LogProbabilityGap), Some(0.25));
    assert_eq!(health.figure(HealthFigure::ResidualKl), Some(certificate.all.kl_max));
    let bound = health.figure(HealthFigure::TotalVariationBound).unwrap();
    assert!(health.figure(HealthFigure::TotalVariation).unwrap() <= bound);
}

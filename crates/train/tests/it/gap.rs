//! Contract: gaps are layout minus exact, summed up over all terms, by eviction in order of
//! appearance and by ranges of distance that grow by four; summaries of parts merge into that of
//! the whole; a NaN is never averaged away.
use pleach_layout::Era;
use pleach_train::{
    diagnostics::{DistanceGap, EvictionGap, Gap, GapSummary},
    evaluation::TermLogp,
};

fn era(offset: u32, eviction: Option<u32>, since: Option<u32>) -> Era {
    Era { generation: 0, offset, eviction, since, next: None, until: None }
}

/// The gap of terms of generation 0 that the layout raises by `gaps`.
fn gap(gaps: &[f64], eras: &[Era]) -> Gap {
    let logp = |values: &[f64]| -> Vec<TermLogp> {
        values
            .iter()
            .zip(0..)
            .map(|(&logp, offset)| TermLogp { generation: 0, offset, logp })
            .collect()
    };
    let layout: Vec<f64> = gaps.iter().map(|gap| gap - 2.0).collect();
    Gap::new(&logp(&vec![-2.0; gaps.len()]), &logp(&layout), eras)
}

fn summary(terms: usize, mean: f64, max: f64, signed_mean: f64) -> GapSummary {
    GapSummary { terms, mean, max, signed_mean }
}

#[test]
fn the_mean_takes_sizes_and_the_signed_mean_takes_signs() {
    let eras: Vec<Era> = (0..4).map(|offset| era(offset, None, None)).collect();
    assert_eq!(gap(&[1.0, -1.0, 0.5, -2.5], &eras).all, summary(4, 1.25, 2.5, -0.5));
    assert_eq!(gap(&[], &[]).all, GapSummary::default());
}

#[test]
fn evictions_come_in_order_of_appearance_with_what_has_none() {
    let on = |eviction| move |offset| era(offset, eviction, Some(0));
    let mut eras = vec![on(Some(7))(0), on(None)(1), on(Some(3))(2), on(Some(7))(3)];
    eras[1].next = Some(9);
    eras[2].next = Some(9);
    let found = gap(&[0.5, 1.0, -4.0, -1.5], &eras);
    let group = |eviction, gap| EvictionGap { eviction, gap };
    let since = [
        group(Some(7), summary(2, 1.0, 1.5, -0.5)),
        group(None, summary(1, 1.0, 1.0, 1.0)),
        group(Some(3), summary(1, 4.0, 4.0, -4.0)),
    ];
    assert_eq!(found.since_eviction, since);
    let until =
        [group(None, summary(2, 1.0, 1.5, -0.5)), group(Some(9), summary(2, 2.5, 4.0, -1.5))];
    assert_eq!(found.until_eviction, until);
}

#[test]
fn distances_fall_into_0_then_1_to_3_then_4_to_15_and_so_on() {
    let distances = [64, 0, 1, 3, 4, 15, 16, 63, u32::MAX];
    let mut eras: Vec<Era> = distances
        .iter()
        .zip(0..)
        .map(|(&distance, offset)| era(offset, Some(1), Some(distance)))
        .collect();
    eras.push(era(9, None, None));
    let found = gap(&[8.0, 0.25, 1.0, -2.0, 3.0, 5.0, -4.0, 2.0, 0.5, 99.0], &eras);
    let range = |from, to, gap| DistanceGap { from, to, gap };
    let expected = [
        range(0, 1, summary(1, 0.25, 0.25, 0.25)),
        range(1, 4, summary(2, 1.5, 2.0, -0.5)),
        range(4, 16, summary(2, 4.0, 5.0, 4.0)),
        range(16, 64, summary(2, 3.0, 4.0, -1.0)),
        range(64, 256, summary(1, 8.0, 8.0, 8.0)),
        range(1 << 30, u32::MAX, summary(1, 0.5, 0.5, 0.5)),
    ];
    assert_eq!(found.since_distance, expected);
    assert_eq!(found.until_distance, []);
    eras.iter_mut().for_each(|era| (era.since, era.until) = (None, era.since));
    assert_eq!(
        gap(&[8.0, 0.25, 1.0, -2.0, 3.0, 5.0, -4.0, 2.0, 0.5, 99.0], &eras).until_distance,
        expected
    );
}

#[test]
fn summaries_of_parts_merge_into_that_of_the_whole() {
    let gaps = [1.0, -1.0, 0.5, -2.5];
    let of = |gaps: &[f64]| {
        gap(gaps, &(0..4).map(|offset| era(offset, None, None)).collect::<Vec<_>>()).all
    };
    assert_eq!(of(&gaps[..1]).merge(of(&gaps[1..])), of(&gaps));
    assert_eq!(of(&gaps[..3]).merge(of(&gaps[3..])), of(&gaps));
    assert_eq!(of(&gaps).merge(GapSummary::default()), of(&gaps));
    assert_eq!(GapSummary::default().merge(GapSummary::default()), GapSummary::default());
}

#[test]
fn a_nan_stays_nan_in_its_groups_and_through_a_merge() {
    let eras = [era(0, Some(1), Some(2)), era(1, Some(1), Some(2)), era(2, Some(5), Some(0))];
    let found = gap(&[f64::NAN, 1.0, 2.0], &eras);
    let all_nan =
        |gap: GapSummary| [gap.mean, gap.max, gap.signed_mean].iter().all(|value| value.is_nan());
    assert!(all_nan(found.all), "{found:?}");
    assert!(
        all_nan(found.since_eviction[0].gap) && all_nan(found.since_distance[1].gap),
        "{found:?}"
    );
    assert_eq!(found.since_eviction[1].gap, summary(1, 2.0, 2.0, 2.0));
    assert_eq!(found.since_distance[0].gap, summary(1, 2.0, 2.0, 2.0));
    assert!(
        all_nan(found.all.merge(summary(9, 1.0, 1.0, 1.0)))
            && all_nan(summary(9, 1.0, 1.0, 1.0).merge(found.all))
    );
}

#[test]
fn terms_that_only_one_side_has_are_left_out() {
    let term = |generation, logp| TermLogp { generation, offset: 0, logp };
    let eras = [0, 1, 2, 3].map(|generation| Era {
        generation,
        offset: 0,
        eviction: None,
        since: None,
        next: None,
        until: None,
    });
    let found = Gap::new(&[term(0, -1.0), term(1, -1.0)], &[term(1, -3.0), term(2, -9.0)], &eras);
    assert_eq!(found.all, summary(1, 2.0, 2.0, -2.0));
}

//! Contract: the records of a regime are read strictly, pack to about the tokens that were asked
//! for, share as much as their name says, and hold no two tokens that merge by chance.
use pleach_bench::Regime;
use pleach_layout::Layouts;
use pleach_tree::{BranchTree, ReadOptions};

/// Tokens of packed and of segments, sequences of segments, and loss terms of both.
fn sizes(regime: Regime, tokens: usize) -> [usize; 5] {
    let (tree, report) = BranchTree::from_records(
        regime.records(tokens, 4096).unwrap(),
        regime.name(),
        ReadOptions::STRICT,
    )
    .unwrap();
    assert!(report.diagnostics.is_empty(), "{regime}: {:?}", report.diagnostics);
    let layouts = Layouts::new(&tree).unwrap();
    let (packed, segments) = (layouts.packed().unwrap(), layouts.segments().unwrap());
    [
        packed.tokens(),
        segments.tokens(),
        segments.sequences.len(),
        packed.supervised(),
        segments.supervised(),
    ]
}

#[test]
fn a_regime_packs_to_about_the_tokens_that_were_asked_for() {
    for regime in Regime::ALL {
        for tokens in [512, 1024, 4096] {
            let [packed, _, _, terms, in_segments] = sizes(regime, tokens);
            assert!(
                packed <= tokens && packed * 20 >= tokens * 19,
                "{regime}: {packed} of {tokens}"
            );
            assert_eq!(terms, in_segments, "{regime}");
        }
    }
}

#[test]
fn folding_shares_little_and_clearing_and_grouping_a_lot() {
    for (regime, sequences, shares) in [
        (Regime::SummaryFold, 3, 1.05..1.2),
        (Regime::ClearedResults, 16, 3.0..6.0),
        (Regime::Group, 8, 3.0..6.0),
    ] {
        let [packed, segments, rows, ..] = sizes(regime, 4096);
        let ratio = segments as f64 / packed as f64;
        assert!(
            rows == sequences && shares.contains(&ratio),
            "{regime}: {rows} sequences, {ratio} times the tokens"
        );
    }
}

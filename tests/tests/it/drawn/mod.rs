//! Drawn trees and oracle tables beside what the layouts give.
#![allow(dead_code, reason = "each test binary uses its own part")]
use burn::tensor::{DType, Device};
use pleach_layout::{Conditioning, Layout};
use pleach_tests::{Compared, Table};
use pleach_train::decoder::{Decoder, DecoderConfig, Family};
use pleach_tree::{BranchTree, ReadOptions, Record};
use proptest::prelude::*;

/// At least 500 cases; PROPTEST_CASES asks for more. A failing case is printed whole and needs no
/// seed file.
pub(crate) fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: config.cases.max(500), failure_persistence: None, ..config }
}

/// Rounding of the log-probabilities of one term, in nats.
pub(crate) const LOGP: f64 = 1e-12;
/// Rounding of gradients, relative to the largest of their tensor, which counts as at least 1e-6 of
/// the largest of all: where a tensor's gradients all but cancel, one rounding of the largest,
/// 2.2e-16, is 2.2e-10 of it, and a few add up.
pub(crate) const GRADIENT: f64 = 1e-9;

/// A small decoder in float64.
pub(crate) fn decoder_on(device: &Device, family: Family, layers: usize, seed: u64) -> Decoder {
    Decoder::seeded(DecoderConfig::small(family, 64, layers), seed, DType::F64, device).unwrap()
}

/// Decoders of all families, of 2 to 4 layers.
pub(crate) fn decoders_on(device: Device) -> impl Strategy<Value = Decoder> {
    let family = prop_oneof![Just(Family::Llama), Just(Family::Qwen2), Just(Family::Qwen3)];
    (family, 2_usize..=4, any::<u64>())
        .prop_map(move |(family, layers, seed)| decoder_on(&device, family, layers, seed))
}

/// The tree of sound records.
pub(crate) fn tree_of(records: &[Record]) -> BranchTree {
    match BranchTree::from_records(records.to_vec(), "drawn", ReadOptions::STRICT) {
        Ok((tree, _)) => tree,
        Err(error) => panic!("drawn records are rejected: {error}"),
    }
}

/// Fails where a layout is not the oracle's.
pub(crate) fn compare(layout: &Layout, table: &Table) {
    assert_eq!(layout.sequences.len(), table.rows.len(), "sequences of {}", layout.kind.name());
    for ((sequence, identities), rows) in
        layout.sequences.iter().zip(&layout.identities).zip(&table.rows)
    {
        assert_eq!(sequence.tokens, rows.tokens, "tokens of {}", layout.kind.name());
        assert_eq!(sequence.positions, rows.positions, "positions of {}", layout.kind.name());
        assert_eq!(sequence.ends, rows.ends, "ends of {}", layout.kind.name());
        let found: Vec<_> =
            identities.iter().map(|identity| (identity.segment, identity.offset)).collect();
        assert_eq!(found, rows.identities, "identities of {}", layout.kind.name());
        let terms: Vec<_> = sequence
            .terms
            .iter()
            .map(|term| (term.source, term.target, term.generation, term.offset, term.weight))
            .collect();
        assert_eq!(terms, rows.terms, "terms of {}", layout.kind.name());
    }
}

/// Conditioning in the oracle's type.
pub(crate) fn compared(terms: &[Conditioning]) -> Vec<Compared> {
    let of = |term: &Conditioning| Compared {
        generation: term.generation,
        offset: term.offset,
        missing: term.missing,
        leaked: term.leaked,
    };
    terms.iter().map(of).collect()
}

/// The contexts before and after each evict and replace record.
pub(crate) fn evicting(records: &[Record]) -> Vec<(u32, u32)> {
    let of = |record: &Record| match record {
        Record::Evict(evict) => Some((evict.from.0, evict.context.0)),
        Record::Replace(replace) => Some((replace.from.0, replace.context.0)),
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

/// Evict and replace records that no chat template made.
pub(crate) fn evictions(records: &[Record]) -> usize {
    let template = |by: &Option<pleach_tree::By>| {
        by.as_ref().is_some_and(|by| by.name.as_deref() == Some("chat_template"))
    };
    let counts = |record: &&Record| match record {
        Record::Evict(evict) => !template(&evict.by),
        Record::Replace(replace) => !template(&replace.by),
        _ => false,
    };
    records.iter().filter(counts).count()
}

/// What a reader of the records sees: every view's tokens, identities and weights.
pub(crate) fn views(tree: &BranchTree) -> Vec<String> {
    let view = |view: pleach_tree::View<'_>| {
        let output: Vec<_> = view.output().collect();
        format!("{} {:?} {:?}", view.generation().id, view.context_spans(), output)
    };
    tree.views().map(view).collect()
}

//! Under reprefill every layout is, to the index, what the specification says when it is read
//! literally; interval ends nest, positions are depths, and every sampled token carries its
//! declared weight once.
use crate::drawn;

use std::collections::HashMap;

use crate::drawn::{compare, compared, config, tree_of};
use pleach_layout::{LayoutKind, Layouts};
use pleach_tests::{Oracle, Trees, trees};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn packed_is_the_trie_of_string_prefixes(records in trees(Trees::default())) {
        let (tree, oracle) = (tree_of(&records), Oracle::of(&records));
        let layout = Layouts::new(&tree).unwrap().packed().unwrap();
        let table = oracle.packed();
        compare(&layout, &table);
        let sequence = &layout.sequences[0];
        for (row, seen) in table.sees.iter().enumerate() {
            let visible: Vec<usize> = (0..=row).filter(|&key| row < sequence.ends[key] as usize).collect();
            prop_assert_eq!(&visible, seen, "row {}", row);
        }
        prop_assert_eq!(layout.pairs(), table.sees.iter().map(|seen| seen.len() as u64).sum::<u64>());
        prop_assert_eq!(layout.pairs(), sequence.positions.iter().map(|&position| position as u64 + 1).sum::<u64>());
    }

    #[test]
    fn segments_are_the_views_that_no_other_extends(records in trees(Trees::default())) {
        let (tree, oracle) = (tree_of(&records), Oracle::of(&records));
        compare(&Layouts::new(&tree).unwrap().segments().unwrap(), &oracle.segments_layout());
    }

    #[test]
    fn the_flattenings_and_their_conditioning_are_set_differences(records in trees(Trees::default())) {
        let (tree, oracle) = (tree_of(&records), Oracle::of(&records));
        let layouts = Layouts::new(&tree).unwrap();
        for (kind, (table, expected)) in [(LayoutKind::Compressed, oracle.compressed()), (LayoutKind::Full, oracle.full())] {
            compare(&layouts.layout(kind).unwrap(), &table);
            prop_assert_eq!(compared(&layouts.conditioning(kind)), expected, "{}", kind.name());
        }
        for kind in [LayoutKind::Packed, LayoutKind::Segments] {
            let terms = layouts.conditioning(kind);
            prop_assert_eq!(terms.len(), layouts.layout(kind).unwrap().supervised());
            prop_assert!(terms.iter().all(|term| term.missing == 0 && term.leaked == 0));
        }
    }

    #[test]
    fn ends_nest_and_positions_are_depths(records in trees(Trees::default())) {
        let tree = tree_of(&records);
        let layout = Layouts::new(&tree).unwrap().packed().unwrap();
        let (sequence, parents) = (&layout.sequences[0], layout.parents.as_ref().unwrap());
        let mut open: Vec<i32> = Vec::new();
        for (at, &end) in sequence.ends.iter().enumerate() {
            let at = at as i32;
            while open.last().is_some_and(|&outer| outer <= at) {
                open.pop();
            }
            prop_assert!(end > at && open.last().is_none_or(|&outer| end <= outer), "token {} ends at {}", at, end);
            prop_assert_eq!(sequence.positions[at as usize] as usize, open.len());
            let parent = (0..at).rev().find(|&key| sequence.ends[key as usize] > at).unwrap_or(-1);
            prop_assert_eq!(parents[at as usize], parent);
            open.push(end);
        }
    }

    #[test]
    fn every_sampled_token_carries_its_declared_weight_once_behind_its_own_live_view(records in trees(Trees::default())) {
        let (tree, oracle) = (tree_of(&records), Oracle::of(&records));
        let layouts = Layouts::new(&tree).unwrap();
        let account = layouts.account().unwrap();
        for kind in [LayoutKind::Packed, LayoutKind::Segments] {
            let layout = layouts.layout(kind).unwrap();
            let mut terms = HashMap::new();
            for sequence in &layout.sequences {
                for term in &sequence.terms {
                    let row = term.source as i32;
                    let seen = (0..=row).filter(|&key| row < sequence.ends[key as usize]);
                    let prefix: Vec<u32> = seen.map(|key| sequence.tokens[key as usize]).collect();
                    let before = terms.insert((term.generation, term.offset), (prefix, term.target, term.weight));
                    prop_assert!(before.is_none(), "a second term for {:?}", term);
                }
            }
            for scored in oracle.calls.iter().flat_map(|call| oracle.scored(call)) {
                let found = terms.remove(&(scored.generation, scored.offset));
                prop_assert_eq!(found, Some((oracle.values(&scored.prefix), scored.target, scored.weight)));
            }
            prop_assert!(terms.is_empty());
            prop_assert_eq!(account.coverage(kind), Some(1.0));
        }
    }

    #[test]
    fn the_account_counts_what_the_layouts_hold(records in trees(Trees::default())) {
        let (tree, oracle) = (tree_of(&records), Oracle::of(&records));
        let account = Layouts::new(&tree).unwrap().account().unwrap();
        let stats = account.stats;
        let pairs = |len: usize| (len * (len + 1) / 2) as u64;
        let (packed, segments) = (oracle.packed(), oracle.segments_layout());
        prop_assert_eq!(stats.generations, oracle.calls.len());
        prop_assert_eq!(stats.sampled_tokens, oracle.sampled());
        prop_assert_eq!(stats.evictions, drawn::evictions(&records));
        prop_assert_eq!(stats.packed.tokens, packed.rows[0].tokens.len());
        prop_assert_eq!(stats.packed.supervised, packed.rows[0].terms.len());
        for (found, table) in [(stats.segments.unwrap(), segments), (stats.compressed, oracle.compressed().0), (stats.full, oracle.full().0)] {
            prop_assert_eq!(found.sequences, table.rows.len());
            prop_assert_eq!(found.tokens, table.rows.iter().map(|row| row.tokens.len()).sum::<usize>());
            prop_assert_eq!(found.pairs, table.rows.iter().map(|row| pairs(row.tokens.len())).sum::<u64>());
            prop_assert_eq!(found.supervised, table.rows.iter().map(|row| row.terms.len()).sum::<usize>());
        }
        for (eviction, context) in account.evictions.iter().zip(drawn::evicting(&records)) {
            let (before, after) = (oracle.context_tokens(context.0), oracle.context_tokens(context.1));
            prop_assert_eq!(eviction.context, context.1);
            prop_assert_eq!(eviction.before, before.len());
            prop_assert_eq!(eviction.removed, before.iter().filter(|token| !after.contains(token)).count());
            prop_assert_eq!(eviction.added, after.iter().filter(|token| !before.contains(token)).count());
        }
    }

    #[test]
    fn the_certificate_is_the_condition_on_visible_sets(records in trees(Trees::default())) {
        let (tree, oracle) = (tree_of(&records), Oracle::of(&records));
        let layouts = Layouts::new(&tree).unwrap();
        let certificate = layouts.certificate();
        prop_assert_eq!(certificate.union_is_exact, oracle.union_is_exact());
        prop_assert_eq!(certificate.union_tokens, oracle.union().len());
        let copied = oracle.copied();
        prop_assert_eq!(certificate.copied, copied.len());
        let first = certificate.first_copied.map(|identity| (identity.segment, identity.offset));
        prop_assert_eq!(first, copied.first().copied());
        let surcharge = layouts.account().unwrap().surcharge(&layouts.certificate());
        prop_assert_eq!(surcharge, oracle.packed().rows[0].tokens.len() as i64 - oracle.union().len() as i64);
    }
}

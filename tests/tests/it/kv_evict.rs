//! Under kv_evict the packed layout is a token-by-token replay through a key/value cache, and
//! nothing forks.

use crate::drawn::{compare, compared, config, tree_of};
use pleach_layout::{LayoutError, LayoutKind, Layouts};
use pleach_tests::{Oracle, Trees, trees};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn packed_is_the_replay_through_a_cache(records in trees(Trees::kv_evict())) {
        let (tree, oracle) = (tree_of(&records), Oracle::of(&records));
        let layout = Layouts::new(&tree).unwrap().packed().unwrap();
        let table = oracle.tape();
        compare(&layout, &table);
        let sequence = &layout.sequences[0];
        for (row, seen) in table.sees.iter().enumerate() {
            let visible: Vec<usize> = (0..=row).filter(|&key| row < sequence.ends[key] as usize).collect();
            prop_assert_eq!(&visible, seen, "row {}", row);
        }
    }

    #[test]
    fn every_sampled_token_sees_exactly_its_live_view(records in trees(Trees::kv_evict())) {
        let (tree, oracle) = (tree_of(&records), Oracle::of(&records));
        let layout = Layouts::new(&tree).unwrap().packed().unwrap();
        let (sequence, identities) = (&layout.sequences[0], &layout.identities[0]);
        let sampled = oracle.calls.iter().flat_map(|call| oracle.scored(call));
        let terms: Vec<_> = sampled.collect();
        prop_assert_eq!(terms.len(), sequence.terms.len());
        for (term, scored) in sequence.terms.iter().zip(terms) {
            let row = term.source as usize + 1;
            prop_assert_eq!(identities[row].segment, scored.identity.0);
            let seen = (0..row).filter(|&key| row < sequence.ends[key] as usize);
            let mut seen: Vec<_> = seen.map(|key| (identities[key].segment, identities[key].offset)).collect();
            let mut live = scored.prefix.clone();
            seen.sort_unstable();
            live.sort_unstable();
            prop_assert_eq!(seen, live, "generation {} offset {}", term.generation, term.offset);
        }
    }

    #[test]
    fn the_flattenings_are_those_of_the_views(records in trees(Trees::kv_evict())) {
        let (tree, oracle) = (tree_of(&records), Oracle::of(&records));
        let layouts = Layouts::new(&tree).unwrap();
        for (kind, (table, expected)) in [(LayoutKind::Compressed, oracle.compressed()), (LayoutKind::Full, oracle.full())] {
            compare(&layouts.layout(kind).unwrap(), &table);
            prop_assert_eq!(compared(&layouts.conditioning(kind)), expected, "{}", kind.name());
        }
        prop_assert_eq!(layouts.segments().unwrap_err(), LayoutError::KvEvict { layout: "segments" });
        prop_assert_eq!(layouts.account().unwrap().coverage(LayoutKind::Packed), Some(1.0));
    }
}

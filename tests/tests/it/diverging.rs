//! The terms that diverge between compressed and live views are found in the trie; reading both
//! prefixes token by token finds the same.

use crate::drawn::{config, tree_of};
use pleach_layout::Layouts;
use pleach_tests::{Trees, trees};
use pleach_tree::{BranchTree, GenerationId};
use proptest::prelude::*;

fn naive(tree: &BranchTree) -> Vec<(u32, u32)> {
    let sequences = Layouts::new(tree).unwrap().compressed().unwrap().sequences;
    let diverges = |sequence: &pleach_layout::Sequence, term: &pleach_layout::Term| {
        let view = tree.view(GenerationId(term.generation)).unwrap();
        sequence.tokens[..=term.source as usize]
            != view.tokens()[..view.context().tokens() + term.offset as usize]
    };
    let of = |sequence: &pleach_layout::Sequence| {
        let terms = sequence.terms.iter().filter(|term| diverges(sequence, term));
        terms.map(|term| (term.generation, term.offset)).collect::<Vec<_>>()
    };
    sequences.iter().flat_map(of).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_trie_finds_the_diverging_terms_of_any_tree(records in trees(Trees::default())) {
        let tree = tree_of(&records);
        let found = Layouts::new(&tree).unwrap().diverging().unwrap();
        let found: Vec<(u32, u32)> = found.iter().map(|term| (term.generation, term.offset)).collect();
        prop_assert_eq!(found, naive(&tree));
    }
}

//! Sequences packed into rows keep to the budget, do not see each other, and lose no term.

use crate::drawn::{config, tree_of};
use pleach_layout::{LayoutError, LayoutKind, Layouts, Sequence, Term, pack};
use pleach_tests::{Drawn, Trees, trees};
use proptest::collection::vec;
use proptest::prelude::*;

fn sequences(forest: &[Drawn], kind: LayoutKind) -> Vec<Sequence> {
    let of =
        |records: &Drawn| Layouts::new(&tree_of(records)).unwrap().layout(kind).unwrap().sequences;
    forest.iter().flat_map(of).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn rows_keep_to_the_budget_and_members_apart(
        forest in vec(trees(Trees { steps: 5, ..Trees::default() }), 1..5),
        kind in prop::sample::select(LayoutKind::ALL.to_vec()),
        spare in 0..40_usize,
    ) {
        let sequences = sequences(&forest, kind);
        let longest = sequences.iter().map(Sequence::len).max().unwrap_or(0);
        let rows = pack(&sequences, longest + spare).unwrap();
        let mut packed: Vec<usize> = rows.iter().flat_map(|row| row.members.iter().map(|member| member.sequence)).collect();
        packed.sort_unstable();
        prop_assert_eq!(packed, (0..sequences.len()).collect::<Vec<_>>());
        for row in &rows {
            let whole = &row.sequence;
            prop_assert!(whole.len() <= longest + spare);
            prop_assert_eq!((whole.positions.len(), whole.ends.len()), (whole.len(), whole.len()));
            prop_assert_eq!(row.members.iter().map(|member| member.len).sum::<usize>(), whole.len());
            prop_assert_eq!(row.members.iter().map(|member| member.terms).sum::<usize>(), whole.terms.len());
            for member in &row.members {
                let alone = &sequences[member.sequence];
                let range = member.start..member.start + member.len;
                prop_assert_eq!(&whole.tokens[range.clone()], alone.tokens.as_slice());
                prop_assert_eq!(&whole.positions[range.clone()], alone.positions.as_slice());
                for i in 0..whole.len() {
                    for j in range.clone().filter(|&j| j <= i) {
                        let visible = i < whole.ends[j] as usize;
                        let before = range.contains(&i) && i - member.start < alone.ends[j - member.start] as usize;
                        prop_assert_eq!(visible, before, "row {} key {}", i, j);
                    }
                }
                let terms = &whole.terms[member.first_term..member.first_term + member.terms];
                let shifted = |term: &Term| Term { source: term.source + member.start as u32, ..*term };
                prop_assert_eq!(terms, alone.terms.iter().map(shifted).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_sequence_longer_than_a_row_is_named(records in trees(Trees::default())) {
        let sequences = sequences(&[records], LayoutKind::Packed);
        let tokens = sequences[0].len();
        if let Some(budget) = tokens.checked_sub(1) {
            let error = pack(&sequences, budget).unwrap_err();
            prop_assert_eq!(&error, &LayoutError::OverBudget { index: 0, tokens, budget });
            prop_assert_eq!(
                error.to_string(),
                format!("sequence 0 has {tokens} tokens, the budget of a row is {budget}; raise the budget or leave it out")
            );
        }
    }
}

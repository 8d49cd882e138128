use std::collections::BTreeMap;

use pleach_tree::BranchTree;
use serde::Serialize;

use crate::flattened::{self, Flat};
use crate::layouts::{LayoutKind, Layouts};
use crate::{LayoutError, Term};

/// The published union mask of one thread: every token once, each row with the view it was decoded
/// under.
///
/// It stands here to be compared with and not to be trained on: for models of two or more layers it
/// is not the live view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Union {
    /// Token ids in order of first appearance.
    pub tokens: Vec<u32>,
    /// For each row the keys it sees in the order of its live view, itself last; a key's row-wise
    /// position is its index here.
    pub visible: Vec<Vec<u32>>,
    /// Loss terms.
    pub terms: Vec<Term>,
}

/// The union of each thread, threads in order of their first generation.
///
/// A row that predicts sees what was live when its target was sampled; where it predicts more than
/// once, the first time counts. A row that predicts nothing sees what was live when it first
/// appeared. Memory is that of the mask, so this is for clipped or small rollouts.
///
/// # Errors
/// More than 2^31 - 1 tokens.
pub fn union(layouts: &Layouts<'_>) -> Result<Vec<Union>, LayoutError> {
    let tree = layouts.tree();
    let full = layouts.layout(LayoutKind::Full)?;
    let flats = flattened::full(tree);
    let threads = full.sequences.into_iter().zip(&flats);
    Ok(threads.map(|(sequence, flat)| of_thread(tree, flat, sequence.tokens)).collect())
}

fn of_thread(tree: &BranchTree, flat: &Flat, tokens: Vec<u32>) -> Union {
    let mut predicting: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut first: Vec<Vec<u32>> = vec![Vec::new(); tokens.len()];
    let mut terms = Vec::new();
    for view in flat.generations.iter().filter_map(|&id| tree.view(id)) {
        let spans = view.context_spans().into_iter().chain(view.output_spans());
        let places: Vec<u32> = spans
            .flat_map(|span| {
                (span.start..span.end).filter_map(move |at| flat.place(span.segment, at))
            })
            .collect();
        for (index, &place) in places.iter().enumerate() {
            let row = &mut first[place as usize];
            if row.is_empty() {
                row.extend_from_slice(&places[..=index]);
            }
        }
        let context = view.context().tokens();
        for term in flat.terms(&view) {
            let live = &places[..context + term.offset as usize];
            let Some(&source) = live.last() else { continue };
            predicting.entry(source).or_insert_with(|| live.to_vec());
            terms.push(Term { source, ..term });
        }
    }
    for (row, live) in predicting {
        first[row as usize] = live;
    }
    Union { tokens, visible: first, terms }
}

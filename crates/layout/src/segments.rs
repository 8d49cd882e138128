//! One causal sequence per maximal view.
use pleach_tree::{BranchTree, View};

use crate::forest::Forest;
use crate::layouts::{Layout, LayoutKind};
use crate::{Identity, LayoutError, Sequence, Term};

const NOT_YET: u32 = u32::MAX;

pub(crate) fn segments(tree: &BranchTree, forest: &Forest<u32>) -> Result<Layout, LayoutError> {
    let mut maximal = Vec::new();
    let mut first_below = vec![NOT_YET; forest.trie.len() + 1];
    for (view, output) in tree.views().zip(&forest.outputs) {
        let end = output.end();
        if forest.trie.is_leaf(end) && first_below[end.index()] == NOT_YET {
            first_below[end.index()] = maximal.len() as u32;
            maximal.push(view);
        }
    }
    for &node in forest.trie.depth_first().iter().rev() {
        if let Some(parent) = forest.trie.parent(node) {
            first_below[parent.index()] = first_below[parent.index()].min(first_below[node.index()]);
        }
    }
    let mut terms: Vec<Vec<Term>> = vec![Vec::new(); maximal.len()];
    for (view, output) in tree.views().zip(&forest.outputs) {
        let Some(terms) = terms.get_mut(first_below[output.end().index()] as usize) else { continue };
        let before = view.context().tokens() as u32;
        for token in view.output() {
            let Some(weight) = token.weight.filter(|_| before + token.offset > 0) else { continue };
            let (generation, offset) = (view.generation().id.0, token.offset);
            terms.push(Term { source: before + offset - 1, target: token.token, generation, offset, weight });
        }
    }
    let sequences = maximal.iter().zip(terms).map(|(view, terms)| Sequence::causal(view.tokens(), terms));
    Ok(Layout {
        kind: LayoutKind::Segments,
        sequences: sequences.collect::<Result<_, _>>()?,
        identities: maximal.iter().map(identities).collect(),
        parents: None,
    })
}

fn identities(view: &View<'_>) -> Vec<Identity> {
    let spans = view.context_spans().into_iter().chain(view.output_spans());
    spans.flat_map(|span| (span.start..span.end).map(move |offset| Identity { segment: span.segment.0, offset })).collect()
}

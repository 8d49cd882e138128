//! One causal sequence per maximal view.
use pleach_tree::{BranchTree, View};

use crate::forest::Forest;
use crate::layouts::{Layout, LayoutKind};
use crate::{Identity, LayoutError, Sequence, Term};

const NOT_YET: u32 = u32::MAX;

/// The maximal views, and for each generation the one that its terms go into.
struct Maximal<'t> {
    views: Vec<View<'t>>,
    of_generation: Vec<usize>,
}

fn maximal<'t>(tree: &'t BranchTree, forest: &Forest<u32>) -> Maximal<'t> {
    let mut views = Vec::new();
    let mut first_below = vec![NOT_YET; forest.trie.len() + 1];
    for (view, output) in tree.views().zip(&forest.outputs) {
        let end = output.end();
        if forest.trie.is_leaf(end) && first_below[end.index()] == NOT_YET {
            first_below[end.index()] = views.len() as u32;
            views.push(view);
        }
    }
    for &node in forest.trie.depth_first().iter().rev() {
        if let Some(parent) = forest.trie.parent(node) {
            first_below[parent.index()] =
                first_below[parent.index()].min(first_below[node.index()]);
        }
    }
    let of_generation =
        forest.outputs.iter().map(|output| first_below[output.end().index()] as usize).collect();
    Maximal { views, of_generation }
}

/// The views that no other extends, one a sequence.
pub(crate) fn views<'t>(tree: &'t BranchTree, forest: &Forest<u32>) -> Vec<View<'t>> {
    maximal(tree, forest).views
}

/// Tokens and terms of each sequence, without the sequences, which hold every view's tokens.
pub(crate) fn sizes(tree: &BranchTree, forest: &Forest<u32>) -> Vec<(usize, usize)> {
    let maximal = maximal(tree, forest);
    let mut sizes: Vec<(usize, usize)> = maximal.views.iter().map(|view| (view.len(), 0)).collect();
    for (view, &at) in tree.views().zip(&maximal.of_generation) {
        let Some((_, terms)) = sizes.get_mut(at) else { continue };
        let first = usize::from(view.context().tokens() == 0);
        *terms += view.output().skip(first).filter(|token| token.weight.is_some()).count();
    }
    sizes
}

pub(crate) fn segments(tree: &BranchTree, forest: &Forest<u32>) -> Result<Layout, LayoutError> {
    let maximal = maximal(tree, forest);
    let mut terms: Vec<Vec<Term>> = vec![Vec::new(); maximal.views.len()];
    for (view, &at) in tree.views().zip(&maximal.of_generation) {
        let Some(terms) = terms.get_mut(at) else { continue };
        let before = view.context().tokens() as u32;
        for token in view.output() {
            let Some(weight) = token.weight.filter(|_| before + token.offset > 0) else { continue };
            let (generation, offset) = (view.generation().id.0, token.offset);
            terms.push(Term {
                source: before + offset - 1,
                target: token.token,
                generation,
                offset,
                weight,
            });
        }
    }
    let sequences =
        maximal.views.iter().zip(terms).map(|(view, terms)| Sequence::causal(view.tokens(), terms));
    Ok(Layout {
        kind: LayoutKind::Segments,
        sequences: sequences.collect::<Result<_, _>>()?,
        identities: maximal.views.iter().map(identities).collect(),
        parents: None,
    })
}

fn identities(view: &View<'_>) -> Vec<Identity> {
    let spans = view.context_spans().into_iter().chain(view.output_spans());
    spans
        .flat_map(|span| {
            (span.start..span.end).map(move |offset| Identity { segment: span.segment.0, offset })
        })
        .collect()
}

//! The trie in depth-first order.
use pleach_tree::BranchTree;

use crate::forest::Forest;
use crate::layouts::{Layout, LayoutKind};
use crate::sequence::index;
use crate::trie::NodeId;
use crate::{Identity, LayoutError, Sequence, Term};

const UNPLACED: u32 = u32::MAX;

pub(crate) fn packed(tree: &BranchTree, forest: &Forest<u32>) -> Result<Layout, LayoutError> {
    let order = forest.trie.depth_first();
    let len = index(order.len())?;
    let place = places(&order);
    let parents: Vec<i32> = order
        .iter()
        .map(|&node| match forest.trie.parent(node) {
            Some(parent) if parent != NodeId::ROOT => {
                i32::try_from(place[parent.index()]).unwrap_or(-1)
            }
            _ => -1,
        })
        .collect();
    let mut positions = vec![0; order.len()];
    let mut ends: Vec<i32> = (1..=len).collect();
    for (at, &parent) in parents.iter().enumerate() {
        if let Ok(parent) = usize::try_from(parent) {
            positions[at] = positions[parent] + 1;
        }
    }
    for (at, &parent) in parents.iter().enumerate().rev() {
        if let Ok(parent) = usize::try_from(parent) {
            ends[parent] = ends[parent].max(ends[at]);
        }
    }
    let tokens = order.iter().filter_map(|&node| forest.trie.key(node)).collect();
    let terms = terms(tree, forest, &place);
    let identities = vec![identities(tree, forest, &place)];
    let sequence = Sequence { tokens, positions, ends, terms };
    Ok(Layout {
        kind: LayoutKind::Packed,
        sequences: vec![sequence],
        identities,
        parents: Some(parents),
    })
}

/// Where each node stands, by its index; the root, which holds no token, stands nowhere.
pub(crate) fn places(depth_first: &[NodeId]) -> Vec<u32> {
    let mut places = vec![UNPLACED; depth_first.len() + 1];
    for (at, node) in (0..).zip(depth_first) {
        places[node.index()] = at;
    }
    places
}

fn terms(tree: &BranchTree, forest: &Forest<u32>, place: &[u32]) -> Vec<Term> {
    let mut terms = Vec::new();
    for (view, output) in tree.views().zip(&forest.outputs) {
        let sources = std::iter::once(output.before).chain(output.nodes.iter().copied());
        for (token, source) in view.output().zip(sources) {
            if let Some(weight) = token.weight.filter(|_| source != NodeId::ROOT) {
                terms.push(Term {
                    source: place[source.index()],
                    target: token.token,
                    generation: view.generation().id.0,
                    offset: token.offset,
                    weight,
                });
            }
        }
    }
    terms
}

/// The identity of each node: of the views that share it, the first.
fn identities(tree: &BranchTree, forest: &Forest<u32>, place: &[u32]) -> Vec<Identity> {
    let mut identities = vec![Identity { segment: UNPLACED, offset: 0 }; forest.trie.len()];
    let mut named = vec![false; forest.trie.len() + 1];
    named[0] = true;
    for (view, output) in tree.views().zip(&forest.outputs) {
        for (token, node) in view.output().zip(&output.nodes) {
            if !std::mem::replace(&mut named[node.index()], true) {
                identities[place[node.index()] as usize] =
                    Identity { segment: token.segment.0, offset: token.at };
            }
        }
        let (mut node, mut piece) = (output.before, view.tail());
        while let Some(id) = piece.filter(|_| !named[node.index()]) {
            let span = tree.pieces()[id.index()].span;
            for offset in (span.start..span.end).rev() {
                if std::mem::replace(&mut named[node.index()], true) {
                    break;
                }
                identities[place[node.index()] as usize] =
                    Identity { segment: span.segment.0, offset };
                node = forest.trie.parent(node).unwrap_or(NodeId::ROOT);
            }
            piece = tree.pieces()[id.index()].parent;
        }
    }
    identities
}

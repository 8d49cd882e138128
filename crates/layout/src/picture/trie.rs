//! Where the nodes of a trie stand.
use pleach_tree::View;

use crate::Layouts;

/// The place of each node in depth-first order; that of the root, which holds no token, says
/// nothing.
pub(super) fn places(layouts: &Layouts<'_>) -> Vec<u32> {
    let trie = &layouts.forest().trie;
    let mut places = vec![0; trie.len() + 1];
    for (at, node) in (0..).zip(trie.depth_first()) {
        places[node.index()] = at;
    }
    places
}

/// The views that no other extends, in the order of the sequences of `segments`.
pub(super) fn maximal<'t>(layouts: &Layouts<'t>) -> Vec<View<'t>> {
    let forest = layouts.forest();
    let mut taken = vec![false; forest.trie.len() + 1];
    let views = layouts.tree().views().zip(&forest.outputs);
    let first = |output: &crate::forest::Output| {
        let end = output.end();
        forest.trie.is_leaf(end) && !std::mem::replace(&mut taken[end.index()], true)
    };
    let mut first = first;
    views.filter(|(_, output)| first(output)).map(|(view, _)| view).collect()
}

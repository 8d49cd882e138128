//! The views of a tree walked into a trie, each token of what an operation added once.
use std::hash::Hash;

use pleach_tree::{BranchTree, Span};

use crate::trie::{NodeId, Trie};

/// The trie of all views and where each generation's output stands in it.
#[derive(Debug, Clone)]
pub(crate) struct Forest<K> {
    pub(crate) trie: Trie<K>,
    /// For each generation in file order: the node before its output, and the output's nodes.
    pub(crate) outputs: Vec<Output>,
}

#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) before: NodeId,
    pub(crate) nodes: Vec<NodeId>,
}

impl Output {
    /// The last node of the generation's view.
    pub(crate) fn end(&self) -> NodeId {
        self.nodes.last().copied().unwrap_or(self.before)
    }
}

impl<K: Copy + Eq + Hash> Forest<K> {
    /// Walks all views of `tree`; `keys` tells what a span's tokens are compared by.
    pub(crate) fn grow<'t, I: IntoIterator<Item = K>>(
        tree: &'t BranchTree,
        keys: impl Fn(Span) -> I + 't,
    ) -> Self {
        let mut trie = Trie::default();
        let mut ends: Vec<Option<NodeId>> = vec![None; tree.pieces().len()];
        let mut outputs = Vec::with_capacity(tree.generation_count());
        for view in tree.views() {
            let mut unwalked = Vec::new();
            let mut piece = view.tail();
            let mut node = NodeId::ROOT;
            while let Some(id) = piece {
                if let Some(end) = ends[id.index()] {
                    node = end;
                    break;
                }
                unwalked.push(id);
                piece = tree.pieces()[id.index()].parent;
            }
            for id in unwalked.into_iter().rev() {
                for key in keys(tree.pieces()[id.index()].span) {
                    node = trie.step(node, key);
                }
                ends[id.index()] = Some(node);
            }
            let before = node;
            let nodes = view.output_spans().flat_map(&keys).map(|key| {
                node = trie.step(node, key);
                node
            });
            outputs.push(Output { before, nodes: nodes.collect() });
        }
        Self { trie, outputs }
    }
}

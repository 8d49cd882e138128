use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Handle of a node of a [`Trie`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

impl NodeId {
    /// The node that stands before all tokens and holds none.
    pub(crate) const ROOT: Self = Self(0);

    const NONE: u32 = u32::MAX;

    /// Index for tables that run beside the trie; [`NodeId::ROOT`] has 0.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The prefix tree of token sequences: two tokens are one node if and only if their whole prefixes
/// are equal.
///
/// The tokens are ids for the exact layouts and identities for the certificate. Children keep their
/// order of first appearance. Going on from any node costs time for the tokens that are walked, so
/// views that share a beginning need not walk it again.
#[derive(Debug, Clone)]
pub(crate) struct Trie<K> {
    keys: Vec<Option<K>>,
    links: Vec<Links>,
    others: FxHashMap<(u32, K), u32>,
}

#[derive(Debug, Clone, Copy)]
struct Links {
    parent: u32,
    first: u32,
    last: u32,
    next: u32,
}

impl Links {
    fn below(parent: u32) -> Self {
        Self { parent, first: NodeId::NONE, last: NodeId::NONE, next: NodeId::NONE }
    }
}

impl<K: Copy + Eq + Hash> Default for Trie<K> {
    fn default() -> Self {
        Self {
            keys: vec![None],
            links: vec![Links::below(NodeId::NONE)],
            others: FxHashMap::default(),
        }
    }
}

impl<K: Copy + Eq + Hash> Trie<K> {
    /// Number of tokens, the root not counted.
    pub(crate) fn len(&self) -> usize {
        self.keys.len() - 1
    }

    /// The child of `node` that holds `key`, made where there is none.
    pub(crate) fn step(&mut self, node: NodeId, key: K) -> NodeId {
        let first = self.links[node.index()].first;
        if first != NodeId::NONE {
            if self.keys[first as usize] == Some(key) {
                return NodeId(first);
            }
            if let Some(&child) = self.others.get(&(node.0, key)) {
                return NodeId(child);
            }
        }
        let child = self.keys.len() as u32;
        self.keys.push(Some(key));
        self.links.push(Links::below(node.0));
        let links = &mut self.links[node.index()];
        let last = std::mem::replace(&mut links.last, child);
        if first == NodeId::NONE {
            links.first = child;
        } else {
            self.links[last as usize].next = child;
            self.others.insert((node.0, key), child);
        }
        NodeId(child)
    }

    /// The token of a node, `None` for the root.
    pub(crate) fn key(&self, node: NodeId) -> Option<K> {
        self.keys[node.index()]
    }

    /// The node before a node, `None` for the root.
    pub(crate) fn parent(&self, node: NodeId) -> Option<NodeId> {
        Some(self.links[node.index()].parent).filter(|&parent| parent != NodeId::NONE).map(NodeId)
    }

    /// Whether nothing follows a node.
    pub(crate) fn is_leaf(&self, node: NodeId) -> bool {
        self.links[node.index()].first == NodeId::NONE
    }

    /// All nodes but the root, a parent before its children and each subtree in one run.
    pub(crate) fn depth_first(&self) -> Vec<NodeId> {
        let mut order = Vec::with_capacity(self.len());
        let mut node = self.links[0].first;
        while node != NodeId::NONE {
            order.push(NodeId(node));
            let mut links = self.links[node as usize];
            if links.first != NodeId::NONE {
                node = links.first;
                continue;
            }
            while links.next == NodeId::NONE && links.parent != NodeId::NONE {
                links = self.links[links.parent as usize];
            }
            node = links.next;
        }
        order
    }
}

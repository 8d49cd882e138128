use pleach_tree::{CacheSemantics, GenerationId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::trie::NodeId;
use crate::{LayoutError, Layouts, flattened};

/// A loss term of `compressed` that is predicted from other tokens there than the policy saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Diverging {
    /// Id of the generation.
    pub generation: u32,
    /// Index of the target in the generation's output.
    pub offset: u32,
}

impl Layouts<'_> {
    /// The loss terms whose compressed prefix differs, as token ids, from their live view, in the
    /// order of `compressed`'s terms.
    ///
    /// The last view of a thread is in the trie like any other, so two prefixes are equal if and
    /// only if they are one node.
    ///
    /// # Errors
    /// [`LayoutError::DivergingUnderKvEvict`]: there, equal token ids do not mean equal conditioning.
    pub fn diverging(&self) -> Result<Vec<Diverging>, LayoutError> {
        let (tree, forest) = (self.tree(), self.forest());
        if tree.header().cache == CacheSemantics::KvEvict {
            return Err(LayoutError::DivergingUnderKvEvict);
        }
        let place: FxHashMap<GenerationId, usize> =
            tree.generations().map(|generation| generation.id).zip(0..).collect();
        let mut diverging = Vec::new();
        for flat in flattened::compressed(tree) {
            let last = flat.generations.last().map(|id| forest.outputs[place[id]].end());
            let path = last.map(|node| self.path(node)).unwrap_or_default();
            for view in flat.generations.iter().filter_map(|&id| tree.view(id)) {
                let output = &forest.outputs[place[&view.generation().id]];
                for term in flat.terms(&view) {
                    let live = match term.offset.checked_sub(1) {
                        None => Some(&output.before),
                        Some(before) => output.nodes.get(before as usize),
                    };
                    if path.get(term.source as usize) != live {
                        diverging
                            .push(Diverging { generation: term.generation, offset: term.offset });
                    }
                }
            }
        }
        Ok(diverging)
    }

    /// The nodes from the first token to `node`.
    fn path(&self, node: NodeId) -> Vec<NodeId> {
        let trie = &self.forest().trie;
        let mut path: Vec<NodeId> = std::iter::successors(Some(node), |&node| trie.parent(node))
            .take_while(|&node| node != NodeId::ROOT)
            .collect();
        path.reverse();
        path
    }
}

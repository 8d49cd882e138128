//! Names of threads.
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// A node of a tree of calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Branch {
    /// The node that it goes on from in its own conversation.
    pub(crate) parent: Option<usize>,
    pub(crate) conversation: usize,
    /// Its place in the order in which things happened.
    pub(crate) place: u64,
    pub(crate) is_call: bool,
}

/// The thread of every node in `order`, which has each behind its parent.
///
/// A conversation's own name goes to the branch of its last call, from the root on. Every other
/// branch, in the order in which they begin, is `NAME~1`, `NAME~2` and so on, so that what was
/// given up by a rewind is a thread of its own.
pub(crate) fn names(nodes: &[Branch], order: &[usize], conversations: &[&str]) -> Vec<Arc<str>> {
    let mut reach: Vec<(bool, u64)> = nodes.iter().map(|node| (node.is_call, node.place)).collect();
    for &node in order.iter().rev() {
        if let Some(parent) = nodes[node].parent {
            reach[parent] = reach[parent].max(reach[node]);
        }
    }
    let group = |node: usize| (nodes[node].conversation, nodes[node].parent);
    let mut heirs: FxHashMap<(usize, Option<usize>), usize> = FxHashMap::default();
    for &node in order {
        let heir = heirs.entry(group(node)).or_insert(node);
        if reach[node] > reach[*heir] {
            *heir = node;
        }
    }
    let mut starts: Vec<usize> = order.to_vec();
    starts.retain(|&node| heirs.get(&group(node)) != Some(&node));
    starts.sort_by_key(|&node| nodes[node].place);
    let own: Vec<Arc<str>> = conversations.iter().map(|&name| name.into()).collect();
    let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
    let mut names: Vec<Option<Arc<str>>> = vec![None; nodes.len()];
    for node in starts {
        let conversation = nodes[node].conversation;
        let count = counts.entry(conversation).or_default();
        *count += 1;
        names[node] = Some(format!("{}~{count}", own[conversation]).into());
    }
    for &node in order {
        if names[node].is_none() {
            let above = nodes[node].parent.and_then(|parent| names[parent].clone());
            names[node] = Some(above.unwrap_or_else(|| Arc::clone(&own[nodes[node].conversation])));
        }
    }
    names.into_iter().map(Option::unwrap_or_default).collect()
}

use std::collections::HashSet;

use pleach_layout::Era;
use pleach_tree::BranchTree;

/// The eras of one rollout's tokens.
pub(crate) fn of_rollout(tree: &BranchTree, rollout: &str, eras: &[Era]) -> Vec<Era> {
    let generations: HashSet<u32> = tree
        .generations()
        .filter(|generation| generation.rollout == rollout)
        .map(|generation| generation.id.0)
        .collect();
    eras.iter().filter(|era| generations.contains(&era.generation)).copied().collect()
}

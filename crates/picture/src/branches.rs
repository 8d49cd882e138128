use pleach_layout::Layout;

use crate::subject::Chosen;

/// A token at which several branches of the trie go on, and where those after the first stand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Branch {
    pub(crate) from: usize,
    /// First tokens of the later branches, in order.
    pub(crate) to: Vec<usize>,
    /// Branchings that stand one inside the other under this one, itself counted.
    pub(crate) height: usize,
}

impl Branch {
    /// First token of its last branch.
    pub(crate) fn last(&self) -> usize {
        self.to.last().copied().unwrap_or(self.from)
    }
}

/// Where the branches of a packed trie attach, by token. In depth-first order these brackets nest
/// and never cross.
pub(crate) fn find(layout: &Layout, chosen: &Chosen) -> Vec<Branch> {
    let (Some(parents), Some(start)) = (&layout.parents, chosen.start(0)) else {
        return Vec::new();
    };
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (token, &parent) in parents.iter().enumerate() {
        if let Ok(parent) = usize::try_from(parent)
            && parent + 1 != token
        {
            pairs.push((start + parent, start + token));
        }
    }
    pairs.sort_unstable();
    let mut branches: Vec<Branch> = pairs
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| Branch {
            from: same[0].0,
            to: same.iter().map(|pair| pair.1).collect(),
            height: 1,
        })
        .collect();
    let mut open: Vec<usize> = Vec::new();
    let close = |branches: &mut Vec<Branch>, open: &mut Vec<usize>| {
        if let Some(inner) = open.pop()
            && let Some(&outer) = open.last()
        {
            branches[outer].height = branches[outer].height.max(branches[inner].height + 1);
        }
    };
    for at in 0..branches.len() {
        while open.last().is_some_and(|&last| branches[last].last() <= branches[at].from) {
            close(&mut branches, &mut open);
        }
        open.push(at);
    }
    while !open.is_empty() {
        close(&mut branches, &mut open);
    }
    branches
}

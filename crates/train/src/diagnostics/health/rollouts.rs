use crate::{advantage::Timelines, error::TrainError};
use pleach_layout::{Account, LayoutKind, Layouts};
use pleach_tree::{BranchTree, ContextId};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A count per rollout in a few numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Count {
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub max: usize,
    /// How many rollouts have each count.
    pub histogram: BTreeMap<usize, usize>,
}

impl Count {
    /// The count of each rollout, summed up; all 0 where there are none.
    pub fn of(counts: impl IntoIterator<Item = usize>) -> Self {
        let mut histogram = BTreeMap::new();
        for count in counts {
            *histogram.entry(count).or_insert(0) += 1;
        }
        let rollouts: usize = histogram.values().sum();
        let total: usize = histogram.iter().map(|(count, rollouts)| count * rollouts).sum();
        let max = histogram.keys().next_back().copied().unwrap_or_default();
        Self { mean: total as f64 / rollouts.max(1) as f64, max, histogram }
    }
}

/// What the rollouts of a tree are like, without a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RolloutHealth {
    /// Loss terms of the layout that is trained over sampled tokens.
    pub coverage: f64,
    /// Segments that rollouts were cut into: runs of optimised tokens between evictions.
    pub segments: Count,
    /// Evictions of rollouts, those of a chat template apart.
    pub evictions: Count,
    /// Mean fraction of the context that an eviction took out, where one fired.
    pub evicted_fraction: Option<f64>,
    /// Tokens that rollouts went through, each once, however long their contexts ever were.
    pub effective_length: Count,
    /// Tokens of all live views, one after the other, over tokens of the packed layout; none under
    /// `kv_evict`.
    pub token_reuse: Option<f64>,
    /// Attention pairs that are computed over those that the masks need, where that was told.
    pub pair_overhead: Option<f64>,
}

impl RolloutHealth {
    /// The figures of a tree that is trained in a layout; `computed_pairs` are the (row, key) pairs
    /// that attention computes for it, which for dense attention is rows times the square of their
    /// length.
    ///
    /// # Errors
    /// More tokens than an index holds; a layout that does not exist under the tree's cache
    /// semantics.
    pub fn of(
        layouts: &Layouts<'_>,
        kind: LayoutKind,
        computed_pairs: Option<u64>,
    ) -> Result<Self, TrainError> {
        let tree = layouts.tree();
        let account = layouts.account()?;
        let layout = account
            .layout(kind)
            .ok_or(pleach_layout::LayoutError::KvEvict { layout: kind.name() })?;
        let timelines = Timelines::of(layouts);
        let evicted = evictions_by_rollout(tree, &account);
        let count = |rollout: &str| evicted.get(rollout).map_or(0, HashSet::len);
        let fired: Vec<f64> = account
            .evictions
            .iter()
            .filter(|eviction| !eviction.chat_template && eviction.before > 0)
            .map(|eviction| eviction.removed as f64 / eviction.before as f64)
            .collect();
        let packed = account.stats.packed.tokens;
        let reuse = account.stats.segments.filter(|_| packed > 0);
        let overhead = computed_pairs.filter(|_| layout.pairs > 0);
        Ok(Self {
            coverage: account.coverage(kind).unwrap_or(1.0),
            segments: Count::of(
                timelines.rollouts.iter().map(crate::advantage::Timeline::segments),
            ),
            evictions: Count::of(
                timelines.rollouts.iter().map(|timeline| count(&timeline.rollout)),
            ),
            evicted_fraction: (!fired.is_empty())
                .then(|| fired.iter().sum::<f64>() / fired.len() as f64),
            effective_length: Count::of(effective_lengths(layouts)?),
            token_reuse: reuse.map(|segments| segments.tokens as f64 / packed as f64),
            pair_overhead: overhead.map(|computed| computed as f64 / layout.pairs as f64),
        })
    }
}

/// The evictions above the generations of each rollout.
fn evictions_by_rollout<'t>(
    tree: &'t BranchTree,
    account: &Account,
) -> HashMap<&'t str, HashSet<u32>> {
    let evictions: HashSet<u32> = account
        .evictions
        .iter()
        .filter(|eviction| !eviction.chat_template)
        .map(|eviction| eviction.context)
        .collect();
    let mut walked: HashSet<(&str, ContextId)> = HashSet::new();
    let mut found: HashMap<&str, HashSet<u32>> = HashMap::new();
    for generation in tree.generations() {
        let rollout = generation.rollout.as_str();
        let mut at = Some(generation.context);
        while let Some(context) = at.filter(|&context| walked.insert((rollout, context))) {
            if evictions.contains(&context.0) {
                found.entry(rollout).or_default().insert(context.0);
            }
            at = tree.parent(context);
        }
    }
    found
}

/// Tokens of everything that was ever live in the threads of each rollout.
fn effective_lengths(layouts: &Layouts<'_>) -> Result<Vec<usize>, TrainError> {
    let tree = layouts.tree();
    let mut known: HashSet<(&str, &str)> = HashSet::new();
    let names = tree
        .generations()
        .map(|generation| (generation.rollout.as_str(), generation.thread.as_str()));
    let threads: Vec<&str> =
        names.filter(|&name| known.insert(name)).map(|(rollout, _)| rollout).collect();
    let mut lengths: HashMap<&str, usize> = HashMap::new();
    for (rollout, sequence) in threads.into_iter().zip(layouts.full()?.sequences) {
        *lengths.entry(rollout).or_default() += sequence.len();
    }
    Ok(tree
        .rollouts()
        .into_iter()
        .map(|rollout| lengths.get(rollout).copied().unwrap_or_default())
        .collect())
}

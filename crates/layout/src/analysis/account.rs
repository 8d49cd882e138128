use std::ops::Add;

use pleach_tree::{
    BranchTree, By, ByKind, CacheSemantics, Context, Operation, ReplacementKind, Trigger,
};
use serde::Serialize;

use crate::layouts::{Layout, LayoutKind, Layouts};
use crate::{Certificate, LayoutError};

/// Size of the packed layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PackedStats {
    /// Sequences: one a file.
    #[serde(skip)]
    pub sequences: usize,
    /// Tokens.
    pub tokens: usize,
    /// Visible (row, key) pairs.
    pub pairs: u64,
    /// Loss terms.
    pub supervised: usize,
}

/// Size of a layout of several sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LayoutStats {
    /// Sequences, which is passes through a model.
    pub sequences: usize,
    /// Tokens.
    pub tokens: usize,
    /// Visible (row, key) pairs.
    pub pairs: u64,
    /// Loss terms.
    pub supervised: usize,
}

/// The sizes of all layouts of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Calls of the policy.
    pub generations: usize,
    /// Evict and replace records, those of a chat template apart.
    pub evictions: usize,
    /// Tokens that the policy sampled.
    pub sampled_tokens: usize,
    /// The exact layout of one sequence.
    pub packed: PackedStats,
    /// The exact layout of K + 1 sequences; it does not exist under `kv_evict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<LayoutStats>,
    /// The last view of each thread.
    pub compressed: LayoutStats,
    /// Everything a thread ever saw.
    pub full: LayoutStats,
}

impl Add for LayoutStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sequences: self.sequences + other.sequences,
            tokens: self.tokens + other.tokens,
            pairs: self.pairs + other.pairs,
            supervised: self.supervised + other.supervised,
        }
    }
}

/// Sums over trees; `segments` only where both have it.
impl Add for Stats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            generations: self.generations + other.generations,
            evictions: self.evictions + other.evictions,
            sampled_tokens: self.sampled_tokens + other.sampled_tokens,
            packed: PackedStats {
                sequences: self.packed.sequences + other.packed.sequences,
                tokens: self.packed.tokens + other.packed.tokens,
                pairs: self.packed.pairs + other.packed.pairs,
                supervised: self.packed.supervised + other.packed.supervised,
            },
            segments: self.segments.zip(other.segments).map(|(a, b)| a + b),
            compressed: self.compressed + other.compressed,
            full: self.full + other.full,
        }
    }
}

/// One eviction and what it took out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Eviction {
    /// Id of the context it made.
    pub context: u32,
    /// Where it stands, as file and line.
    pub location: String,
    /// `evict` or `replace`.
    pub operation: &'static str,
    /// What kind of text stands for the span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<ReplacementKind>,
    /// Who decided it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// What set it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// Tokens that left.
    pub removed: usize,
    /// Tokens that came for them.
    pub added: usize,
    /// Tokens of the context before.
    pub before: usize,
    /// Whether a chat template did it and no harness.
    pub chat_template: bool,
}

/// Everything that is counted without a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// The sizes of all layouts.
    pub stats: Stats,
    /// Every eviction in file order, those of a chat template among them.
    pub evictions: Vec<Eviction>,
}

impl Account {
    /// K, the number of passes beyond one that `segments` takes.
    pub fn k(&self) -> Option<usize> {
        self.stats.segments.map(|segments| segments.sequences.saturating_sub(1))
    }

    /// The size of a layout; `None` for one that does not exist under the tree's cache semantics.
    pub fn layout(&self, kind: LayoutKind) -> Option<LayoutStats> {
        let PackedStats { sequences, tokens, pairs, supervised } = self.stats.packed;
        match kind {
            LayoutKind::Packed => Some(LayoutStats { sequences, tokens, pairs, supervised }),
            LayoutKind::Segments => self.stats.segments,
            LayoutKind::Compressed => Some(self.stats.compressed),
            LayoutKind::Full => Some(self.stats.full),
        }
    }

    /// Supervised terms over sampled tokens; 1 where nothing was sampled.
    pub fn coverage(&self, kind: LayoutKind) -> Option<f64> {
        let (supervised, sampled) = (self.layout(kind)?.supervised, self.stats.sampled_tokens);
        Some(if sampled == 0 { 1.0 } else { supervised as f64 / sampled as f64 })
    }

    /// What exactness costs: tokens in the trie minus tokens in the union; below 0 where rollouts
    /// share a prompt that each wrote for itself.
    pub fn surcharge(&self, certificate: &Certificate) -> i64 {
        self.stats.packed.tokens as i64 - certificate.union_tokens as i64
    }

    /// Bounds of the ideal speed-up of `packed` over `segments`: the ratios of tokens and of pairs.
    pub fn ideal_speed_up(&self) -> Option<(f64, f64)> {
        let segments = self.stats.segments.filter(|_| self.stats.packed.tokens > 0)?;
        let tokens = segments.tokens as f64 / self.stats.packed.tokens as f64;
        let pairs = segments.pairs as f64 / self.stats.packed.pairs as f64;
        Some((tokens, pairs))
    }
}

impl Layouts<'_> {
    /// Every eviction of the tree in file order, those of a chat template among them.
    pub fn evictions(&self) -> Vec<Eviction> {
        let tree = self.tree();
        tree.contexts().filter_map(|context| eviction(tree, context)).collect()
    }

    /// Counts everything that can be counted without a model.
    ///
    /// ```
    /// # use pleach_layout::{LayoutKind, Layouts};
    /// # use pleach_tree::{BranchTree, ReadOptions};
    /// # let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
    /// # {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
    /// # {"t":"append","context":0,"from":null,"segments":[0]}
    /// # {"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}
    /// # {"t":"generation","id":0,"context":0,"output":[1]}
    /// # {"t":"append","context":1,"from":0,"segments":[1]}
    /// # {"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,2]}]}
    /// # {"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[10]}
    /// # {"t":"generation","id":1,"context":2,"output":[2]}
    /// # "#;
    /// # let (tree, _) = BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT)?;
    /// let account = Layouts::new(&tree)?.account()?;
    /// assert_eq!((account.stats.packed.tokens, account.k()), (9, Some(1)));
    /// assert_eq!(account.coverage(LayoutKind::Packed), Some(1.0));
    /// assert_eq!((account.evictions[0].removed, account.evictions[0].before), (1, 5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// More than 2^31 - 1 tokens in a layout.
    pub fn account(&self) -> Result<Account, LayoutError> {
        let tree = self.tree();
        let evictions = self.evictions();
        let packed = self.packed()?;
        let segments = match tree.header().cache {
            CacheSemantics::Reprefill => Some(of_sizes(&self.segment_sizes())),
            CacheSemantics::KvEvict => None,
        };
        let stats = Stats {
            generations: tree.generation_count(),
            evictions: evictions.iter().filter(|eviction| !eviction.chat_template).count(),
            sampled_tokens: tree
                .views()
                .map(|view| view.output().filter(|token| token.weight.is_some()).count())
                .sum(),
            packed: PackedStats {
                sequences: packed.sequences.len(),
                tokens: packed.tokens(),
                pairs: packed.pairs(),
                supervised: packed.supervised(),
            },
            segments,
            compressed: stats(&self.compressed()?),
            full: stats(&self.full()?),
        };
        Ok(Account { stats, evictions })
    }
}

/// Sizes of causal sequences that need not be there.
fn of_sizes(sizes: &[(usize, usize)]) -> LayoutStats {
    LayoutStats {
        sequences: sizes.len(),
        tokens: sizes.iter().map(|(tokens, _)| tokens).sum(),
        pairs: sizes.iter().map(|&(tokens, _)| tokens as u64 * (tokens as u64 + 1) / 2).sum(),
        supervised: sizes.iter().map(|(_, terms)| terms).sum(),
    }
}

fn stats(layout: &Layout) -> LayoutStats {
    LayoutStats {
        sequences: layout.sequences.len(),
        tokens: layout.tokens(),
        pairs: layout.pairs(),
        supervised: layout.supervised(),
    }
}

fn eviction(tree: &BranchTree, context: &Context) -> Option<Eviction> {
    let id = context.id()?;
    let (operation, replacement, by, trigger) = match tree.operation(id)? {
        Operation::Evict(evict) => {
            let kind = evict.replacement.as_ref().map(|replacement| replacement.kind);
            ("evict", kind, evict.by.clone(), evict.trigger)
        }
        Operation::Replace(replace) => ("replace", None, replace.by.clone(), None),
        Operation::Append(_) | Operation::Fork(_) => return None,
    };
    let before = tree.parent(id).and_then(|parent| tree.context(parent)).map_or(0, Context::tokens);
    let removed: usize = tree.removed(id).iter().map(pleach_tree::Span::len).sum();
    let chat_template = by.as_ref().is_some_and(by_chat_template);
    let location =
        tree.context_location(id).map_or_else(String::new, |at| format!("{}:{}", at.file, at.line));
    let added = (context.tokens() + removed).saturating_sub(before);
    Some(Eviction {
        context: id.0,
        location,
        operation,
        replacement,
        by,
        trigger,
        removed,
        added,
        before,
        chat_template,
    })
}

/// Whether an eviction is a chat template's, which renders earlier turns differently, and no
/// harness's.
pub(super) fn by_chat_template(by: &By) -> bool {
    by.kind == ByKind::Rule && by.name.as_deref() == Some("chat_template")
}

use anyhow::Result;
use pleach_layout::{Account, Certificate, ConditioningSummary, LayoutKind, Layouts};
use pleach_tree::CacheSemantics;

use crate::input::{Loaded, rebuild};

/// What is known of a rollout, or of a file of them, without a model.
pub(crate) struct Facts {
    pub(crate) account: Account,
    pub(crate) certificate: Certificate,
    pub(crate) compressed: ConditioningSummary,
    pub(crate) full: ConditioningSummary,
}

impl Facts {
    pub(crate) fn of(layouts: &Layouts<'_>) -> Result<Self> {
        Ok(Self {
            account: layouts.account()?,
            certificate: layouts.certificate(),
            compressed: ConditioningSummary::of(&layouts.conditioning(LayoutKind::Compressed)),
            full: ConditioningSummary::of(&layouts.conditioning(LayoutKind::Full)),
        })
    }

    /// Trie tokens beyond one of each identity: what exactness costs under reprefill.
    pub(crate) fn surcharge(&self) -> i64 {
        self.account.surcharge(&self.certificate)
    }

    pub(crate) fn conditioning(&self, kind: LayoutKind) -> ConditioningSummary {
        match kind {
            LayoutKind::Compressed => self.compressed,
            LayoutKind::Full => self.full,
            LayoutKind::Packed | LayoutKind::Segments => ConditioningSummary {
                terms: self.account.stats.packed.supervised,
                ..ConditioningSummary::default()
            },
        }
    }
}

/// The facts of each rollout by itself, where a file holds more than one.
pub(crate) fn by_rollout(loaded: &Loaded) -> Result<Vec<(String, Facts)>> {
    let rollouts = loaded.tree.rollouts();
    if rollouts.len() < 2
        || loaded.tree.header().cache == CacheSemantics::KvEvict && shares_roots(loaded)
    {
        return Ok(Vec::new());
    }
    let of = |rollout: &str| {
        let tree = rebuild(loaded.tree.rollout_records(rollout), &loaded.name)?;
        Ok((rollout.to_string(), Facts::of(&Layouts::new(&tree)?)?))
    };
    rollouts.into_iter().map(of).collect()
}

/// Whether two rollouts share one tape, which cannot be taken apart.
fn shares_roots(loaded: &Loaded) -> bool {
    let mut owners = std::collections::HashMap::new();
    loaded.tree.generations().any(|generation| {
        let root = loaded.tree.context(generation.context).and_then(pleach_tree::Context::root);
        *owners.entry(root).or_insert(&generation.rollout) != &generation.rollout
    })
}

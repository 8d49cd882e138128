//! The two flattenings, and what they condition on.
use std::collections::{HashMap, HashSet};

use super::{Identity, Oracle, Rows, Table};

/// What a flattened layout conditions a term on, against its live view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Compared {
    /// Id of the generation.
    pub generation: u32,
    /// Index in its output.
    pub offset: u32,
    /// Identities of the live view that the layout's prefix lacks.
    pub missing: u32,
    /// Identities of the layout's prefix that the live view lacks.
    pub leaked: u32,
}

impl Oracle {
    /// The last view of each thread.
    pub fn compressed(&self) -> (Table, Vec<Compared>) {
        self.flat(|calls| calls.last().map(|&last| self.calls[last].view()).unwrap_or_default())
    }

    /// All identities of each thread's views, each once, in order of first appearance.
    pub fn full(&self) -> (Table, Vec<Compared>) {
        self.flat(|calls| {
            let mut seen = HashSet::new();
            let all = calls.iter().flat_map(|&call| self.calls[call].view());
            all.filter(|&identity| seen.insert(identity)).collect()
        })
    }

    fn flat(&self, list: impl Fn(&[usize]) -> Vec<Identity>) -> (Table, Vec<Compared>) {
        let mut table = Table::default();
        let mut compared = Vec::new();
        for calls in self.threads() {
            let identities = list(&calls);
            let mut at: HashMap<Identity, usize> = HashMap::new();
            for (index, &identity) in identities.iter().enumerate() {
                at.entry(identity).or_insert(index);
            }
            let mut rows = Rows::causal(self.values(&identities), identities.clone());
            for scored in calls.iter().flat_map(|&call| self.scored(&self.calls[call])) {
                let Some(source) = at.get(&scored.identity).and_then(|at| at.checked_sub(1)) else {
                    continue;
                };
                let (generation, offset) = (scored.generation, scored.offset);
                rows.terms.push((source as u32, scored.target, generation, offset, scored.weight));
                let live: HashSet<Identity> = scored.prefix.iter().copied().collect();
                let prefix: HashSet<Identity> = identities[..=source].iter().copied().collect();
                let missing = live.difference(&prefix).count() as u32;
                let leaked = prefix.difference(&live).count() as u32;
                compared.push(Compared { generation, offset, missing, leaked });
            }
            table.rows.push(rows);
        }
        (table, compared)
    }
}

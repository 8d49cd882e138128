//! The condition under which the union is exact, as it is stated: sets of visible keys on one tape.
use std::collections::{HashMap, HashSet};

use super::{Identity, Oracle};

impl Oracle {
    /// All identities of all views, each once, in order of first appearance.
    pub fn union(&self) -> Vec<Identity> {
        let mut seen = HashSet::new();
        self.calls
            .iter()
            .flat_map(super::Call::view)
            .filter(|&identity| seen.insert(identity))
            .collect()
    }

    /// Whether every live view is the visible set of its row in tape order, and visible sets are
    /// consistent with each other.
    ///
    /// A row is a token of the tape, and it has one visible set: what was live when it first stood
    /// in a view.
    pub fn union_is_exact(&self) -> bool {
        let tape = self.union();
        let at: HashMap<Identity, usize> = tape.iter().copied().zip(0..).collect();
        let mut visible: HashMap<usize, Vec<bool>> = HashMap::new();
        let mut in_order = true;
        for call in &self.calls {
            let view: Vec<usize> = call.view().iter().map(|identity| at[identity]).collect();
            for (index, &row) in view.iter().enumerate() {
                let live = &view[..=index];
                let keys = visible
                    .entry(row)
                    .or_insert_with(|| (0..tape.len()).map(|key| live.contains(&key)).collect());
                let read: Vec<usize> = (0..tape.len()).filter(|&key| keys[key]).collect();
                in_order &= read == live;
            }
        }
        let consistent = |(&row, keys): (&usize, &Vec<bool>)| {
            let seen = (0..=row).filter(|&key| keys[key]);
            seen.into_iter().all(|key| {
                (0..tape.len()).all(|other| visible[&key][other] == (keys[other] && other <= key))
            })
        };
        in_order && visible.iter().all(consistent)
    }

    /// Identities that stand behind two or more different prefixes of identities.
    pub fn copied(&self) -> Vec<Identity> {
        let mut prefixes: HashMap<Identity, HashSet<Vec<Identity>>> = HashMap::new();
        for view in self.calls.iter().map(super::Call::view) {
            for (index, &identity) in view.iter().enumerate() {
                prefixes.entry(identity).or_default().insert(view[..index].to_vec());
            }
        }
        let mut copied: Vec<Identity> = prefixes
            .into_iter()
            .filter(|(_, prefixes)| prefixes.len() > 1)
            .map(|(identity, _)| identity)
            .collect();
        copied.sort_unstable();
        copied
    }
}

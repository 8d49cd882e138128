//! Keys and values evicted in place: every token put through a cache, one at a time.
use std::collections::{HashMap, HashSet};

use pleach_tree::Record;

use super::{Identity, Oracle, Rows, Scored, Slot, Table};

/// A token that a loss term stands on, in one cache.
#[derive(Debug, Clone)]
pub struct ReplayedTerm {
    /// The root of its cache.
    pub root: u32,
    /// Index of the last token processed before it.
    pub source: usize,
    /// The token.
    pub scored: Scored,
}

/// One engine's cache: which processed tokens are alive, and what each saw.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// The root of its context.
    pub root: u32,
    /// Tokens in the order in which they were processed.
    pub processed: Vec<Identity>,
    /// The indices that each saw when it was processed, itself last.
    pub saw: Vec<Vec<usize>>,
    alive: Vec<usize>,
}

impl Replayed {
    fn process(&mut self, identity: Identity) {
        let index = self.processed.len();
        self.processed.push(identity);
        self.alive.push(index);
        self.saw.push(self.alive.clone());
    }

    fn holds(&self, identity: Identity) -> bool {
        self.alive.iter().any(|&index| self.processed[index] == identity)
    }

    /// Processes what of a segment is not in the cache.
    fn enter(&mut self, slots: Vec<Slot>) {
        for slot in slots {
            match slot {
                Slot::Token(identity) if !self.holds(identity) => self.process(identity),
                _ => {}
            }
        }
    }

    fn drop_all(&mut self, gone: impl Fn(Identity) -> bool) {
        let processed = &self.processed;
        self.alive.retain(|&index| !gone(processed[index]));
    }
}

impl Oracle {
    /// Replays the records, one cache per root, in file order; also the terms in file order of
    /// generations.
    ///
    /// What was sampled and does not stand in the next call's context leaves the cache before that
    /// call.
    pub fn replay(&self) -> (Vec<Replayed>, Vec<ReplayedTerm>) {
        let mut caches: Vec<Replayed> = Vec::new();
        let mut terms = Vec::new();
        let mut calls = self.calls.iter();
        for record in &self.records {
            let (context, from, segments) = match record {
                Record::Append(append) => (append.context.0, None, append.segments.as_slice()),
                Record::Evict(evict) => {
                    let segments = evict
                        .replacement
                        .as_ref()
                        .map(|replacement| replacement.segments.as_slice());
                    (evict.context.0, Some(evict.from.0), segments.unwrap_or_default())
                }
                Record::Replace(replace) => {
                    (replace.context.0, Some(replace.from.0), replace.segments.as_slice())
                }
                Record::Generation(generation) => {
                    let Some(call) = calls.next() else { continue };
                    let cache = cache(&mut caches, self.roots[&generation.context.0]);
                    cache.drop_all(|identity| !call.context.contains(&identity));
                    let before = cache.processed.len();
                    call.output.iter().for_each(|&identity| cache.process(identity));
                    for scored in self.scored(call) {
                        terms.push(ReplayedTerm {
                            root: cache.root,
                            source: before + scored.offset as usize - 1,
                            scored,
                        });
                    }
                    continue;
                }
                _ => continue,
            };
            let cache = cache(&mut caches, self.roots[&context]);
            if let Some(from) = from {
                let after = &self.contexts[&context];
                let left: HashSet<&Slot> =
                    self.contexts[&from].iter().filter(|slot| !after.contains(slot)).collect();
                cache.drop_all(|identity| left.contains(&Slot::Token(identity)));
            }
            segments.iter().for_each(|segment| cache.enter(self.whole(segment.0)));
        }
        (caches, terms)
    }

    /// The caches one after the other as one sequence, with the keys that each row saw.
    pub fn tape(&self) -> Table {
        let (caches, terms) = self.replay();
        let mut table = Table { rows: vec![Rows::default()], sees: Vec::new() };
        let rows = &mut table.rows[0];
        let mut starts = HashMap::new();
        for cache in &caches {
            let start = rows.tokens.len();
            starts.insert(cache.root, start);
            rows.tokens.extend(self.values(&cache.processed));
            rows.identities.extend(&cache.processed);
            rows.positions.extend(0..cache.processed.len() as i32);
            table.sees.extend(
                cache.saw.iter().map(|saw| saw.iter().map(|key| key + start).collect::<Vec<_>>()),
            );
        }
        for key in 0..table.sees.len() {
            let last = table.sees.iter().rposition(|seen| seen.contains(&key)).unwrap_or(key);
            rows.ends.push(last as i32 + 1);
        }
        for ReplayedTerm { root, source, scored } in &terms {
            let source = (source + starts[root]) as u32;
            rows.terms.push((
                source,
                scored.target,
                scored.generation,
                scored.offset,
                scored.weight,
            ));
        }
        table
    }
}

fn cache(caches: &mut Vec<Replayed>, root: u32) -> &mut Replayed {
    let at = caches.iter().position(|cache| cache.root == root).unwrap_or_else(|| {
        caches.push(Replayed { root, ..Replayed::default() });
        caches.len() - 1
    });
    &mut caches[at]
}

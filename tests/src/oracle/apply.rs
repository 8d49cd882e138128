//! What each operation makes of the list before it.
use pleach_tree::{Evict, Evicted, Place, Record, Role};

use super::{Call, Oracle, Slot};

impl Oracle {
    /// Takes the next record.
    pub fn push(&mut self, record: Record) {
        match &record {
            Record::Header(header) => self.cache = header.cache,
            Record::Segment(segment) => {
                self.segments.insert(segment.id.0, segment.clone());
            }
            Record::Append(append) => {
                let mut list =
                    append.from.map(|from| self.contexts[&from.0].clone()).unwrap_or_default();
                list.extend(append.segments.iter().flat_map(|segment| self.whole(segment.0)));
                self.make(append.context.0, append.from.map(|from| from.0), list);
            }
            Record::Evict(evict) => {
                self.make(evict.context.0, Some(evict.from.0), self.without(evict))
            }
            Record::Replace(replace) => {
                let list =
                    replace.segments.iter().flat_map(|segment| self.whole(segment.0)).collect();
                self.make(replace.context.0, Some(replace.from.0), list);
            }
            Record::Fork(fork) => {
                self.make(fork.context.0, Some(fork.from.0), self.contexts[&fork.from.0].clone())
            }
            Record::Generation(generation) => {
                let context = tokens(&self.contexts[&generation.context.0]);
                let output: Vec<Slot> =
                    generation.output.iter().flat_map(|segment| self.whole(segment.0)).collect();
                self.calls.push(Call {
                    generation: generation.clone(),
                    context,
                    output: tokens(&output),
                });
            }
            _ => {}
        }
        self.records.push(record);
    }

    fn make(&mut self, context: u32, from: Option<u32>, list: Vec<Slot>) {
        let root = from.map_or(context, |from| self.roots[&from]);
        self.roots.insert(context, root);
        self.contexts.insert(context, list);
    }

    /// The list after an eviction, with its replacement in its place.
    fn without(&self, evict: &Evict) -> Vec<Slot> {
        let before = &self.contexts[&evict.from.0];
        let hole = |slot: Slot| evict.evicted.iter().position(|entry| takes(entry, slot));
        let kept: Vec<Slot> = before.iter().copied().filter(|&slot| hole(slot).is_none()).collect();
        let Some(replacement) = &evict.replacement else { return kept };
        let segments: Vec<Vec<Slot>> =
            replacement.segments.iter().map(|segment| self.whole(segment.0)).collect();
        let system = |slot: &&Slot| {
            self.segments.get(&slot.segment()).is_some_and(|segment| segment.role == Role::System)
        };
        let at = match replacement.place {
            Place::InPlace if segments.len() == evict.evicted.len() => {
                return in_each_hole(before, hole, &segments);
            }
            Place::InPlace | Place::BeforeFirst => {
                before.iter().take_while(|&&slot| hole(slot).is_none()).count()
            }
            Place::Head => kept.iter().take_while(system).count(),
            Place::AfterKept => kept.len(),
            Place::Index(index) => {
                piece_starts(&kept).get(index as usize).copied().unwrap_or(kept.len())
            }
        };
        [&kept[..at], &segments.concat(), &kept[at..]].concat()
    }
}

pub(super) fn tokens(slots: &[Slot]) -> Vec<super::Identity> {
    let token = |slot: &Slot| match slot {
        Slot::Token(identity) => Some(*identity),
        Slot::Empty(_) => None,
    };
    slots.iter().filter_map(token).collect()
}

fn takes(entry: &Evicted, slot: Slot) -> bool {
    let inside = match (slot, entry.tokens) {
        (_, None) => true,
        (Slot::Token((_, offset)), Some((start, end))) => (start..end).contains(&offset),
        (Slot::Empty(_), Some(range)) => range == (0, 0),
    };
    entry.segment.0 == slot.segment() && inside
}

fn in_each_hole(
    before: &[Slot],
    hole: impl Fn(Slot) -> Option<usize>,
    segments: &[Vec<Slot>],
) -> Vec<Slot> {
    let mut filled = vec![false; segments.len()];
    let mut list = Vec::new();
    for &slot in before {
        match hole(slot) {
            None => list.push(slot),
            Some(entry) if !std::mem::replace(&mut filled[entry], true) => {
                list.extend(&segments[entry])
            }
            Some(_) => {}
        }
    }
    list
}

/// Where each contiguous piece of a segment begins.
pub(crate) fn piece_starts(list: &[Slot]) -> Vec<usize> {
    let continues = |at: usize| match (list[at - 1], list[at]) {
        (Slot::Token((a, before)), Slot::Token((b, offset))) => a == b && offset == before + 1,
        _ => false,
    };
    (0..list.len()).filter(|&at| at == 0 || !continues(at)).collect()
}

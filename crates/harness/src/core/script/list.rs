//! A list that a harness rewrote, as the operation that makes it from the one before.
use std::collections::VecDeque;
use std::ops::Range;

use pleach_tree::diff::{Diff, Gap};
use pleach_tree::{
    ContextId, Evict, Evicted, Origin, Place, Replace, Replacement, ReplacementKind, Segment,
    SegmentId,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::play::{Play, State};
use super::step::{Change, Item, List};
use super::{Spot, content_number};
use crate::core::ledger::{Held, Ledger};

/// A list that is to be made, item by item.
enum Slot {
    There(SegmentId),
    New(Box<Segment>),
    /// A message that is told by its content and stands nowhere in the order of the list.
    Told(Box<Segment>),
}

impl Play<'_> {
    pub(super) fn list(&mut self, at: usize, list: List, spot: &Spot, state: &mut State) {
        let before = self.draft.ledger.list(state.held);
        let slots = self.slots(list.items, &before);
        let (mut all, mut after) =
            (Vec::with_capacity(slots.len()), Vec::with_capacity(slots.len()));
        let mut there = FxHashSet::default();
        for slot in slots {
            let id = match slot {
                Slot::There(id) => id,
                Slot::New(segment) | Slot::Told(segment) => {
                    let written = self.write(vec![*segment], spot);
                    self.written[at].extend_from_slice(&written);
                    written[0]
                }
            };
            all.push(id);
            if there.insert(id) {
                after.push(id);
            }
        }
        self.lists.insert(at, all);
        if list.change.compacts && after.starts_with(&before) && !before.is_empty() {
            self.draft.warn(&spot.at, "", "nothing-removed", "the compaction removes nothing");
        }
        state.held = Some(self.reach(state.held, &before, after, &list.change));
    }

    /// Finds what of the items is there already; a message that is told by content is matched from
    /// the end, in order.
    fn slots(&self, items: Vec<Item>, before: &[SegmentId]) -> Vec<Slot> {
        let places: FxHashMap<SegmentId, usize> =
            before.iter().enumerate().map(|(at, &id)| (id, at)).collect();
        let mut by_print: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        if let Some(prints) = &self.player.prints {
            for (at, id) in before.iter().enumerate() {
                by_print.entry(prints[id.0 as usize]).or_default().push(at);
            }
        }
        let mut bound = before.len();
        let mut slots = Vec::new();
        for item in items.into_iter().rev() {
            let known: Vec<SegmentId> = match item {
                Item::Of(node) => {
                    self.written[node].iter().map(|&id| self.form(id, &places)).collect()
                }
                Item::Part(node, part) => self.written[node]
                    .get(part)
                    .map(|&id| self.form(id, &places))
                    .into_iter()
                    .collect(),
                Item::Listed(node, range) => {
                    let list =
                        self.lists.get(&node).and_then(|list| list.get(range)).unwrap_or_default();
                    list.iter().map(|&id| self.form(id, &places)).collect()
                }
                Item::New(segments) => {
                    slots.extend(
                        segments.into_iter().rev().map(|segment| Slot::New(Box::new(segment))),
                    );
                    continue;
                }
                Item::Told(segments) => {
                    for mut segment in segments.into_iter().rev() {
                        let places = by_print.get(&content_number(std::slice::from_ref(&segment)));
                        let same = places.and_then(|places| {
                            let end = places.partition_point(|&place| place < bound);
                            let same = |&&place: &&usize| self.says(before[place], &segment);
                            places[..end].iter().rev().find(same).copied()
                        });
                        bound = same.unwrap_or(bound);
                        // No call is known to have said it.
                        if segment.origin == Origin::Policy {
                            segment.origin = Origin::ExternalModel;
                        }
                        slots.push(match same {
                            Some(place) => Slot::There(before[place]),
                            None => Slot::Told(Box::new(segment)),
                        });
                    }
                    continue;
                }
            };
            for id in known.into_iter().rev() {
                bound = places.get(&id).map_or(bound, |&place| bound.min(place));
                slots.push(Slot::There(id));
            }
        }
        slots.reverse();
        self.moved(&mut slots, before, &by_print);
        slots
    }

    /// Finds messages that stand elsewhere now: where the order of a list does not tell what a
    /// message was, it is the newest one of its content that no other one is.
    fn moved(
        &self,
        slots: &mut [Slot],
        before: &[SegmentId],
        by_print: &FxHashMap<u64, Vec<usize>>,
    ) {
        let there = |slot: &Slot| match slot {
            Slot::There(id) => Some(*id),
            Slot::New(_) | Slot::Told(_) => None,
        };
        let mut taken: FxHashSet<SegmentId> = slots.iter().filter_map(there).collect();
        for slot in slots.iter_mut().rev() {
            let Slot::Told(segment) = slot else { continue };
            let places = by_print.get(&content_number(std::slice::from_ref(segment.as_ref())));
            let mut ids = places.into_iter().flatten().rev().map(|&place| before[place]);
            if let Some(id) = ids.find(|&id| !taken.contains(&id) && self.says(id, segment)) {
                taken.insert(id);
                *slot = Slot::There(id);
            }
        }
    }

    /// What stands in the context for a segment.
    fn form(&self, id: SegmentId, there: &FxHashMap<SegmentId, usize>) -> SegmentId {
        if there.contains_key(&id) {
            return id;
        }
        let forms = self.player.forms.get(&id).map_or(&[][..], Vec::as_slice);
        forms.iter().copied().find(|form| there.contains_key(form)).unwrap_or(id)
    }

    fn says(&self, id: SegmentId, other: &Segment) -> bool {
        self.draft.ledger.written(id).is_some_and(|segment| {
            (segment.role, segment.part, &segment.text, &segment.result_of)
                == (other.role, other.part, &other.text, &other.result_of)
        })
    }

    /// Writes the operation that makes `after` from `before`.
    fn reach(
        &mut self,
        from: Option<Held>,
        before: &[SegmentId],
        after: Vec<SegmentId>,
        change: &Change,
    ) -> Held {
        let by = self.by(change);
        let ledger = &mut self.draft.ledger;
        let Some(held) = from else { return ledger.append(None, after) };
        if after == before {
            return held;
        }
        if let Some(rest) = after.strip_prefix(before) {
            return ledger.append(from, rest.to_vec());
        }
        let swapped = swapped(ledger, before, &after);
        let (held, before) = match swapped
            .as_ref()
            .filter(|(list, _)| Cut::of(list, &after, |id| ledger.is_system(id)).is_some())
        {
            Some((list, evict)) => {
                let evict = evict.clone().with_author(by.clone()).with_evidence(change.evidence);
                let evict = Evict { trigger: change.trigger, ..evict };
                (ledger.evict(held, evict, list), list.as_slice())
            }
            None => (held, before),
        };
        let Some(cut) = Cut::of(before, &after, |id| ledger.is_system(id)) else {
            let held = match change.compacts.then(|| leaves(before, &after)).flatten() {
                Some((list, gone, put)) => {
                    let put = (!put.is_empty())
                        .then(|| Replacement::new(change.kind, put, Place::AfterKept));
                    let evict = Evict { replacement: put, ..change.evict(held, gone, by.clone()) };
                    ledger.evict(held, evict, &list)
                }
                None => held,
            };
            let replace = Replace::new(held.id, after).with_author(by);
            return ledger.replace(held, replace);
        };
        let is_result =
            |id: &SegmentId| ledger.written(*id).is_some_and(|segment| segment.result_of.is_some());
        let kind = match cut.put.as_slice() {
            [] => ReplacementKind::None,
            // What stands for results, and for nothing else, is no summary.
            put if put.iter().all(is_result) => ReplacementKind::Placeholder,
            // What takes the place of something is not nothing.
            _ if change.kind == ReplacementKind::None => ReplacementKind::Placeholder,
            _ => change.kind,
        };
        let replacement = (!cut.put.is_empty()).then(|| Replacement::new(kind, cut.put, cut.place));
        let evict = Evict { replacement, ..change.evict(held, cut.evicted, by) };
        let end = after.len() - cut.behind;
        let held = ledger.evict(held, evict, &after[..end]);
        if cut.behind == 0 { held } else { ledger.append(Some(held), after[end..].to_vec()) }
    }
}

/// The eviction of results by others of the same calls, where something else leaves as well, and
/// the list behind it.
fn swapped(
    ledger: &Ledger,
    before: &[SegmentId],
    after: &[SegmentId],
) -> Option<(Vec<SegmentId>, Evict)> {
    let stays: FxHashSet<SegmentId> = after.iter().copied().collect();
    let known: FxHashSet<SegmentId> = before.iter().copied().collect();
    let call = |id: SegmentId| ledger.written(id).and_then(|segment| segment.result_of.as_deref());
    let fresh = after.iter().copied().filter(|id| !known.contains(id));
    // Several calls may have one id: what is new stands for the results in their order.
    let mut by_call: FxHashMap<&str, VecDeque<SegmentId>> = FxHashMap::default();
    for (call, id) in fresh.filter_map(|id| Some((call(id)?, id))) {
        by_call.entry(call).or_default().push_back(id);
    }
    let (mut evicted, mut put) = (Vec::new(), Vec::new());
    let swap = |&id: &SegmentId| {
        let new = call(id).filter(|_| !stays.contains(&id));
        let new = new.and_then(|call| by_call.get_mut(call)?.pop_front());
        evicted.extend(new.map(|_| Evicted::whole(id)));
        put.extend(new);
        new.unwrap_or(id)
    };
    let list: Vec<SegmentId> = before.iter().map(swap).collect();
    let alone = list.iter().all(|id| stays.contains(id));
    let replacement = Replacement::new(ReplacementKind::Placeholder, put, Place::InPlace);
    let evict = Evict::new(ContextId(0), evicted).with_replacement(replacement);
    (!alone && !evict.evicted.is_empty()).then_some((list, evict))
}

/// What leaves where what stays changes its order, and what is put for it: the list without the one
/// and with the other behind it, then each of the two; none where nothing leaves.
fn leaves(
    before: &[SegmentId],
    after: &[SegmentId],
) -> Option<(Vec<SegmentId>, Vec<SegmentId>, Vec<SegmentId>)> {
    let (known, stays): (FxHashSet<SegmentId>, FxHashSet<SegmentId>) =
        (before.iter().copied().collect(), after.iter().copied().collect());
    let (kept, gone): (Vec<SegmentId>, Vec<SegmentId>) =
        before.iter().partition(|id| stays.contains(id));
    let put: Vec<SegmentId> = after.iter().copied().filter(|id| !known.contains(id)).collect();
    let list = kept.into_iter().chain(put.iter().copied()).collect();
    (!gone.is_empty()).then_some((list, gone, put))
}

/// One eviction, and what is appended behind it.
#[derive(Debug)]
struct Cut {
    evicted: Vec<SegmentId>,
    put: Vec<SegmentId>,
    place: Place,
    /// How many segments at the end are appended.
    behind: usize,
}

impl Cut {
    /// The eviction that makes `after` from `before`, where there is one.
    fn of(
        before: &[SegmentId],
        after: &[SegmentId],
        is_system: impl Fn(SegmentId) -> bool,
    ) -> Option<Self> {
        let diff = Diff::new(before, after, 1);
        let gaps = diff.gaps();
        let evicted: Vec<SegmentId> =
            gaps.iter().flat_map(|gap| &before[gap.old.clone()]).copied().collect();
        if evicted.is_empty() || !diff.moved(before, after).is_empty() {
            return None;
        }
        if let Some((put, behind)) = one_each(&gaps, before.len()) {
            let put = put.into_iter().flat_map(|put| &after[put]).copied().collect();
            return Some(Self { evicted, put, place: Place::InPlace, behind });
        }
        // Runs of new segments, each with how many kept ones stand before it.
        let mut inserted = 0;
        let mut runs = Vec::new();
        for gap in gaps.iter().filter(|gap| !gap.new.is_empty()) {
            runs.push((gap.new.start - inserted, gap.new.clone()));
            inserted += gap.new.len();
        }
        let kept = after.len() - inserted;
        let behind = match runs.as_slice() {
            [_, (last, run)] if *last == kept => run.len(),
            [] | [_] => 0,
            _ => return None,
        };
        let Some((position, put)) = runs.into_iter().next() else {
            return Some(Self { evicted, put: Vec::new(), place: Place::InPlace, behind });
        };
        let hole = gaps.iter().find(|gap| !gap.old.is_empty()).map_or(kept, |gap| gap.old.start);
        let leading = before.iter().take_while(|&&id| is_system(id)).count();
        let leave: usize =
            gaps.iter().map(|gap| gap.old.end.min(leading).saturating_sub(gap.old.start)).sum();
        let place = match position {
            position if position == leading - leave => Place::Head,
            position if position == hole => Place::BeforeFirst,
            position if position == kept => Place::AfterKept,
            position => Place::Index(u32::try_from(position).ok()?),
        };
        Some(Self { evicted, put: after[put].to_vec(), place, behind })
    }
}

/// What stands for each segment that leaves, where something stands in the place of each: where
/// that stands in the new list, and how many segments come behind it all.
fn one_each(gaps: &[Gap], old_end: usize) -> Option<(Vec<Range<usize>>, usize)> {
    let mut behind = 0;
    let mut put = Vec::with_capacity(gaps.len());
    for gap in gaps {
        let more = gap.new.len().checked_sub(gap.old.len())?;
        if more > 0 && gap.old.end < old_end {
            return None;
        }
        behind += more;
        put.push(gap.new.start..gap.new.end - more);
    }
    Some((put, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(before: &[u32], after: &[u32]) -> Option<(Vec<u32>, Vec<u32>, Place, usize)> {
        let ids = |list: &[u32]| list.iter().copied().map(SegmentId).collect::<Vec<_>>();
        let found = Cut::of(&ids(before), &ids(after), |id| id.0 == 0)?;
        let numbers = |list: Vec<SegmentId>| list.into_iter().map(|id| id.0).collect();
        Some((numbers(found.evicted), numbers(found.put), found.place, found.behind))
    }

    #[test]
    fn a_summary_stands_at_the_head_or_at_the_end_or_counts_what_stands_before_it() {
        assert_eq!(cut(&[0, 1, 2, 3], &[0, 9, 3]), Some((vec![1, 2], vec![9], Place::Head, 0)));
        assert_eq!(
            cut(&[0, 1, 2, 3], &[0, 3, 9]),
            Some((vec![1, 2], vec![9], Place::AfterKept, 0))
        );
        assert_eq!(
            cut(&[0, 1, 2, 3, 4], &[0, 1, 9, 4]),
            Some((vec![2, 3], vec![9], Place::BeforeFirst, 0))
        );
        assert_eq!(
            cut(&[0, 1, 2, 3, 4], &[0, 2, 3, 9, 4]),
            Some((vec![1], vec![9], Place::Index(3), 0))
        );
    }

    #[test]
    fn what_comes_behind_a_replacement_is_appended() {
        assert_eq!(
            cut(&[0, 1, 2, 3], &[0, 9, 3, 7, 8]),
            Some((vec![1, 2], vec![9], Place::Head, 2))
        );
        assert_eq!(cut(&[1, 2, 3], &[1, 9, 3, 7]), Some((vec![2], vec![9], Place::InPlace, 1)));
    }

    #[test]
    fn placeholders_stand_one_in_each_hole() {
        assert_eq!(
            cut(&[1, 2, 3, 4], &[1, 8, 3, 9]),
            Some((vec![2, 4], vec![8, 9], Place::InPlace, 0))
        );
    }

    #[test]
    fn another_order_or_an_insertion_that_takes_nothing_out_is_a_list_of_its_own() {
        assert_eq!(cut(&[1, 2, 3], &[2, 1]), None);
        assert_eq!(cut(&[1, 2], &[1, 9, 2]), None);
    }
}

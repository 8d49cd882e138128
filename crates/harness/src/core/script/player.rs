//! The operations that contexts come from: segments written, calls made, results swapped, a context
//! reduced to what is kept of it.
use pleach_tree::{
    By, Evict, Evicted, Generation, GenerationId, Origin, Part, Place, Replace, Replacement,
    Segment, SegmentId, Source,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::step::{Call, Change, Swap};
use super::{Spot, content_number};
use crate::core::draft::Draft;
use crate::core::ledger::{Held, Ledger};

/// Makes the contexts and generations of a conversion, and knows which segments stand for what
/// tools answered.
///
/// A [`Script`](super::Script) is played through it, and so is a session whose order only its own
/// adapter knows.
#[derive(Debug)]
pub(crate) struct Player {
    /// The segments that stand or stood for a tool call's result.
    results: FxHashMap<String, Vec<SegmentId>>,
    /// What each result was swapped for, over time.
    pub(super) forms: FxHashMap<SegmentId, Vec<SegmentId>>,
    /// The result that each of those stands for.
    roots: FxHashMap<SegmentId, SegmentId>,
    /// A number for the content of each segment, where a list is told by content.
    pub(super) prints: Option<Vec<u64>>,
}

/// Where a call is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) spot: &'a Spot,
    /// The key in the log that says what stands before it.
    pub(crate) key: &'a str,
    pub(crate) thread: &'a str,
    pub(crate) rollout: Option<&'a str>,
    /// Whether the call is that of another log or thread, so that it is no generation here.
    pub(crate) copied: bool,
}

/// A call that was made.
#[derive(Debug)]
pub(crate) struct Called {
    /// The context of its request.
    pub(crate) held: Held,
    /// None of a copy.
    pub(crate) generation: Option<GenerationId>,
    pub(crate) output: Vec<SegmentId>,
}

impl Player {
    /// Nothing written yet; `prints` where segments are found by their content.
    pub(crate) fn new(prints: bool) -> Self {
        Self {
            results: FxHashMap::default(),
            forms: FxHashMap::default(),
            roots: FxHashMap::default(),
            prints: prints.then(Vec::new),
        }
    }

    /// Writes segments, each with the source that it has, else that of `spot`.
    pub(crate) fn write(
        &mut self,
        draft: &mut Draft,
        segments: Vec<Segment>,
        spot: &Spot,
    ) -> Vec<SegmentId> {
        segments.into_iter().map(|segment| self.write_one(draft, segment, spot)).collect()
    }

    /// Writes one segment, with the source that it has, else that of `spot`.
    pub(crate) fn write_one(
        &mut self,
        draft: &mut Draft,
        mut segment: Segment,
        spot: &Spot,
    ) -> SegmentId {
        let here = || Source { file: spot.file, line: spot.at.line, key: String::new() };
        let source = segment.source.take().unwrap_or_else(here);
        let call = segment.result_of.clone();
        if let Some(prints) = &mut self.prints {
            prints.push(content_number(std::slice::from_ref(&segment)));
        }
        let id = draft.ledger.segment(source, segment);
        if let Some(call) = call {
            self.results.entry(call).or_default().push(id);
        }
        id
    }

    /// Makes a call on a context; what stands behind nothing at all carries no loss.
    pub(crate) fn call(
        &mut self,
        draft: &mut Draft,
        held: Option<Held>,
        call: Call,
        site: Site,
    ) -> Called {
        let held = held.unwrap_or_else(|| draft.ledger.append(None, Vec::new()));
        let mut output = call.output;
        if draft.ledger.extent(held).0 == 0 {
            let message = "nothing stands before the call; its text carries no loss";
            draft.fault(&site.spot.at, site.key, "empty-context", message);
            output
                .iter_mut()
                .filter(|said| said.origin == Origin::Policy)
                .for_each(|said| said.origin = Origin::ExternalModel);
        }
        let mut unrecorded = call.unrecorded;
        if output
            .iter()
            .any(|said| said.part == Some(Part::Reasoning) && said.origin != Origin::Policy)
        {
            unrecorded.push("reasoning".into());
        }
        let output = self.write(draft, output, site.spot);
        if site.copied {
            return Called { held, generation: None, output };
        }
        let mut generation = Generation::new(GenerationId(0), held.id, output.clone());
        site.thread.clone_into(&mut generation.thread);
        if let Some(rollout) = site.rollout {
            rollout.clone_into(&mut generation.rollout);
        }
        generation.policy = call.model.as_deref().map(str::to_owned);
        generation.unrecorded = unrecorded;
        Called { held, generation: Some(draft.ledger.generation(generation)), output }
    }

    /// What stands for the results of a call in a context of these segments: several where calls
    /// share an id.
    pub(crate) fn standing<'s>(
        &'s self,
        call: &str,
        there: &'s FxHashSet<SegmentId>,
    ) -> impl Iterator<Item = SegmentId> + 's {
        let results = self.results.get(call).map_or(&[][..], Vec::as_slice);
        results.iter().copied().filter(|form| there.contains(form))
    }

    /// What stands for a result in a context of these segments; the result itself where nothing
    /// does.
    pub(crate) fn form(&self, result: SegmentId, there: &FxHashSet<SegmentId>) -> SegmentId {
        let forms = self.forms.get(&result).map_or(&[][..], Vec::as_slice);
        let all = || std::iter::once(result).chain(forms.iter().copied());
        all().find(|form| there.contains(form)).unwrap_or(result)
    }

    /// What of a call's results is to be cleared next: where several calls have one id, one that
    /// nothing was put for yet.
    fn uncleared(
        &self,
        call: &str,
        there: &FxHashSet<SegmentId>,
        holes: &FxHashMap<SegmentId, SegmentId>,
    ) -> Option<SegmentId> {
        let forms = self.results.get(call)?;
        let mut left =
            forms.iter().copied().filter(|form| there.contains(form) && !holes.contains_key(form));
        let first = left.clone().next();
        left.find(|form| !self.roots.contains_key(form)).or(first)
    }

    /// Puts something else for results, where they stand.
    pub(crate) fn swap(
        &mut self,
        draft: &mut Draft,
        held: Option<Held>,
        swap: Swap,
        by: By,
        spot: &Spot,
    ) -> Option<Held> {
        let list = draft.ledger.list(held);
        let there: FxHashSet<SegmentId> = list.iter().copied().collect();
        let mut holes: FxHashMap<SegmentId, SegmentId> = FxHashMap::default();
        let mut evicted = Vec::new();
        for (call, segment) in swap.results {
            if self.standing(&call, &there).next().is_none() {
                let message =
                    format!("the result of call {call} is not in the context; it is passed over");
                draft.fault(&spot.at, swap.key, "cleared-missing", message);
            }
            while let Some(hole) = self.uncleared(&call, &there, &holes) {
                let put = self.write_one(draft, segment.clone(), spot);
                holes.insert(hole, put);
                evicted.push(hole);
                let root = self.roots.get(&hole).copied().unwrap_or(hole);
                self.roots.insert(put, root);
                self.forms.entry(root).or_default().push(put);
                if !swap.every {
                    break;
                }
            }
        }
        let from = held?;
        if evicted.is_empty() {
            return held;
        }
        let put = evicted.iter().map(|hole| holes[hole]).collect();
        let after: Vec<SegmentId> =
            list.into_iter().map(|id| holes.get(&id).copied().unwrap_or(id)).collect();
        let replacement = Replacement::new(swap.change.kind, put, Place::InPlace);
        let evict = swap.change.evict(from, evicted, by).with_replacement(replacement);
        Some(draft.ledger.evict(from, evict, &after))
    }
}

/// What is left of a context, and what is put at its head or behind it.
#[derive(Debug)]
pub(crate) struct Reduced {
    /// What is kept, in its new order.
    pub(crate) kept: Vec<SegmentId>,
    /// What is put in place of the rest.
    pub(crate) put: Vec<SegmentId>,
    /// Whether that stands behind what is kept.
    pub(crate) put_last: bool,
}

impl Reduced {
    /// Writes the operation that reduces a context, whose kept instructions stay at its head; where what is kept changes its order or was not
    /// there, that is a list of its own.
    pub(crate) fn reduce(
        self,
        ledger: &mut Ledger,
        from: Option<Held>,
        change: &Change,
        by: By,
    ) -> Held {
        let before = ledger.list(from);
        let leading = match self.put_last {
            true => self.kept.len(),
            false => self.kept.iter().take_while(|&&id| ledger.is_system(id)).count(),
        };
        let (head, behind) = self.kept.split_at(leading);
        let after: Vec<SegmentId> =
            [head, &self.put, behind].into_iter().flatten().copied().collect();
        let Some(from) = from else { return ledger.append(None, after) };
        let stays: FxHashSet<SegmentId> = self.kept.iter().copied().collect();
        let (kept, evicted): (Vec<SegmentId>, Vec<SegmentId>) =
            before.into_iter().partition(|id| stays.contains(id));
        if evicted.is_empty() || kept != self.kept {
            return ledger.replace(from, Replace::new(from.id, after).with_author(by));
        }
        let place = if self.put_last { Place::AfterKept } else { Place::Head };
        let replacement = Replacement::new(change.kind, self.put, place);
        let evict = change.evict(from, evicted, by).with_replacement(replacement);
        ledger.evict(from, evict, &after)
    }
}

impl Change {
    /// The eviction of whole segments that the change is.
    pub(crate) fn evict(&self, from: Held, evicted: Vec<SegmentId>, by: By) -> Evict {
        let evicted: Vec<Evicted> = evicted.into_iter().map(Evicted::whole).collect();
        let evict = Evict::new(from.id, evicted).with_author(by).with_evidence(self.evidence);
        Evict { trigger: self.trigger, ..evict }
    }
}

#[cfg(test)]
mod tests {
    use pleach_tree::{ByKind, Fidelity, Location, ReadOptions, Record, ReplacementKind, Role};

    use super::*;
    use crate::core::script::{result, text};

    /// A context of one prompt and the results of two calls, and what else is known of it.
    fn played() -> (Draft, Player, Spot, Vec<SegmentId>, Held) {
        let mut draft = Draft::new("test", Fidelity::Message, ReadOptions::STRICT);
        let spot = Spot { file: 0, at: Location::line(&"log".into(), 1) };
        let mut player = Player::new(false);
        let segments = vec![
            text(Role::User, Origin::Human, "go"),
            result("a", "one", false),
            result("b", "two", false),
        ];
        let ids = player.write(&mut draft, segments, &spot);
        let held = draft.ledger.append(None, ids.clone());
        (draft, player, spot, ids, held)
    }

    fn last(draft: Draft) -> Option<Record> {
        draft.ledger.into_records().pop()
    }

    #[test]
    fn a_reduced_context_has_what_is_put_at_its_head_or_behind_what_is_kept() {
        for (put_last, place) in [(false, Place::Head), (true, Place::AfterKept)] {
            let (mut draft, mut player, spot, ids, held) = played();
            let summary = text(Role::User, Origin::Harness, "summary");
            let summary = player.write_one(&mut draft, summary, &spot);
            let reduced = Reduced { kept: vec![ids[2]], put: vec![summary], put_last };
            let change = Change::new(ReplacementKind::Summary);
            let by = By::new(ByKind::Unknown);
            let after = reduced.reduce(&mut draft.ledger, Some(held), &change, by);
            let list = draft.ledger.list(Some(after));
            assert_eq!(list, if put_last { [ids[2], summary] } else { [summary, ids[2]] });
            let Some(Record::Evict(evict)) = last(draft) else { panic!("not an eviction") };
            let replacement = evict.replacement.as_ref().unwrap();
            assert_eq!((evict.evicted.len(), replacement.place), (2, place));
        }
    }

    #[test]
    fn a_context_that_keeps_its_segments_in_another_order_is_a_list_of_its_own() {
        let (mut draft, _, _, ids, held) = played();
        let reduced = Reduced { kept: vec![ids[2], ids[0]], put: Vec::new(), put_last: false };
        let (change, by) = (Change::new(ReplacementKind::Summary), By::new(ByKind::Unknown));
        reduced.reduce(&mut draft.ledger, Some(held), &change, by);
        assert!(
            matches!(last(draft), Some(Record::Replace(list)) if list.segments == [ids[2], ids[0]])
        );
    }

    #[test]
    fn what_was_put_for_a_result_stands_for_the_same_call() {
        let (mut draft, mut player, spot, ids, held) = played();
        let results = vec![("a".into(), result("a", "cleared", false))];
        let swap = Swap {
            results,
            every: false,
            change: Change::new(ReplacementKind::Placeholder),
            key: "ids",
        };
        let after = player.swap(&mut draft, Some(held), swap, By::rule("clear"), &spot);
        let list = draft.ledger.list(after);
        assert_eq!((list[0], list[2], list.len()), (ids[0], ids[2], 3));
        let there = list.iter().copied().collect();
        assert_eq!(player.standing("a", &there).collect::<Vec<_>>(), [list[1]]);
        assert_eq!(player.form(ids[1], &there), list[1]);
        assert!(list[1] != ids[1]);
    }

    #[test]
    fn a_copied_call_is_no_generation() {
        let (mut draft, mut player, spot, _, held) = played();
        for copied in [true, false] {
            let said = text(Role::Assistant, Origin::Policy, "done");
            let call = Call { output: vec![said], ..Call::default() };
            let site = Site { spot: &spot, key: "", thread: "main", rollout: None, copied };
            let called = player.call(&mut draft, Some(held), call, site);
            assert_eq!((called.held, called.output.len()), (held, 1));
            assert_eq!(called.generation.is_none(), copied);
        }
    }
}

//! A prompt that keeps runs of the list before it, as evictions and what is put for them.
use std::ops::Range;

use pleach_tree::diff::{Gap, KeptRun, moved};
use pleach_tree::{
    By, ByKind, Evict, Evicted, Evidence, GenerationId, Place, Replace, Replacement,
    ReplacementKind, SegmentId,
};

use super::call::Call;
use super::follow::{Prompts, Ready};
use super::head::{Head, Heads};
use super::{Id, Units};
use crate::core::draft::Draft;
use crate::core::ledger::Held;

/// An edit while it is written.
struct Edit<'e> {
    head: &'e Head,
    heads: &'e Heads,
    call: &'e Call,
    held: Held,
    /// What stands at each unit of the prompt.
    ids: Vec<Option<Id>>,
}

/// Ids that a tokeniser may make anew at a boundary, on either side.
const RETOKENISED: usize = 16;
/// Tokens up to which what stands for a stretch is a placeholder.
const PLACEHOLDER: usize = 32;

impl<U: Units> Prompts<U> {
    pub(super) fn edit(
        &self,
        draft: &mut Draft,
        heads: &Heads,
        head: &Head,
        kept: &[KeptRun],
        call: &Call,
    ) -> Ready {
        let (held, end) = self.start(draft, head, kept, call);
        let mut edit = Edit { head, heads, call, held, ids: vec![None; call.prompt.len()] };
        for run in kept {
            for at in 0..run.len {
                edit.ids[run.new + at] = Some(head.ids[run.old + at]);
            }
        }
        let mut gaps = gaps(kept, end, call.prompt.len());
        let tail = gaps.pop().unwrap_or(Gap { old: end..end, new: 0..0 });
        if U::SPLITS {
            gaps.iter_mut()
                .filter(|gap| gap.old.is_empty())
                .for_each(|gap| widen(gap, &mut edit.ids));
        }
        let moved = match U::SPLITS {
            true => Vec::new(),
            false => moved(
                &[gaps.as_slice(), std::slice::from_ref(&tail)].concat(),
                &head.units,
                &call.prompt,
            ),
        };
        let inserts = gaps.iter().any(|gap| gap.old.is_empty());
        if !U::SPLITS && (inserts || !moved.is_empty()) {
            self.replace(draft, &mut edit, &gaps, &tail, &moved);
        } else {
            self.evictions(draft, &mut edit, gaps, tail);
        }
        let prefix =
            kept.first().filter(|run| (run.old, run.new) == (0, 0)).map_or(0, |run| run.len);
        let cuts = head.cuts.iter().copied().filter(|&cut| cut < prefix).chain([prefix]).collect();
        let ids = edit.ids.into_iter().flatten().collect();
        Ready { held: edit.held, ids, marks: head.marks_within(prefix), cuts }
    }

    /// The context that things leave: with what the call before said, where any of that is kept or
    /// nothing else can leave.
    fn start(
        &self,
        draft: &mut Draft,
        head: &Head,
        kept: &[KeptRun],
        call: &Call,
    ) -> (Held, usize) {
        let reach = kept.last().map_or(0, |last| last.old + last.len);
        let behind = kept.last().and_then(|last| call.prompt.get(last.new_end()));
        let answered =
            reach == head.prompt && behind.is_some_and(|&unit| self.units.is_answer(unit));
        let untouched = kept
            .first()
            .is_some_and(|first| (first.old, first.new) == (0, 0) && first.len >= head.prompt);
        if head.output.is_empty() || reach <= head.prompt && !untouched && !answered {
            return (head.context, head.prompt);
        }
        (draft.ledger.append(Some(head.context), head.output.clone()), head.units.len())
    }

    /// Gives the whole list, each message that is there already under its own identity; `moved` are
    /// the places of those that stand elsewhere now.
    fn replace(
        &self,
        draft: &mut Draft,
        edit: &mut Edit<'_>,
        gaps: &[Gap],
        tail: &Gap,
        moved: &[(usize, usize)],
    ) {
        let mut end = tail.new.start;
        for &(old, new) in moved {
            edit.ids[new] = Some(edit.head.ids[old]);
            end = end.max(new + 1);
        }
        let places = gaps.iter().flat_map(|gap| gap.new.clone());
        let brought: Vec<u32> =
            places.filter(|&at| edit.ids[at].is_none()).map(|at| edit.call.prompt[at]).collect();
        let (by, _) = self.author(edit, &brought);
        let open: Vec<usize> = (0..end).filter(|&at| edit.ids[at].is_none()).collect();
        for at in open {
            self.put(draft, edit, at..at + 1);
        }
        let segments: Vec<SegmentId> =
            edit.ids[..end].iter().flatten().map(|id| id.segment).collect();
        let replace = Replace::new(edit.held.id, segments).with_author(by);
        edit.held = draft.ledger.replace(edit.held, replace.with_evidence(Evidence::Inferred));
        self.append(draft, edit, end..tail.new.end);
    }

    fn evictions(&self, draft: &mut Draft, edit: &mut Edit<'_>, gaps: Vec<Gap>, mut tail: Gap) {
        let mut pairs: Vec<(ReplacementKind, Gap)> = Vec::new();
        let (mut trims, mut others) = (Vec::new(), Vec::new());
        let mut rewritten: Vec<Gap> = Vec::new();
        for gap in gaps {
            match self.pair(edit, &gap) {
                _ if self.rewritten(edit, &gap) == Some(gap.new.end) => rewritten.push(gap),
                Some(kind) => pairs.push((kind, gap)),
                None if gap.new.is_empty() => trims.push(gap),
                None => others.push(gap),
            }
        }
        if let Some(end) = self.rewritten(edit, &tail) {
            rewritten.push(Gap { new: tail.new.start..end, ..tail.clone() });
            tail = Gap { old: tail.old.end..tail.old.end, new: end..tail.new.end };
        }
        if !tail.old.is_empty() {
            let first = Gap {
                new: tail.new.start..tail.new.end.min(tail.new.start + tail.old.len()),
                ..tail.clone()
            };
            // Nothing that stands behind shows that each message is in the place of another one,
            // but for results of the same calls.
            let results = tail.old.clone().all(|at| self.units.is_result(edit.head.units[at]));
            let cut = match self.pair(edit, &first).filter(|_| results) {
                Some(kind) => {
                    let end = first.new.end;
                    pairs.push((kind, first));
                    end
                }
                None if tail.new.is_empty() => {
                    trims.push(tail.clone());
                    tail.new.end
                }
                None if self.retokenised_tail(edit, &tail) => {
                    others.push(Gap { new: tail.new.start..tail.new.start, ..tail.clone() });
                    tail.new.start
                }
                None => {
                    let end = self.summary_end(edit, &tail.new);
                    others.push(Gap { new: tail.new.start..end, ..tail.clone() });
                    end
                }
            };
            tail.new.start = cut;
        }
        for kind in [ReplacementKind::Truncation, ReplacementKind::Placeholder] {
            let of: Vec<Gap> =
                pairs.iter().filter(|(of, _)| *of == kind).map(|(_, gap)| gap.clone()).collect();
            self.evict(draft, edit, &of, Some(kind), edit.call.doer());
        }
        let placeholder = Some(ReplacementKind::Placeholder);
        for gap in rewritten {
            self.evict(draft, edit, &[gap], placeholder, By::rule("rewritten"));
        }
        self.evict(draft, edit, &trims, None, edit.call.doer());
        for gap in others {
            self.other(draft, edit, gap);
        }
        self.append(draft, edit, tail.new);
    }

    /// Where an answer ends that stands in other words in the place of what the call before said.
    fn rewritten(&self, edit: &Edit<'_>, gap: &Gap) -> Option<usize> {
        let said = gap.old.start >= edit.head.prompt && !gap.old.is_empty();
        let answers = |unit: &u32| self.units.is_answer(*unit);
        if !said || !edit.head.units[gap.old.clone()].iter().all(answers) {
            return None;
        }
        let count =
            edit.call.prompt[gap.new.clone()].iter().take_while(|unit| answers(unit)).count();
        (count > 0).then_some(gap.new.start + count)
    }

    /// A stretch that is gone and has something else in its place.
    fn other(&self, draft: &mut Draft, edit: &mut Edit<'_>, gap: Gap) {
        if self.retokenised(edit, &gap) {
            let (old, new) =
                (&edit.head.units[gap.old.clone()], &edit.call.prompt[gap.new.clone()]);
            let message = format!(
                "from position {} the prompt holds ids {new:?} where the ids before it were {old:?}: a boundary was tokenised anew",
                gap.new.start
            );
            draft.warn(&edit.call.spot.at, "", "retokenised-boundary", message);
            self.evict(
                draft,
                edit,
                &[gap],
                Some(ReplacementKind::Truncation),
                By::rule("chat_template"),
            );
            return;
        }
        let new = edit.call.prompt[gap.new.clone()].to_vec();
        let (by, quoted) = self.author(edit, &new);
        let short = U::SPLITS && new.len() <= PLACEHOLDER && new.len() < gap.old.len();
        let kind =
            if short && !quoted { ReplacementKind::Placeholder } else { ReplacementKind::Summary };
        self.evict(draft, edit, &[gap], Some(kind), by);
    }

    /// What kind of replacement it is, where each unit of a gap has one unit in its place.
    fn pair(&self, edit: &Edit<'_>, gap: &Gap) -> Option<ReplacementKind> {
        if gap.old.is_empty() || gap.old.len() != gap.new.len() {
            return None;
        }
        let mut pairs = gap.old.clone().zip(gap.new.clone());
        let kind = |(old, new): (usize, usize)| {
            self.units.stands_for(edit.call.prompt[new], edit.head.units[old])
        };
        let first = kind(pairs.next()?)?;
        let alike = pairs.all(|pair| kind(pair) == Some(first));
        (alike && !self.author(edit, &edit.call.prompt[gap.new.clone()]).1).then_some(first)
    }

    /// How much of what is new behind a cut stands for what is gone: up to what quotes a call, else
    /// the first message.
    fn summary_end(&self, edit: &Edit<'_>, new: &Range<usize>) -> usize {
        if U::SPLITS {
            return new.end;
        }
        let quotes = |&at: &usize| self.author(edit, &edit.call.prompt[at..=at]).1;
        new.clone().take(4).filter(quotes).last().unwrap_or(new.start) + 1
    }

    /// The call whose words a run holds, and whether there is one.
    fn author(&self, edit: &Edit<'_>, run: &[u32]) -> (By, bool) {
        let wrote = |head: &&Head| !head.said().is_empty() && self.units.quotes(run, head.said());
        let Some(head) = edit.heads.all().map(|(_, head)| head).find(wrote) else {
            return (edit.call.doer(), false);
        };
        let model = self.models.get(head.node).cloned().flatten();
        let by = if model == edit.call.model {
            By::policy(GenerationId(u32::try_from(head.node).unwrap_or(u32::MAX)))
        } else {
            By { name: model.map(|model| model.to_string()), ..By::new(ByKind::ExternalModel) }
        };
        (by, true)
    }

    fn retokenised(&self, edit: &Edit<'_>, gap: &Gap) -> bool {
        let at_boundary =
            || (gap.old.start..=gap.old.end).any(|at| at > 0 && edit.head.is_boundary(at));
        let few = |range: &Range<usize>| range.len() <= RETOKENISED;
        U::SPLITS && few(&gap.old) && few(&gap.new) && at_boundary()
    }

    /// Whether only the last ids of what was said differ.
    fn retokenised_tail(&self, edit: &Edit<'_>, tail: &Gap) -> bool {
        let said = edit.head.units.len() - edit.head.prompt;
        U::SPLITS
            && tail.old.end == edit.head.units.len()
            && tail.old.len() <= RETOKENISED
            && tail.old.len() * 2 <= said
    }

    fn evict(
        &self,
        draft: &mut Draft,
        edit: &mut Edit<'_>,
        gaps: &[Gap],
        kind: Option<ReplacementKind>,
        by: By,
    ) {
        if gaps.is_empty() {
            return;
        }
        let mut evicted = Vec::new();
        let mut put = Vec::new();
        for gap in gaps {
            evicted.extend(ranges(draft, &edit.head.ids[gap.old.clone()], U::SPLITS));
            put.extend(self.put(draft, edit, gap.new.clone()));
        }
        let replacement = kind
            .filter(|_| !put.is_empty())
            .map(|kind| Replacement::new(kind, put, Place::InPlace));
        let evict = Evict::new(edit.held.id, evicted).with_author(by);
        let evict = Evict { replacement, ..evict.with_evidence(Evidence::Inferred) };
        edit.held = draft.ledger.evict(edit.held, evict, &[]);
    }

    fn append(&self, draft: &mut Draft, edit: &mut Edit<'_>, new: Range<usize>) {
        let segments = self.put(draft, edit, new);
        if !segments.is_empty() {
            edit.held = draft.ledger.append(Some(edit.held), segments);
        }
    }

    /// Writes what is new at these places of the prompt.
    fn put(&self, draft: &mut Draft, edit: &mut Edit<'_>, new: Range<usize>) -> Vec<SegmentId> {
        let (segments, ids) = self.write(draft, edit.call, &edit.call.prompt[new.clone()], false);
        for (at, id) in new.zip(ids) {
            edit.ids[at] = Some(id);
        }
        segments
    }
}

/// What stands between kept; the last one is what stands behind them all.
fn gaps(kept: &[KeptRun], old_end: usize, new_end: usize) -> Vec<Gap> {
    let (mut old, mut new, mut gaps) = (0, 0, Vec::new());
    for run in kept {
        gaps.push(Gap { old: old..run.old, new: new..run.new });
        (old, new) = (run.old_end(), run.new_end());
    }
    gaps.retain(|gap| !gap.is_empty());
    gaps.push(Gap { old: old..old_end.max(old), new: new..new_end });
    gaps
}

/// Lets the unit behind an insertion leave and stand in what is inserted, because an eviction has
/// to take something out.
fn widen(gap: &mut Gap, ids: &mut [Option<Id>]) {
    gap.old.end += 1;
    ids[gap.new.end] = None;
    gap.new.end += 1;
}

/// The ranges of segments that a stretch of a list is made of.
fn ranges(draft: &Draft, ids: &[Id], splits: bool) -> Vec<Evicted> {
    let mut ranges: Vec<(SegmentId, u32, u32)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((segment, _, end)) if *segment == id.segment && *end == id.at => *end += 1,
            _ => ranges.push((id.segment, id.at, id.at + 1)),
        }
    }
    let evicted = |(segment, start, end): (SegmentId, u32, u32)| {
        let whole = !splits || start == 0 && u64::from(end) == draft.ledger.size(segment);
        if whole { Evicted::whole(segment) } else { Evicted::range(segment, start, end) }
    };
    ranges.into_iter().map(evicted).collect()
}

//! The operations that lead from what a context held to what it shall hold.
use pleach_tree::{Place, SegmentId, Span};
use rustc_hash::FxHashSet;

use super::RenderError;
use super::hunk::{self, Hunk};
use super::table::Table;

/// One operation of the new records.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ListEdit {
    /// Segments behind the list.
    Append(Vec<SegmentId>),
    /// Ranges out of the list, segments into it.
    Evict(Cut),
    /// The whole list anew.
    Replace(Vec<SegmentId>),
    /// The list as it was.
    Fork,
}

/// An eviction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    pub(super) removed: Vec<Span>,
    pub(super) inserted: Vec<SegmentId>,
    pub(super) place: Place,
}

/// A list and the operations that lead to it.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<ListEdit>,
    pub(super) list: Vec<Span>,
}

impl Plan {
    /// From `from` to `to` by evictions, an append at the end, and a replacement of the whole where
    /// those do not do.
    ///
    /// `appends` asks for an append even where nothing is appended, since the records had one.
    pub(super) fn edits(
        from: &[Span],
        to: Vec<Span>,
        appends: bool,
        table: &mut Table,
    ) -> Result<Self, RenderError> {
        let mut plan = Self { steps: Vec::new(), list: to };
        let hunks = hunk::hunks(from, &plan.list, |id| table.whole(id));
        let inserts = |hunk: &Hunk| hunk.removed.is_empty() && !hunk.tail;
        match hunks.filter(|hunks| !hunks.iter().any(inserts)) {
            Some(hunks) => plan.cut(hunks, appends),
            None => {
                let present: FxHashSet<SegmentId> = from.iter().map(|span| span.segment).collect();
                let old = plan
                    .list
                    .iter()
                    .rposition(|span| present.contains(&span.segment))
                    .map_or(0, |last| last + 1);
                let wholes = table.as_wholes(&plan.list)?;
                plan.list = wholes.iter().map(|&id| table.whole(id)).collect();
                let (head, tail) = wholes.split_at(if appends { old } else { wholes.len() });
                plan.steps.push(ListEdit::Replace(head.to_vec()));
                if appends {
                    plan.steps.push(ListEdit::Append(tail.to_vec()));
                }
            }
        }
        Ok(plan)
    }

    fn cut(&mut self, hunks: Vec<Hunk>, appends: bool) {
        let mut tail = Vec::new();
        let mut dropped = Vec::new();
        for hunk in hunks {
            if hunk.tail {
                dropped.extend(hunk.removed);
                tail = hunk.inserted;
            } else if hunk.inserted.is_empty() {
                dropped.extend(hunk.removed);
            } else {
                let place = Place::InPlace;
                self.steps.push(ListEdit::Evict(Cut {
                    removed: hunk.removed,
                    inserted: hunk.inserted,
                    place,
                }));
            }
        }
        if !dropped.is_empty() {
            self.steps.push(ListEdit::Evict(Cut {
                removed: dropped,
                inserted: Vec::new(),
                place: Place::InPlace,
            }));
        }
        if appends || !tail.is_empty() {
            self.steps.push(ListEdit::Append(tail));
        }
    }

    /// From `from` to `to` where the records evict the segments numbered `left` and put those
    /// numbered `entered` in.
    ///
    /// The first step is that operation, the others are the template's.
    pub(super) fn eviction(
        from: &[Span],
        to: Vec<Span>,
        left: &FxHashSet<u32>,
        entered: &FxHashSet<u32>,
        table: &mut Table,
    ) -> Result<Self, RenderError> {
        let part = |id: SegmentId| table.part(id).map(|(segment, _)| segment);
        let evicted = |id: SegmentId| part(id).is_some_and(|segment| left.contains(&segment));
        let placed = |id: SegmentId| part(id).is_some_and(|segment| entered.contains(&segment));
        let own = |hunk: &Hunk| {
            hunk.removed.iter().any(|span| evicted(span.segment))
                || hunk.inserted.iter().any(|&id| placed(id))
        };
        let hunks = hunk::hunks(from, &to, |id| table.whole(id));
        let cut = match hunks {
            Some(mut hunks) => {
                hunks.retain(own);
                let glue = |span: &Span| table.part(span.segment).is_none();
                let holds = |hunk: &Hunk| hunk.inserted.iter().any(|&id| placed(id));
                one_cut(from, hunks.clone(), glue, holds)
                    .unwrap_or_else(|| first_hole(&hunks, holds))
            }
            None => {
                let removed = from.iter().filter(|span| evicted(span.segment)).copied().collect();
                let inserted =
                    to.iter().map(|span| span.segment).filter(|&id| placed(id)).collect();
                Cut { removed, inserted, place: Place::BeforeFirst }
            }
        };
        let inserted: Vec<Span> = cut.inserted.iter().map(|&id| table.whole(id)).collect();
        let between = match cut.place {
            Place::Index(index) => {
                let mut list = hunk::apply(from, &cut.removed, &[], false);
                list.splice(index as usize..index as usize, inserted);
                list
            }
            Place::InPlace if inserted.len() == cut.removed.len() => {
                hunk::apply(from, &cut.removed, &inserted, true)
            }
            _ => hunk::apply(from, &cut.removed, &inserted, false),
        };
        let mut plan = Self::edits(&between, to, false, table)?;
        plan.steps.insert(0, ListEdit::Evict(cut));
        Ok(plan)
    }
}

/// One eviction that does what `hunks` say; glue that only takes the place of other glue is left
/// for later.
///
/// `None` where no way of placing the segments is that one.
fn one_cut(
    from: &[Span],
    mut hunks: Vec<Hunk>,
    glue: impl Fn(&Span) -> bool,
    holds: impl Fn(&Hunk) -> bool,
) -> Option<Cut> {
    for hunk in hunks.iter_mut().filter(|hunk| !hunk.inserted.is_empty() && !holds(hunk)) {
        hunk.inserted.clear();
        if let Some(at) = hunk.removed.iter().position(&glue)
            && hunk.removed.len() > 1
        {
            hunk.removed.remove(at);
        }
    }
    let groups: Vec<usize> =
        (0..hunks.len()).filter(|&index| !hunks[index].inserted.is_empty()).collect();
    let place = match groups[..] {
        [] => Place::InPlace,
        [0] if hunks.len() == 1 && !hunks[0].removed.is_empty() => Place::InPlace,
        [0] if !hunks[0].removed.is_empty() => Place::BeforeFirst,
        [only] => Place::Index(kept_before(from, &hunks, only)?),
        _ => {
            hunks.iter_mut().try_for_each(|hunk| fit(hunk, &glue))?;
            Place::InPlace
        }
    };
    let removed: Vec<Span> = hunks.iter().flat_map(|hunk| hunk.removed.iter().copied()).collect();
    let inserted: Vec<SegmentId> = hunks.into_iter().flat_map(|hunk| hunk.inserted).collect();
    (!removed.is_empty()).then_some(Cut { removed, inserted, place })
}

/// How many pieces are left before a hunk when all hunks are cut out.
fn kept_before(from: &[Span], hunks: &[Hunk], index: usize) -> Option<u32> {
    let removed: Vec<Span> = hunks.iter().flat_map(|hunk| hunk.removed.iter().copied()).collect();
    let kept = hunk::apply(from, &removed, &[], false);
    let count = match hunks[index].after {
        Some(after) => kept.iter().position(|span| span.segment == after)? + 1,
        None => 0,
    };
    u32::try_from(count).ok()
}

/// Makes a hunk's ranges as many as its segments, so that each takes the place of one; `None` where
/// that cannot be.
fn fit(hunk: &mut Hunk, glue: impl Fn(&Span) -> bool) -> Option<()> {
    let wanted = hunk.inserted.len();
    while hunk.removed.len() > wanted {
        let at = hunk.removed.iter().rposition(&glue)?;
        hunk.removed.remove(at);
    }
    while hunk.removed.len() < wanted {
        let at = hunk.removed.iter().position(|span| span.len() > 1)?;
        let span = hunk.removed[at];
        hunk.removed[at].start += 1;
        hunk.removed.insert(at, Span { end: span.start + 1, ..span });
    }
    (wanted > 0).then_some(())
}

/// An eviction of all that `hunks` remove, with what the records put in at the first hole; the rest
/// is for later steps.
fn first_hole(hunks: &[Hunk], holds: impl Fn(&Hunk) -> bool) -> Cut {
    let removed = hunks.iter().flat_map(|hunk| hunk.removed.iter().copied()).collect();
    let inserted = hunks
        .iter()
        .filter(|hunk| holds(hunk))
        .flat_map(|hunk| hunk.inserted.iter().copied())
        .collect();
    Cut { removed, inserted, place: Place::BeforeFirst }
}

//! Which head a prompt goes on from, and how.
use pleach_tree::ForkReason;
use pleach_tree::diff::{Diff, KeptRun};

use super::Units;
use super::call::Call;
use super::head::{Head, Heads, Mark};

/// How a prompt comes from a head.
#[derive(Debug)]
pub(super) enum Reading {
    /// It goes on from all of it.
    Extends,
    /// It goes back to where a call stood, and keeps `keep` units of the list.
    Fork { mark: Mark, keep: usize, reason: ForkReason },
    /// It keeps these runs.
    Edit(Vec<KeptRun>),
}

/// A head by its place: among the live ones, or among those that were left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeadIndex {
    /// Its place among all heads, the newest first.
    pub(super) rank: usize,
    /// Its place among the live ones.
    pub(super) live: Option<usize>,
}

/// How many heads are compared in full.
const COMPARED: usize = 6;

/// The head that a prompt goes on from; `None` where it starts anew.
pub(super) fn read(units: &impl Units, heads: &Heads, call: &Call) -> Option<(HeadIndex, Reading)> {
    let prompt = call.prompt.as_slice();
    let of_thread = |head: &Head| call.thread.is_none() || head.thread == call.thread;
    let mut found: Vec<(HeadIndex, &Head, usize)> = heads
        .all()
        .enumerate()
        .filter(|(_, (_, head))| of_thread(head))
        .map(|(rank, (live, head))| (HeadIndex { rank, live }, head, head.shared(prompt)))
        .collect();
    let whole =
        |(_, head, shared): &&(HeadIndex, &Head, usize)| *shared == head.units.len() && *shared > 0;
    if let Some(&(place, head, shared)) =
        found.iter().filter(whole).max_by_key(|(place, _, shared)| (*shared, place.live.is_some()))
    {
        if place.live.is_some() {
            return Some((place, Reading::Extends));
        }
        let mark = *head.marks_within(shared).last()?;
        return Some((place, Reading::Fork { mark, keep: shared, reason: ForkReason::Rewind }));
    }
    if let Some((place, mark)) = retried(&found, prompt.len()) {
        return Some((
            place,
            Reading::Fork { mark, keep: prompt.len(), reason: ForkReason::Retry },
        ));
    }
    if let Some((place, mark, keep)) = call.lineage.parent.and_then(|end| parent(&found, end)) {
        return Some((place, Reading::Fork { mark, keep, reason: ForkReason::Rewind }));
    }
    if call.thread.is_some() {
        let &(place, head, _) = found.iter().find(|(place, ..)| place.live.is_some())?;
        return Some((
            place,
            Reading::Edit(Diff::new(&head.units, prompt, shortest(units)).kept().to_vec()),
        ));
    }
    found.sort_by_key(|&(place, _, shared)| (std::cmp::Reverse(shared), place.rank));
    let (place, head, runs) = closest(units, &found, prompt)?;
    let reading = without_thread(units, heads, head, prompt, runs)?;
    Some((place, reading))
}

fn shortest<U: Units>(_: &U) -> usize {
    U::RUN
}

/// The newest head with a call of exactly this prompt.
fn retried(found: &[(HeadIndex, &Head, usize)], len: usize) -> Option<(HeadIndex, Mark)> {
    found.iter().filter(|(_, _, shared)| *shared == len).find_map(|(place, head, shared)| {
        let mark = head.marks_within(*shared).into_iter().rev().find(|mark| mark.prompt == len)?;
        Some((*place, mark))
    })
}

/// The newest head that holds, as it was written, the call whose view ends at `end`.
fn parent(found: &[(HeadIndex, &Head, usize)], end: usize) -> Option<(HeadIndex, Mark, usize)> {
    found.iter().filter(|(_, _, shared)| *shared >= end).find_map(|(place, head, _)| {
        let mark = head.marks_within(end).into_iter().rev().find(|mark| mark.end == Some(end))?;
        let whole = head.is_boundary(end) && head.is_uncut(mark.prompt, end);
        whole.then_some((*place, mark, end))
    })
}

/// The head that keeps most of what is no instruction.
fn closest<'h>(
    units: &impl Units,
    found: &[(HeadIndex, &'h Head, usize)],
    prompt: &[u32],
) -> Option<(HeadIndex, &'h Head, Vec<KeptRun>)> {
    let mut best: Option<(usize, HeadIndex, &Head, Vec<KeptRun>)> = None;
    for &(place, head, _) in found.iter().take(COMPARED) {
        let runs = Diff::new(&head.units, prompt, shortest(units)).kept().to_vec();
        let kept = kept(units, prompt, &runs);
        if best.as_ref().is_none_or(|(most, ..)| kept > *most) {
            best = Some((kept, place, head, runs));
        }
    }
    best.map(|(_, place, head, runs)| (place, head, runs))
}

fn kept(units: &impl Units, prompt: &[u32], runs: &[KeptRun]) -> usize {
    let spoken = |run: &KeptRun| {
        prompt[run.new..run.new_end()].iter().filter(|&&unit| !units.is_system(unit)).count()
    };
    runs.iter().map(spoken).sum()
}

/// What a prompt does where no thread is named.
fn without_thread(
    units: &impl Units,
    heads: &Heads,
    head: &Head,
    prompt: &[u32],
    runs: Vec<KeptRun>,
) -> Option<Reading> {
    let prefix = runs.first().filter(|run| (run.old, run.new) == (0, 0)).map_or(0, |run| run.len);
    if runs.len() > usize::from(prefix > 0) {
        return Some(Reading::Edit(runs));
    }
    let new = &prompt[prefix..];
    if heads.all().any(|(_, head)| units.quotes(new, head.said())) {
        return Some(Reading::Edit(runs));
    }
    if kept(units, prompt, &runs) == 0 {
        return None;
    }
    let turns = new.first().is_some_and(|&unit| units.opens_turn(unit));
    let back = head.marks_within(prefix).into_iter().rev().find(|mark| {
        let own = mark.prompt == head.prompt && mark.prompt == prefix;
        turns && (mark.end == Some(prefix) || own)
    });
    let whole = |mark: &Mark| head.is_boundary(prefix) && head.is_uncut(mark.prompt, prefix);
    Some(match back.filter(whole) {
        Some(mark) => {
            let reason =
                if mark.end == Some(prefix) { ForkReason::Rewind } else { ForkReason::Retry };
            Reading::Fork { mark, keep: prefix, reason }
        }
        None => Reading::Edit(runs),
    })
}

/// Whether a call wrote the summary that the next prompt stands on: its words are quoted there and
/// do not stand where it said them.
pub(super) fn summarises<U: Units>(units: &U, call: &Call, next: &Call) -> bool {
    if (&call.rollout, &call.thread) != (&next.rollout, &next.thread) || call.prompt.is_empty() {
        return false;
    }
    let said = call.output();
    let view: Vec<u32> = call.prompt.iter().copied().chain(said.iter().copied()).collect();
    if next.prompt.starts_with(&view) {
        return false;
    }
    let runs = Diff::new(&view, &next.prompt, U::RUN).kept().to_vec();
    let from = call.prompt.len();
    // What stands behind the prompt of a call in its place is its answer, in whatever words.
    let answered = |run: &KeptRun| {
        run.old_end() == from
            && next.prompt.get(run.new_end()).is_some_and(|&unit| units.is_answer(unit))
    };
    if runs.iter().any(answered) {
        return false;
    }
    let standing: usize =
        runs.iter().map(|run| (run.old_end()).saturating_sub(run.old.max(from))).sum();
    // A run of tokens is found wherever it went; a message that went elsewhere is another message.
    let survives = runs.iter().any(|run| run.old < from && run.old_end() > from);
    if survives && standing * 2 > said.len() {
        return false;
    }
    let mut at = 0;
    let ends = runs
        .iter()
        .map(|run| (run.new, run.new_end()))
        .chain([(next.prompt.len(), next.prompt.len())]);
    ends.into_iter().any(|(start, end)| {
        let run = &next.prompt[at..start];
        at = end;
        units.quotes(run, &said)
    }) || !survives && standing * 2 > said.len() && said.len() >= U::RUN && U::RUN > 1
}

//! What a context shall hold after an operation, made as far as possible of what it held before.
use std::ops::Range;

use pleach_tree::{GenerationId, Role, SegmentId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use super::RenderError;
use super::message::Messages;
use super::table::{PartKey, Table};
use super::view::Run;

/// The list before an operation, with the glue between its parts at hand.
#[derive(Default)]
struct Before<'a> {
    list: &'a [Span],
    present: FxHashSet<SegmentId>,
    behind: FxHashMap<Option<PartKey>, Range<usize>>,
    ahead: FxHashMap<PartKey, Range<usize>>,
    end: Range<usize>,
    /// The last part with tokens, and how much glue stands behind it.
    tail: (Option<PartKey>, u32),
}

/// Builds the list of a context that renders to `runs`.
pub(super) struct Target<'a, 't> {
    table: &'a mut Table,
    messages: &'a Messages<'t>,
    before: Before<'a>,
    used: FxHashSet<SegmentId>,
    list: Vec<Span>,
}

impl<'a, 't> Target<'a, 't> {
    pub(super) fn new(
        table: &'a mut Table,
        messages: &'a Messages<'t>,
        before: &'a [Span],
    ) -> Self {
        let before = Before::new(table, before);
        Self { table, messages, before, used: FxHashSet::default(), list: Vec::new() }
    }

    /// What comes behind the end of a list of which nothing changes.
    pub(super) fn behind(
        table: &'a mut Table,
        messages: &'a Messages<'t>,
        before: &[Span],
    ) -> Self {
        let before = Before { tail: tail(table, before), ..Before::default() };
        Self { table, messages, before, used: FxHashSet::default(), list: Vec::new() }
    }

    /// The segments that render to `runs` of `ids` behind the list; `members` are those of the tree
    /// that are new there.
    pub(super) fn append(
        mut self,
        runs: &[Run],
        ids: &[u32],
        members: &[u32],
    ) -> Result<Vec<Span>, RenderError> {
        let (mut last, mut consumed) = self.before.tail;
        let shown = joined(runs);
        for (index, run) in shown.iter().enumerate() {
            let ids = &ids[run.tokens.clone()];
            let next = shown.get(index + 1).and_then(|run| run.part);
            match run.part {
                Some(part) => {
                    let id = self.table.render(part, ids, self.messages.segment(part.0))?;
                    let span = self.table.whole(id);
                    self.put(span);
                    (last, consumed) = (Some(part), 0);
                }
                None => consumed += self.fill(ids, last, consumed, next)?,
            }
        }
        self.put_empty(members)?;
        Ok(self.list)
    }

    /// Glue behind a part: what was sampled there where it is the same, the rest new; how much.
    fn fill(
        &mut self,
        ids: &[u32],
        last: Option<PartKey>,
        consumed: u32,
        next: Option<PartKey>,
    ) -> Result<u32, RenderError> {
        let calls: Vec<GenerationId> = [last, next]
            .into_iter()
            .flatten()
            .filter_map(|(segment, _)| self.messages.sampled_by(segment))
            .collect();
        let mut done = 0;
        while (done as usize) < ids.len() {
            let rest = &ids[done as usize..];
            let (present, used) = (&self.before.present, &self.used);
            let free = |id: SegmentId| !present.contains(&id) && !used.contains(&id);
            let span = match self.table.sampled((last, consumed + done), rest, &calls, free) {
                Some(id) => self.table.whole(id),
                None => self.new_glue(rest, last, consumed + done, next)?,
            };
            self.put(span);
            done += span.end;
        }
        Ok(done)
    }

    /// The list that renders to `runs` of `ids`; of `members`, those that render to nothing keep
    /// their place as empty segments.
    pub(super) fn build(
        mut self,
        runs: &[Run],
        ids: &[u32],
        members: &[u32],
    ) -> Result<Vec<Span>, RenderError> {
        let mut last = None;
        let shown = joined(runs);
        // Glue at the end stays there where what it stood behind has left.
        let end =
            self.before.tail.0.filter(|last| !shown.iter().any(|run| run.part == Some(*last)));
        self.before.end =
            end.and_then(|last| self.before.behind.get(&Some(last))).cloned().unwrap_or_default();
        for (index, run) in shown.iter().enumerate() {
            let ids = &ids[run.tokens.clone()];
            match run.part {
                Some(part) => {
                    let id = self.table.render(part, ids, self.messages.segment(part.0))?;
                    let span = self.table.whole(id);
                    self.put(span);
                    last = Some(part);
                }
                None => {
                    let next = shown.get(index + 1).and_then(|run| run.part);
                    self.glue(ids, last, next)?;
                }
            }
        }
        self.put_empty(members)?;
        Ok(self.list)
    }

    /// Puts what `call` says behind the end of the list before, where nothing of that list changes.
    pub(super) fn extend(
        mut self,
        runs: &[Run],
        ids: &[u32],
        members: &[u32],
        call: GenerationId,
    ) -> Result<Vec<SegmentId>, RenderError> {
        let (mut last, mut consumed) = self.before.tail;
        for run in joined(runs) {
            let ids = &ids[run.tokens.clone()];
            let span = match run.part {
                Some(part) => {
                    (last, consumed) = (Some(part), 0);
                    let id = self.table.render(part, ids, self.messages.segment(part.0))?;
                    self.table.whole(id)
                }
                None => {
                    let span = match run.like {
                        Some(text) => {
                            let like = self.messages.segment(text);
                            let id = self.table.sample((last, consumed), ids, like, call)?;
                            self.table.whole(id)
                        }
                        None => self.new_glue(ids, last, consumed, None)?,
                    };
                    consumed += span.end;
                    span
                }
            };
            self.put(span);
        }
        self.put_empty(members)?;
        Ok(self.list.iter().map(|span| span.segment).collect())
    }

    fn put(&mut self, span: Span) {
        self.used.insert(span.segment);
        self.list.push(span);
    }

    fn glue(
        &mut self,
        ids: &[u32],
        last: Option<PartKey>,
        next: Option<PartKey>,
    ) -> Result<(), RenderError> {
        let behind = self.before.behind.get(&last).cloned().unwrap_or_default();
        let ahead = next
            .map_or(Some(&self.before.end), |next| self.before.ahead.get(&next))
            .cloned()
            .unwrap_or_default();
        let (behind_spans, ahead_spans) = (self.unused(behind.clone()), self.unused(ahead.clone()));
        for spans in [&ahead_spans, &behind_spans] {
            if !spans.is_empty() && self.concat(spans) == ids {
                spans.iter().for_each(|&span| self.put(span));
                return Ok(());
            }
        }
        let mut head = 0;
        for span in behind_spans {
            let common = self
                .table
                .ids(span)
                .iter()
                .zip(&ids[head..])
                .take_while(|(a, b)| a == b)
                .map(|_| 1)
                .sum::<u32>();
            if common > 0 {
                self.put(Span { end: span.start + common, ..span });
            }
            head += common as usize;
            if (common as usize) < span.len() {
                break;
            }
        }
        let mut tail = ids.len();
        let mut kept = Vec::new();
        for &span in if behind == ahead { &[] } else { &ahead_spans[..] }.iter().rev() {
            if !ids[head..tail].ends_with(self.table.ids(span)) {
                break;
            }
            kept.push(span);
            tail -= span.len();
        }
        if head < tail {
            let consumed =
                u32::try_from(head).map_err(|_| RenderError::TooMany { what: "tokens" })?;
            self.fill(&ids[head..tail], last, consumed, next)?;
        }
        kept.into_iter().rev().for_each(|span| self.put(span));
        Ok(())
    }

    fn new_glue(
        &mut self,
        ids: &[u32],
        last: Option<PartKey>,
        consumed: u32,
        next: Option<PartKey>,
    ) -> Result<Span, RenderError> {
        let role = next.map_or(Role::Assistant, |(segment, _)| self.messages.segment(segment).role);
        let (present, used) = (&self.before.present, &self.used);
        let free = |id: SegmentId| !present.contains(&id) && !used.contains(&id);
        let id = self.table.glue((last, consumed), ids, role, free)?;
        Ok(self.table.whole(id))
    }

    fn unused(&self, range: Range<usize>) -> Vec<Span> {
        let glue = |span: &&Span| {
            self.table.part(span.segment).is_none() && !self.used.contains(&span.segment)
        };
        self.before.list[range].iter().filter(glue).copied().collect()
    }

    fn concat(&self, spans: &[Span]) -> Vec<u32> {
        spans.iter().flat_map(|&span| self.table.ids(span)).copied().collect()
    }

    /// Gives every member without tokens its place: where it stood before, else before the next
    /// member that has some.
    fn put_empty(&mut self, members: &[u32]) -> Result<(), RenderError> {
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        let mut kept: FxHashMap<SegmentId, usize> = FxHashMap::default();
        for (index, span) in self.list.iter().enumerate() {
            kept.insert(span.segment, index + 1);
            if let Some((segment, _)) = self.table.part(span.segment) {
                places.entry(segment).or_insert(index);
            }
        }
        let mut stood: FxHashMap<u32, usize> = FxHashMap::default();
        let mut after = 0;
        for span in self.before.list {
            if let Some((segment, _)) = self.table.part(span.segment) {
                stood.entry(segment).or_insert(after);
            }
            after = kept.get(&span.segment).copied().unwrap_or(after);
        }
        let mut empty: Vec<(usize, Span)> = Vec::new();
        let mut next = self.list.len();
        for &member in members.iter().rev() {
            if let Some(&place) = places.get(&member) {
                next = place;
                continue;
            }
            let id = self.table.render((member, 0), &[], self.messages.segment(member))?;
            empty.push((stood.get(&member).copied().unwrap_or(next), self.table.whole(id)));
        }
        empty.reverse();
        empty.sort_by_key(|(place, _)| *place);
        let list = std::mem::take(&mut self.list);
        let mut empty = empty.into_iter().peekable();
        for (index, span) in list.into_iter().map(Some).chain([None]).enumerate() {
            while let Some((_, span)) = empty.next_if(|(place, _)| *place == index) {
                self.list.push(span);
            }
            self.list.extend(span);
        }
        Ok(())
    }
}

impl<'a> Before<'a> {
    fn new(table: &Table, list: &'a [Span]) -> Self {
        let present = list.iter().map(|span| span.segment).collect();
        let (mut behind, mut ahead) = (FxHashMap::default(), FxHashMap::default());
        let (mut last, mut from) = (None, 0);
        for (index, span) in list.iter().enumerate() {
            if let Some(part) = table.part(span.segment).filter(|_| !span.is_empty()) {
                behind.insert(last, from..index);
                ahead.insert(part, from..index);
                (last, from) = (Some(part), index + 1);
            }
        }
        behind.insert(last, from..list.len());
        Self { list, present, behind, ahead, end: 0..0, tail: tail(table, list) }
    }
}

/// The last part of a list with tokens, and how much glue stands behind it.
fn tail(table: &Table, list: &[Span]) -> (Option<PartKey>, u32) {
    let mut glue = 0;
    for span in list.iter().rev() {
        match table.part(span.segment) {
            Some(part) if !span.is_empty() => return (Some(part), glue),
            _ => glue += span.end - span.start,
        }
    }
    (None, glue)
}

/// The runs that hold tokens; glue around a part that holds none is one run.
fn joined(runs: &[Run]) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs.iter().filter(|run| !run.tokens.is_empty()) {
        match out.last_mut() {
            Some(last) if last.part.is_none() && run.part.is_none() && last.like == run.like => {
                last.tokens.end = run.tokens.end
            }
            _ => out.push(run.clone()),
        }
    }
    out
}

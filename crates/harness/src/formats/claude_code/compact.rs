//! Full compactions.
use pleach_tree::{By, ByKind, ForkReason, Origin, ReplacementKind, Role, SegmentId};
use rustc_hash::FxHashSet;
use std::sync::Arc;

use super::entry::Body;
use super::preserve::Compaction;
use super::replay::{Replay, State};
use super::request::runs_on;
use super::summary::cut;
use super::turns::TurnKind;
use crate::core::script::{Change, Reduced, text};

impl Replay<'_> {
    /// A compaction: the summariser is called on the context, which then leaves but for what is
    /// preserved.
    pub(super) fn compact(&mut self, index: usize, state: &mut State) {
        let links = self.links;
        let compaction = &links.compactions[index];
        self.flush(state, links.place[compaction.boundary]);
        let by = self.summarise(index, state);
        let summary = self.summary(index, compaction);
        let list = self.ledger().list(state.held);
        let mut preserved = state.head.list();
        preserved.extend(self.preserved(compaction, &list));
        state.era = self.era();
        if summary.is_empty() {
            let message =
                "no summary follows the boundary; what it compacted leaves without one".into();
            self.session.fault(compaction.boundary, "subtype", "no-summary", message);
        }
        let there: FxHashSet<SegmentId> = list.into_iter().collect();
        self.brought_back.extend(preserved.iter().filter(|segment| !there.contains(segment)));
        let trigger = self.session.entries[compaction.boundary]
            .boundary()
            .and_then(|boundary| boundary.trigger);
        let change = Change::new(ReplacementKind::Summary).trigger(trigger);
        let reduced = Reduced { kept: preserved, put: summary, put_last: compaction.summary_last };
        state.held = Some(reduced.reduce(self.ledger(), state.held, &change, by));
    }

    /// Plays the summariser's conversation and says who wrote the summary.
    fn summarise(&mut self, index: usize, state: &State) -> By {
        let Some((conversation, turn)) =
            self.summarisers[index].as_ref().map(|found| (found.conversation, found.turn))
        else {
            return By::new(ByKind::Unknown);
        };
        let own = match &self.turns.turns[turn].kind {
            TurnKind::Call(lines) => {
                lines.iter().find_map(|&line| self.session.entries[line].assistant()?.model.clone())
            }
            _ => None,
        };
        let external = own.is_some() && state.model.is_some() && own != state.model;
        let origin = if external { Origin::ExternalModel } else { Origin::Policy };
        let start = State { pending: Vec::new(), ..state.clone() };
        self.play(conversation, start, ForkReason::Summarizer, origin);
        match self.generations.get(&turn) {
            Some(&generation) if !external => By::policy(generation),
            _ => {
                // A call that another session has is not this one's, and whose it is by origin.
                let kind = if external { ByKind::ExternalModel } else { ByKind::Unknown };
                By { name: own.as_deref().map(str::to_owned), ..By::new(kind) }
            }
        }
    }

    /// The segments of the summary: the summariser's own where it is quoted, the harness's around
    /// it.
    fn summary(&mut self, index: usize, compaction: &Compaction) -> Vec<SegmentId> {
        let quote =
            self.summarisers[index].as_ref().and_then(|summariser| summariser.quote.as_ref());
        let target = quote.map(|quote| quote.to);
        let ranges: Vec<_> = quote
            .map_or_else(Vec::new, |quote| quote.pieces.iter().map(|(_, to)| to.clone()).collect());
        let own = self.quoted.remove(&index).unwrap_or_default();
        // A summary that no call is known to hold was written by a model all the same.
        let around = if target.is_some() { Origin::Harness } else { Origin::ExternalModel };
        let mut written = Vec::new();
        for &line in &compaction.summary {
            let Body::User(user) = &mut self.session.entries[line].body else { continue };
            let texts = std::mem::take(&mut user.texts);
            let key = Arc::clone(&self.session.entries[line].uuid);
            for (at, part) in texts.into_iter().enumerate() {
                let ranges = if target == Some((line, at)) && own.len() == ranges.len() {
                    ranges.as_slice()
                } else {
                    &[]
                };
                let mut own = own.iter();
                let pieces = cut(&part, ranges);
                let last = pieces.len() - 1;
                for (at, (piece, quoted)) in pieces.into_iter().enumerate() {
                    if let Some(&segment) = if quoted { own.next() } else { None } {
                        written.push(segment);
                        continue;
                    }
                    let mut segment = text(Role::User, around, piece.to_owned());
                    if at < last {
                        runs_on(&mut segment);
                    }
                    written.push(self.write(line, &key, segment));
                }
            }
        }
        written
    }

    /// The preserved segments in their order: that of the list, each message whole.
    fn preserved(&mut self, compaction: &Compaction, list: &[SegmentId]) -> Vec<SegmentId> {
        let mut segments: Vec<SegmentId> = Vec::new();
        let mut taken = FxHashSet::default();
        let there: FxHashSet<SegmentId> = list.iter().copied().collect();
        for &entry in &compaction.preserved {
            let message = self.session.entries[entry]
                .assistant()
                .map(|assistant| Arc::clone(&assistant.message));
            let same = |&&other: &&usize| {
                other == entry
                    || message.is_some()
                        && self.session.entries[other]
                            .assistant()
                            .map(|assistant| &assistant.message)
                            == message.as_ref()
            };
            let lines: Vec<usize> = compaction.preserved.iter().filter(same).copied().collect();
            for line in lines {
                if taken.insert(line) {
                    segments.extend(self.kept_line(line, &there));
                }
            }
        }
        if !compaction.whole_run {
            return segments;
        }
        let kept: FxHashSet<SegmentId> = segments.iter().copied().collect();
        let ends = list
            .iter()
            .position(|id| kept.contains(id))
            .zip(list.iter().rposition(|id| kept.contains(id)));
        ends.map_or(segments, |(first, last)| list[first..=last].to_vec())
    }

    /// What is in the context of a preserved line: a result that was cleared is kept as what was
    /// left of it.
    fn kept_line(&mut self, line: usize, there: &FxHashSet<SegmentId>) -> Vec<SegmentId> {
        if matches!(self.session.entries[line].body, Body::Assistant(_))
            && !self.lines.contains_key(&line)
        {
            let message =
                "the compaction preserves the line, but no call before it said it; it is left out"
                    .into();
            self.session.fault(line, "uuid", "preserved-missing", message);
            return Vec::new();
        }
        let kept = self.line(line);
        let left = |&(_, segment): &(String, SegmentId)| self.player.form(segment, there);
        kept.answers.iter().map(left).chain(kept.rest.iter().copied()).collect()
    }
}

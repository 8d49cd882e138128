//! What every request holds, and the call that follows it.
use std::rc::Rc;
use std::sync::Arc;

use pleach_tree::{By, Origin, Part, ReplacementKind, Role, Segment, SegmentId, Trigger};
use rustc_hash::FxHashSet;

use super::content::Said;
use super::entry::{Body, Clearing, UserKind};
use super::replay::{LineSegments, Pending, Replay, State, What};
use super::summary::cut;
use crate::core::script::{Call, Change, Site, Swap, result, text};
use crate::core::usage::Counted;

/// The rule that clears results and attachments.
const RULE: &str = "microcompact";

/// What the request shows for a result that was cleared.
const CLEARED: &str = "[Old tool result content cleared]";

/// Bytes from which on versions that leave pointers are taken to leave one; the threshold is not
/// recorded.
const LARGE: u64 = 2_000;

impl Replay<'_> {
    /// Puts into the context what was written before `place`: of a run of lines the results first,
    /// then attachments, which go up to the last result or answer, then everything else.
    pub(super) fn flush(&mut self, state: &mut State, place: u64) {
        let pending = std::mem::take(&mut state.pending);
        let (mut now, later): (Vec<Pending>, Vec<Pending>) =
            pending.into_iter().partition(|pending| pending.always || pending.place < place);
        state.pending = later;
        now.sort_by_key(|pending| pending.place);
        let mut run = Vec::new();
        let line = |pending: &Pending| match pending.what {
            What::Line(entry) => Some(entry),
            What::Output(_) => None,
        };
        self.record_heads(state, now.iter().filter_map(line));
        for pending in now {
            if let What::Line(entry) = pending.what
                && pending.place >= place
            {
                let message = "the line was written behind the call that goes on from it, and stands before that call".into();
                self.session.warn(entry, "uuid", "late-line", message);
            }
            match pending.what {
                What::Line(entry)
                    if matches!(self.session.entries[entry].body, Body::Clearing(_)) =>
                {
                    self.append(state, std::mem::take(&mut run));
                    self.clear(state, entry);
                }
                // What stands before it stays there, and a run begins with it as with an answer.
                What::Line(entry) if self.is_notice(entry) => {
                    self.append(state, std::mem::replace(&mut run, vec![pending.what]));
                }
                what => run.push(what),
            }
        }
        self.append(state, run);
    }

    /// Takes out of what is pending the lines that attachments of branches go before: those behind
    /// the last result or answer.
    pub(super) fn loose(&self, state: &mut State) -> Vec<Pending> {
        let is_loose = |what: &What| match what {
            What::Output(_) => false,
            What::Line(entry) => {
                let line = &self.session.entries[*entry];
                matches!(line.body, Body::Prompt(_))
                    || line.user().is_some_and(|user| user.answers.is_empty())
                        && !self.answers(*entry)
            }
        };
        let firm = state.pending.iter().filter(|pending| !is_loose(&pending.what));
        let last = firm.map(|pending| pending.place).max().unwrap_or_default();
        let pending = std::mem::take(&mut state.pending);
        let (loose, firm) = pending.into_iter().partition(|pending| pending.place > last);
        state.pending = firm;
        loose
    }

    /// Whether a line that is written already answers a call.
    fn answers(&self, entry: usize) -> bool {
        self.lines.get(&entry).is_some_and(|line| !line.answers.is_empty())
    }

    fn append(&mut self, state: &mut State, run: Vec<What>) {
        let (mut output, mut answers) = (Vec::new(), Vec::new());
        let (mut beside, mut attached, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for what in run {
            match what {
                What::Output(segments) => output.extend_from_slice(&segments),
                What::Line(entry) if self.is_notice(entry) => {
                    output.extend_from_slice(&self.line(entry).rest);
                }
                What::Line(entry) => {
                    let line = self.line(entry);
                    answers.extend(line.answers.iter().map(|&(_, segment)| segment));
                    let place = match self.session.entries[entry].user() {
                        Some(user) if user.kind == UserKind::Attachment => &mut attached,
                        _ if line.answers.is_empty() => &mut rest,
                        _ => &mut beside,
                    };
                    place.extend_from_slice(&line.rest);
                }
            }
        }
        for mut part in [answers, beside, attached, rest] {
            output.append(&mut part);
        }
        if output.iter().any(|segment| self.brought_back.contains(segment)) {
            let there: FxHashSet<SegmentId> = self.ledger().list(state.held).into_iter().collect();
            output.retain(|segment| !there.contains(segment));
        }
        if !output.is_empty() {
            state.held = Some(self.ledger().append(state.held, output));
        }
    }

    fn is_notice(&self, entry: usize) -> bool {
        matches!(self.session.entries[entry].body, Body::Notice(_))
    }

    /// The segments of a user line or of a notice, written when they are first needed.
    pub(super) fn line(&mut self, entry: usize) -> Rc<LineSegments> {
        if let Some(line) = self.lines.get(&entry) {
            return Rc::clone(line);
        }
        let key = Arc::clone(&self.session.entries[entry].uuid);
        let mut line = LineSegments::default();
        let body = &mut self.session.entries[entry].body;
        let (answers, texts, author) = match body {
            Body::User(user) => {
                let (answers, texts) =
                    (std::mem::take(&mut user.answers), std::mem::take(&mut user.texts));
                (answers, texts, (user.role, user.origin))
            }
            Body::Notice(texts) => {
                (Vec::new(), std::mem::take(texts), (Role::Assistant, Origin::Harness))
            }
            _ => return Rc::default(),
        };
        for answer in answers {
            let segment = result(&answer.call, answer.text, answer.is_error);
            let id = self.write(entry, &answer.call, segment);
            line.answers.push((answer.call, id));
        }
        for part in texts {
            let mut segment = text(author.0, author.1, part);
            segment.part = (author.0 == Role::Assistant).then_some(Part::Content);
            line.rest.push(self.write(entry, &key, segment));
        }
        let line = Rc::new(line);
        self.lines.insert(entry, Rc::clone(&line));
        line
    }

    /// A call: the request before it, what it said, and what it took in.
    pub(super) fn call(&mut self, turn: usize, lines: &[usize], state: &mut State, origin: Origin) {
        let place = self.place(turn);
        self.flush(state, place);
        let (mut call, mut tokens, mut dropped) = (Call::default(), None, None);
        // Each line with the end of what it says, and of that the segments that summaries quote.
        let (mut ends, mut quoted) = (Vec::with_capacity(lines.len()), Vec::new());
        for &line in lines {
            let Body::Assistant(assistant) = &mut self.session.entries[line].body else { continue };
            tokens = assistant.input_tokens.or(tokens);
            call.model = assistant.model.clone().or(call.model);
            dropped = assistant.dropped.take().or(dropped);
            let said = std::mem::take(&mut assistant.said);
            let key = Arc::clone(&assistant.message);
            self.said(turn, (line, &key), said, origin, (&mut call.output, &mut quoted));
            ends.push((line, call.output.len()));
        }
        let reasons = call.output.iter().any(|said| said.part == Some(Part::Reasoning));
        if let Some(paths) = dropped {
            self.drop_thinking(state, lines[0], &paths);
        }
        let model = call.model.clone();
        let spot = self.session.spot(lines[0]);
        let site = Site {
            spot: &spot,
            key: "parentUuid",
            thread: &self.threads[turn],
            rollout: None,
            copied: lines.iter().all(|&line| self.session.entries[line].copied),
        };
        let called = self.player.call(&mut self.session.draft, state.held, call, site);
        state.held = Some(called.held);
        if let Some(before) = self.before.get_mut(&turn) {
            *before = Some(State { pending: Vec::new(), ..state.clone() });
        }
        let mut start = 0;
        for (line, end) in ends {
            let rest = called.output[start..end].to_vec();
            start = end;
            self.lines.insert(line, Rc::new(LineSegments { answers: Vec::new(), rest }));
        }
        for (compaction, at) in quoted {
            self.quoted.entry(compaction).or_default().push(called.output[at]);
        }
        state.model = model.or(state.model.take());
        let what = What::Output(Rc::from(called.output.as_slice()));
        state.pending.push(Pending { place, always: true, what });
        let Some(generation) = called.generation else {
            self.session.copies.calls += 1;
            return;
        };
        self.generations.insert(turn, generation);
        let (context_bytes, context_segments) = self.ledger().extent(called.held);
        self.counted.extend(tokens.map(|tokens| Counted {
            generation,
            thread: Arc::clone(&self.threads[turn]),
            era: state.era,
            whole: state.head.is_whole(),
            reasons,
            context_bytes,
            context_segments,
            tokens,
        }));
    }

    /// What a line of a call says, and of it the segments that a compaction's summary quotes.
    fn said(
        &self,
        turn: usize,
        (line, key): (usize, &str),
        said: Vec<Said>,
        origin: Origin,
        (output, all_quoted): (&mut Vec<Segment>, &mut Vec<(usize, usize)>),
    ) {
        let spot = self.session.spot(line);
        for (index, said) in said.into_iter().enumerate() {
            let quote = self.summarisers.iter().enumerate().find_map(|(at, summariser)| {
                let summariser =
                    summariser.as_ref().filter(|summariser| summariser.turn == turn)?;
                let quote =
                    summariser.quote.as_ref().filter(|quote| quote.from == (line, index))?;
                Some((at, quote.pieces.iter().map(|(from, _)| from.clone()).collect::<Vec<_>>()))
            });
            let (compaction, pieces) =
                quote.map_or((None, Vec::new()), |(at, pieces)| (Some(at), pieces));
            let origin = match (said.part, said.provided) {
                (Part::Reasoning, _) => Origin::ExternalModel,
                (_, true) => Origin::Environment,
                (_, false) => origin,
            };
            let cuts = cut(&said.text, &pieces);
            let last = cuts.len() - 1;
            for (at, (part, quoted)) in cuts.into_iter().enumerate() {
                let mut segment = text(Role::Assistant, origin, part.to_owned());
                segment.part = Some(said.part);
                segment.calls.extend(said.call.clone());
                if at < last {
                    runs_on(&mut segment);
                }
                if let Some(compaction) = compaction.filter(|_| quoted) {
                    all_quoted.push((compaction, output.len()));
                }
                output.push(spot.segment(key, segment));
            }
        }
    }

    /// A microcompaction: results that are in the context leave it, each with something in its
    /// place.
    fn clear(&mut self, state: &mut State, entry: usize) {
        let Body::Clearing(clearing) = &mut self.session.entries[entry].body else { return };
        let Clearing { calls, attachments, trigger, pointers } = clearing.clone();
        let spot = self.session.spot(entry);
        let there: FxHashSet<SegmentId> = self.ledger().list(state.held).into_iter().collect();
        let mut pointed = FxHashSet::default();
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            let hole = self.player.standing(&call, &there).next();
            let large = hole.filter(|&hole| pointers && self.ledger().size(hole) >= LARGE);
            pointed.extend(large);
            let words = large.map_or_else(|| CLEARED.into(), |_| pointer_text(&call));
            let left = Segment { origin: Origin::Harness, ..result(&call, words, false) };
            let left = spot.segment(format!("{call}#cleared"), left);
            results.push((call, left));
        }
        let change = Change::new(ReplacementKind::Placeholder).trigger(trigger);
        let swap =
            Swap { results, every: true, change, key: "microcompactMetadata.compactedToolIds" };
        let draft = &mut self.session.draft;
        state.held = self.player.swap(draft, state.held, swap, By::rule(RULE), &spot);
        if !pointed.is_empty() {
            let message = format!(
                "large results ({}) left pointers to files, whose exact text is not recorded",
                pointed.len()
            );
            self.session.warn(entry, "microcompactMetadata", "pointer-text", message);
        }
        self.clear_attachments(state, entry, &attachments, trigger);
    }

    fn clear_attachments(
        &mut self,
        state: &mut State,
        entry: usize,
        uuids: &[String],
        trigger: Option<Trigger>,
    ) {
        let file = self.session.entries[entry].file;
        let mut gone = FxHashSet::default();
        for uuid in uuids {
            let found = self.session.find(file, uuid);
            match found.and_then(|line| self.lines.get(&line)) {
                Some(line) => gone.extend(line.rest.iter().copied()),
                // Nothing of it was sent, or it is not known what.
                None if found.is_some_and(|line| self.session.entries[line].is_link()) => {}
                None => {
                    let message =
                        format!("attachment {uuid} is not in the context; it is passed over");
                    self.session.fault(
                        entry,
                        "microcompactMetadata.clearedAttachmentUUIDs",
                        "cleared-missing",
                        message,
                    );
                }
            }
        }
        let (gone, kept): (Vec<SegmentId>, Vec<SegmentId>) =
            self.ledger().list(state.held).into_iter().partition(|segment| gone.contains(segment));
        if let Some(held) = state.held.filter(|_| !gone.is_empty()) {
            let change = Change::new(ReplacementKind::None).trigger(trigger);
            let evict = change.evict(held, gone, By::rule(RULE));
            state.held = Some(self.ledger().evict(held, evict, &kept));
        }
    }
}

/// Marks a segment that runs on into the next one, as parts of one text that have different authors
/// do.
pub(super) fn runs_on(segment: &mut Segment) {
    segment.open = true;
}

fn pointer_text(call: &str) -> String {
    format!(
        "<persisted-output>Tool result saved to: tool-results/{call}.txt\n\nUse Read to view</persisted-output>"
    )
}

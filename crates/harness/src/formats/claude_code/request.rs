//! What every request holds, and the call that follows it.
use std::rc::Rc;
use std::sync::Arc;

use pleach_tree::{
    By, ContextId, Evict, Evicted, Evidence, Extra, Generation, GenerationId, Origin, Part, Place,
    Replacement, ReplacementKind, Role, Segment, SegmentId,
};
use rustc_hash::FxHashSet;

use super::content::Said;
use super::entry::{Body, Clearing};
use super::replay::{LineSegments, Pending, Replay, State, What};
use super::summary::cut;
use crate::core::usage::Counted;

/// What the request shows for a result that was cleared.
const CLEARED: &str = "[Old tool result content cleared]";

/// Bytes from which on versions that leave pointers are taken to leave one; the threshold is not
/// recorded.
const LARGE: u64 = 2_000;

impl Replay<'_> {
    /// Puts into the context what was written before `place`, results before other lines of the
    /// same run.
    pub(super) fn flush(&mut self, state: &mut State, place: u64) {
        let pending = std::mem::take(&mut state.pending);
        let (mut now, later): (Vec<Pending>, Vec<Pending>) =
            pending.into_iter().partition(|pending| pending.always || pending.place < place);
        state.pending = later;
        now.sort_by_key(|pending| pending.place);
        let mut run = Vec::new();
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
                what => run.push(what),
            }
        }
        self.append(state, run);
    }

    fn append(&mut self, state: &mut State, run: Vec<What>) {
        let (mut output, mut answers, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for what in run {
            match what {
                What::Output(segments) => output.extend_from_slice(&segments),
                What::Line(entry) => {
                    let line = self.line(entry);
                    answers.extend(line.answers.iter().map(|&(_, segment)| segment));
                    rest.extend_from_slice(&line.rest);
                }
            }
        }
        output.append(&mut answers);
        output.append(&mut rest);
        if output.iter().any(|segment| self.brought_back.contains(segment)) {
            let there: FxHashSet<SegmentId> = self.ledger().list(state.held).into_iter().collect();
            output.retain(|segment| !there.contains(segment));
        }
        if !output.is_empty() {
            state.held = Some(self.ledger().append(state.held, output));
        }
    }

    /// The segments of a user line, written when they are first needed.
    pub(super) fn line(&mut self, entry: usize) -> Rc<LineSegments> {
        if let Some(line) = self.lines.get(&entry) {
            return Rc::clone(line);
        }
        let Body::User(user) = &mut self.session.entries[entry].body else { return Rc::default() };
        let (answers, texts, origin) =
            (std::mem::take(&mut user.answers), std::mem::take(&mut user.texts), user.origin);
        let key = Arc::clone(&self.session.entries[entry].uuid);
        let mut line = LineSegments::default();
        for answer in answers {
            let mut segment = text(Role::Tool, Origin::Environment, answer.text);
            if answer.is_error {
                segment.extra.insert("is_error".into(), true.into());
            }
            segment.result_of = Some(answer.call.clone());
            let id = self.session.write(entry, &answer.call, segment);
            self.results.entry(answer.call.clone()).or_default().push(id);
            line.answers.push((answer.call, id));
        }
        for part in texts {
            line.rest.push(self.session.write(entry, &key, text(Role::User, origin, part)));
        }
        let line = Rc::new(line);
        self.lines.insert(entry, Rc::clone(&line));
        line
    }

    /// A call: the request before it, what it said, and what it took in.
    pub(super) fn call(&mut self, turn: usize, lines: &[usize], state: &mut State, origin: Origin) {
        self.flush(state, self.place(turn));
        let held = match state.held {
            Some(held) => held,
            None => self.ledger().append(None, Vec::new()),
        };
        if let Some(before) = self.before.get_mut(&turn) {
            *before = Some(State {
                held: Some(held),
                pending: Vec::new(),
                model: state.model.clone(),
                era: state.era,
            });
        }
        let mut origin = origin;
        let (context_bytes, context_segments) = self.ledger().extent(held);
        if context_bytes == 0 {
            let message = "nothing stands before the call; its text carries no loss".into();
            self.session.fault(lines[0], "parentUuid", "empty-context", message);
            origin = Origin::ExternalModel;
        }
        let (mut output, mut reasons, mut tokens, mut model) = (Vec::new(), false, None, None);
        for &line in lines {
            let Body::Assistant(assistant) = &mut self.session.entries[line].body else { continue };
            reasons |= assistant.reasons();
            tokens = assistant.input_tokens.or(tokens);
            model = assistant.model.clone().or(model);
            let said = std::mem::take(&mut assistant.said);
            let key = Arc::clone(&assistant.message);
            let written = self.said(turn, line, &key, said, origin);
            output.extend_from_slice(&written);
            self.lines.insert(line, Rc::new(LineSegments { answers: Vec::new(), rest: written }));
        }
        state.held = Some(held);
        state.model = model.clone().or(state.model.take());
        let place = self.place(turn);
        state.pending.push(Pending {
            place,
            always: true,
            what: What::Output(Rc::from(output.as_slice())),
        });
        if lines.iter().all(|&line| self.session.entries[line].copied) {
            self.session.copies.calls += 1;
            return;
        }
        let mut generation = Generation::new(GenerationId(0), held.id, output);
        generation.thread = self.threads[turn].to_string();
        generation.policy = model.as_deref().map(str::to_owned);
        generation.unrecorded = if reasons { vec!["reasoning".into()] } else { Vec::new() };
        let id = self.ledger().generation(generation);
        self.generations.insert(turn, id);
        let era = state.era;
        let thread = Arc::clone(&self.threads[turn]);
        self.counted.extend(tokens.map(|tokens| Counted {
            generation: id,
            thread,
            era,
            context_bytes,
            context_segments,
            tokens,
        }));
    }

    fn said(
        &mut self,
        turn: usize,
        line: usize,
        key: &str,
        said: Vec<Said>,
        origin: Origin,
    ) -> Vec<SegmentId> {
        let mut written = Vec::new();
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
                let id = self.session.write(line, key, segment);
                if let Some(compaction) = compaction.filter(|_| quoted) {
                    self.quoted.entry(compaction).or_default().push(id);
                }
                written.push(id);
            }
        }
        written
    }

    /// A microcompaction: results that are in the context leave it, each with something in its
    /// place.
    fn clear(&mut self, state: &mut State, entry: usize) {
        let Body::Clearing(clearing) = &mut self.session.entries[entry].body else { return };
        let Clearing { calls, attachments, trigger, pointers } = clearing.clone();
        let list = self.ledger().list(state.held);
        let there: FxHashSet<SegmentId> = list.iter().copied().collect();
        let mut holes = Vec::new();
        for call in calls {
            let segment = self
                .results
                .get(&call)
                .and_then(|found| found.iter().copied().find(|id| there.contains(id)));
            match segment {
                Some(segment) if holes.iter().all(|&(hole, _)| hole != segment) => {
                    holes.push((segment, call))
                }
                Some(_) => {}
                None => {
                    let message = format!(
                        "the result of call {call} is not in the context; it is passed over"
                    );
                    self.session.fault(
                        entry,
                        "microcompactMetadata.compactedToolIds",
                        "cleared-missing",
                        message,
                    );
                }
            }
        }
        let mut put = Vec::new();
        let mut pointed = 0;
        for (hole, call) in &holes {
            let pointer = pointers && self.ledger().size(*hole) >= LARGE;
            pointed += usize::from(pointer);
            let mut segment = text(
                Role::Tool,
                Origin::Harness,
                if pointer { pointer_text(call) } else { CLEARED.into() },
            );
            segment.result_of = Some(call.clone());
            let id = self.session.write(entry, &format!("{call}#cleared"), segment);
            self.results.entry(call.clone()).or_default().push(id);
            put.push(id);
        }
        if pointed > 0 {
            let message = format!(
                "large results ({pointed}) left pointers to files, whose exact text is not recorded"
            );
            self.session.warn(entry, "microcompactMetadata", "pointer-text", message);
        }
        let mut evict = self.clearing(trigger);
        evict.evicted = holes.iter().map(|&(hole, _)| Evicted::whole(hole)).collect();
        evict.replacement =
            Some(Replacement::new(ReplacementKind::Placeholder, put.clone(), Place::InPlace));
        let swap =
            |id: SegmentId| holes.iter().position(|&(hole, _)| hole == id).map_or(id, |at| put[at]);
        let list: Vec<SegmentId> = list.into_iter().map(swap).collect();
        self.evicted(state, evict, &list);
        self.clear_attachments(state, entry, &attachments, trigger);
    }

    fn clear_attachments(
        &mut self,
        state: &mut State,
        entry: usize,
        uuids: &[String],
        trigger: Option<pleach_tree::Trigger>,
    ) {
        let file = self.session.entries[entry].file;
        let mut gone = FxHashSet::default();
        for uuid in uuids {
            match self.session.find(file, uuid).and_then(|line| self.lines.get(&line)) {
                Some(line) => gone.extend(line.rest.iter().copied()),
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
        let mut evict = self.clearing(trigger);
        evict.evicted = gone.into_iter().map(Evicted::whole).collect();
        self.evicted(state, evict, &kept);
    }

    fn clearing(&self, trigger: Option<pleach_tree::Trigger>) -> Evict {
        Evict {
            context: ContextId(0),
            from: ContextId(0),
            evicted: Vec::new(),
            replacement: None,
            by: Some(By::rule("microcompact")),
            trigger,
            evidence: Some(Evidence::Recorded),
            extra: Extra::new(),
        }
    }

    fn evicted(&mut self, state: &mut State, evict: Evict, list: &[SegmentId]) {
        if let Some(held) = state.held.filter(|_| !evict.evicted.is_empty()) {
            state.held = Some(self.ledger().evict(held, evict, list));
        }
    }
}

/// A segment of text; its id and source are filled in as it is written.
pub(super) fn text(role: Role, origin: Origin, text: String) -> Segment {
    Segment::new(SegmentId(0), role, origin).with_text(text)
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

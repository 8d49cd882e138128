//! Calls in the order of a log, and the contexts that follow from their prompts.
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pleach_tree::{ForkReason, Generation, GenerationId, Origin, SegmentId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::call::{Call, Said};
use super::head::{Head, Heads, Mark};
use super::read::{HeadIndex, Reading, read, summarises};
use super::{Id, Units};
use crate::core::draft::Draft;
use crate::core::ledger::Held;
use crate::core::threads::{self, Branch};

/// Calls given one by one, and where each left its thread.
#[derive(Debug, Default)]
pub(crate) struct Prompts<U> {
    /// What the units are.
    pub(crate) units: U,
    pub(super) heads: FxHashMap<String, Heads>,
    nodes: Vec<Branch>,
    pub(super) models: Vec<Option<Arc<str>>>,
    conversations: Vec<String>,
    counts: BTreeMap<(String, String), usize>,
    waiting: Option<Call>,
    /// Numbers of the calls so far.
    seen: FxHashSet<u64>,
}

/// A context as it stands before a call, with its units.
pub(super) struct Ready {
    pub(super) held: Held,
    pub(super) ids: Vec<Id>,
    pub(super) marks: Vec<Mark>,
    pub(super) cuts: Vec<usize>,
}

/// Where a call stands among the others.
struct Spot {
    parent: Option<usize>,
    conversation: usize,
}

impl<U: Units> Prompts<U> {
    /// Takes the next call of the log; records of the one before it are written now that it is
    /// known what came of it.
    pub(crate) fn push(&mut self, draft: &mut Draft, call: Call) {
        if let Some(mut before) = self.waiting.take() {
            let summarises = summarises(&self.units, &before, &call);
            if summarises && before.model != call.model {
                // Another model's summary is not the policy's, and so is its text.
                let own = |said: &&mut Said| said.segment.origin == Origin::Policy;
                before
                    .said
                    .iter_mut()
                    .filter(own)
                    .for_each(|said| said.segment.origin = Origin::ExternalModel);
            }
            self.step(draft, before, summarises);
        }
        self.waiting = Some(call);
    }

    /// Writes what is left and names the threads.
    pub(crate) fn finish(mut self, draft: &mut Draft) {
        if let Some(last) = self.waiting.take() {
            self.step(draft, last, false);
        }
        let order: Vec<usize> = (0..self.nodes.len()).collect();
        let conversations: Vec<&str> = self.conversations.iter().map(String::as_str).collect();
        draft.ledger.name_threads(&threads::names(&self.nodes, &order, &conversations));
    }

    fn step(&mut self, draft: &mut Draft, call: Call, summariser: bool) {
        if self.repeated(draft, &call) {
            return;
        }
        let mut heads = self.heads.remove(&call.rollout).unwrap_or_default();
        let (ready, spot) = match read(&self.units, &heads, &call) {
            None => self.root(draft, &call, summariser),
            Some((place, Reading::Extends)) => {
                self.extend(draft, &mut heads, place, &call, summariser)
            }
            Some((place, Reading::Fork { mark, keep, reason })) => {
                let at = mark.end.filter(|&end| end <= keep);
                let parent =
                    if at.is_some() { Some(mark.node) } else { self.nodes[mark.node].parent };
                let Some((_, head)) = heads.all().nth(place.rank) else { return };
                let reason = if summariser { ForkReason::Summarizer } else { reason };
                let conversation = if summariser {
                    self.conversation(&call, "summarizer")
                } else {
                    head.conversation
                };
                let parent = parent.filter(|_| !summariser);
                (
                    self.go_back(draft, head, mark, keep, &call, reason),
                    Spot { parent, conversation },
                )
            }
            Some((place, Reading::Edit(blocks))) if summariser && place.live.is_some() => {
                let Some((_, head)) = heads.all().nth(place.rank) else { return };
                let conversation = self.conversation(&call, "summarizer");
                let context = draft.ledger.fork(head.context, ForkReason::Summarizer);
                let fork = Head { context, ..head.clone() };
                let ready = self.edit(draft, &heads, &fork, &blocks, &call);
                (ready, Spot { parent: None, conversation })
            }
            Some((place, Reading::Edit(blocks))) => {
                let Some((_, head)) = heads.all().nth(place.rank) else { return };
                let spot = Spot { parent: Some(head.node), conversation: head.conversation };
                let ready = self.edit(draft, &heads, head, &blocks, &call);
                if let Some(live) = place.live {
                    let left = heads.live.remove(live);
                    heads.retire(left);
                }
                (ready, spot)
            }
        };
        let head = self.generation(draft, &call, ready, &spot);
        if summariser && self.conversations[spot.conversation].starts_with("summarizer") {
            heads.retire(head);
        } else {
            heads.push(head);
        }
        self.heads.insert(call.rollout, heads);
    }

    /// Whether the record of a call stands twice, which would train it twice.
    fn repeated(&mut self, draft: &mut Draft, call: &Call) -> bool {
        if !U::SPLITS && call.key.is_empty() {
            return false;
        }
        // Ids that are all the same are one call; messages may be said again, so the record's own
        // key counts too.
        let key = if U::SPLITS { "" } else { call.key.as_str() };
        let mut hasher = DefaultHasher::new();
        (key, &call.rollout, &call.thread, &call.prompt, call.output()).hash(&mut hasher);
        let repeated = !self.seen.insert(hasher.finish());
        if repeated {
            let message = format!(
                "call {} stands twice with the same prompt and answer; the first is kept",
                call.key
            );
            draft.warn(&call.spot.at, "", "repeated-call", message);
        }
        repeated
    }

    /// A thread of its own of that name, `main` for the first one of a rollout.
    fn conversation(&mut self, call: &Call, name: &str) -> usize {
        let count = self.counts.entry((call.rollout.clone(), name.to_owned())).or_default();
        *count += 1;
        let name = match (&call.thread, name, *count) {
            (_, name @ "main", 1) => name.into(),
            (Some(thread), name, 1) if thread == name => name.into(),
            (_, name, count) => format!("{name}-{count}"),
        };
        self.conversations.push(name);
        self.conversations.len() - 1
    }

    fn root(&mut self, draft: &mut Draft, call: &Call, summariser: bool) -> (Ready, Spot) {
        let (segments, ids) = self.write(draft, call, &call.prompt, true);
        let held = draft.ledger.append(None, segments);
        let name = if summariser { "summarizer" } else { "main" };
        let conversation = match &call.thread {
            Some(thread) if !summariser => self.conversation(call, thread),
            _ => self.conversation(call, name),
        };
        (
            Ready { held, ids, marks: Vec::new(), cuts: Vec::new() },
            Spot { parent: None, conversation },
        )
    }

    fn extend(
        &mut self,
        draft: &mut Draft,
        heads: &mut Heads,
        place: HeadIndex,
        call: &Call,
        summariser: bool,
    ) -> (Ready, Spot) {
        let live = place.live.unwrap_or_default();
        let conversation =
            if summariser { Some(self.conversation(call, "summarizer")) } else { None };
        let head = if summariser { heads.live[live].clone() } else { heads.live.remove(live) };
        let (new, behind) = self.write(draft, call, &call.prompt[head.units.len()..], false);
        let from = if summariser {
            draft.ledger.fork(head.context, ForkReason::Summarizer)
        } else {
            head.context
        };
        let marks = head.marks_within(head.units.len());
        let segments: Vec<SegmentId> = head.output.iter().copied().chain(new).collect();
        let held =
            if segments.is_empty() { from } else { draft.ledger.append(Some(from), segments) };
        let ids = head.ids.into_iter().chain(behind).collect();
        let parent = Some(head.node).filter(|_| conversation.is_none());
        (
            Ready { held, ids, marks, cuts: head.cuts },
            Spot { parent, conversation: conversation.unwrap_or(head.conversation) },
        )
    }

    /// Forks where an earlier call stood, and goes on with what the prompt keeps behind it and what
    /// is new.
    fn go_back(
        &self,
        draft: &mut Draft,
        head: &Head,
        mark: Mark,
        keep: usize,
        call: &Call,
        reason: ForkReason,
    ) -> Ready {
        let mut held = draft.ledger.fork(mark.context, reason);
        let mut segments: Vec<SegmentId> =
            head.ids[mark.prompt..keep].iter().map(|id| id.segment).collect();
        segments.dedup();
        let (new, behind) = self.write(draft, call, &call.prompt[keep..], false);
        segments.extend(new);
        if !segments.is_empty() {
            held = draft.ledger.append(Some(held), segments);
        }
        let ids = head.ids[..keep].iter().copied().chain(behind).collect();
        let cuts = head.cuts.iter().copied().filter(|&cut| cut < keep).collect();
        Ready { held, ids, marks: head.marks_within(keep), cuts }
    }

    /// Writes units that no call of the log said.
    pub(super) fn write(
        &self,
        draft: &mut Draft,
        call: &Call,
        run: &[u32],
        first: bool,
    ) -> (Vec<SegmentId>, Vec<Id>) {
        let (mut segments, mut ids) = (Vec::new(), Vec::with_capacity(run.len()));
        if run.is_empty() {
            return (segments, ids);
        }
        for (mut segment, units) in self.units.segments(run, first) {
            let source = segment.source.take().unwrap_or_else(|| {
                draft.source(call.spot.file, call.spot.at.line, call.key.clone())
            });
            let id = draft.ledger.segment(source, segment);
            segments.push(id);
            ids.extend(
                (0..units).map(|at| Id { segment: id, at: u32::try_from(at).unwrap_or(u32::MAX) }),
            );
        }
        (segments, ids)
    }

    /// Writes the call itself and tells where it leaves its thread.
    fn generation(&mut self, draft: &mut Draft, call: &Call, ready: Ready, spot: &Spot) -> Head {
        let node = self.nodes.len();
        self.nodes.push(Branch {
            parent: spot.parent,
            conversation: spot.conversation,
            place: node as u64,
            is_call: true,
        });
        self.models.push(call.model.clone());
        let Ready { held, mut ids, marks, cuts } = ready;
        let mut output = Vec::with_capacity(call.said.len());
        let nothing = call.prompt.is_empty();
        if nothing {
            draft.fault(
                &call.spot.at,
                "",
                "empty-context",
                "nothing stands before the call; its text carries no loss",
            );
        }
        for said in &call.said {
            let mut segment = said.segment.clone();
            if nothing && segment.origin == Origin::Policy {
                (segment.origin, segment.loss) = (Origin::ExternalModel, None);
            }
            let source = segment.source.take().unwrap_or_else(|| {
                draft.source(call.spot.file, call.spot.at.line, call.key.clone())
            });
            let id = draft.ledger.segment(source, segment);
            output.push(id);
            ids.extend(
                (0..said.units.len())
                    .map(|at| Id { segment: id, at: u32::try_from(at).unwrap_or(u32::MAX) }),
            );
        }
        let mut generation = Generation::new(GenerationId(0), held.id, output.clone());
        generation.rollout.clone_from(&call.rollout);
        generation.policy = call.model.as_deref().map(str::to_owned);
        generation.unrecorded.clone_from(&call.unrecorded);
        generation.extra = call.extra.clone();
        draft.ledger.generation(generation);
        Head {
            units: call.prompt.iter().copied().chain(call.output()).collect(),
            ids,
            prompt: call.prompt.len(),
            context: held,
            output,
            node,
            conversation: spot.conversation,
            thread: call.thread.clone(),
            marks,
            cuts,
        }
    }
}

//! Steps carried out on the records so far.
use pleach_tree::{
    Append, CacheSemantics, ContextId, Evict, Extra, Fidelity, Fork, Generation, GenerationId,
    Header, Origin, Outcome, Record, Replace, Replacement, SegmentId, Status,
};

use super::step::{Cut, Step, Text};
use super::{pick, write};
use crate::oracle::{Oracle, Slot, piece_starts};

/// Carries out steps; what comes out is a sound file, whatever the steps.
pub fn grow(steps: &[Step], cache: CacheSemantics) -> Vec<Record> {
    let mut header = Header::new("drawn", Fidelity::Token);
    header.cache = cache;
    let mut grower = Grower {
        oracle: Oracle::of(&[Record::Header(header)]),
        kv_evict: cache == CacheSemantics::KvEvict,
        ..Grower::default()
    };
    for step in steps {
        grower.step(step);
    }
    grower.finish()
}

#[derive(Debug, Clone)]
struct Thread {
    rollout: usize,
    context: u32,
    contexts: Vec<u32>,
}

#[derive(Debug, Default)]
struct Grower {
    oracle: Oracle,
    kv_evict: bool,
    segments: Vec<u32>,
    contexts: Vec<u32>,
    threads: Vec<Thread>,
    current: usize,
    rollouts: usize,
    last: Option<GenerationId>,
}

impl Grower {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Root(prompt) => self.root(prompt),
            _ if self.threads.is_empty() => {
                self.root(&[Text { tokens: vec![0, 1], role: 1, ..Text::default() }]);
                self.step(step);
            }
            Step::Say { output, reply, dropped } => {
                let output = self.call(output);
                let reply = self.texts(reply);
                let kept = if *dropped { Vec::new() } else { output };
                self.append(&[kept, reply].concat());
            }
            Step::Again(output) => {
                self.call(output);
            }
            Step::Append(texts, back) => {
                let returned = back.and_then(|back| self.absent(back));
                let texts = self.texts(texts);
                self.append(&[returned.into_iter().collect(), texts].concat());
            }
            Step::Evict(cut) => self.evict(cut, None),
            Step::Summarise(ask, summary, cut) => self.summarise(ask, summary, cut),
            Step::Replace(kept, texts) => self.replace(kept, texts),
            Step::Fork { from, reason, rollout } => {
                let from = self.contexts[usize::from(*from) % self.contexts.len()];
                self.fork(from, *reason, *rollout);
            }
            Step::Switch(thread) => self.current = usize::from(*thread) % self.threads.len(),
            Step::Back(context) if !self.kv_evict => {
                let thread = &mut self.threads[self.current];
                thread.context = thread.contexts[usize::from(*context) % thread.contexts.len()];
            }
            Step::Back(_) => {}
            Step::Note => {
                let mut note: Extra = [("t".to_string(), "x-note".into())].into_iter().collect();
                note.append(&mut write::extra(true));
                self.oracle.push(Record::Unknown(note));
            }
        }
    }

    fn finish(mut self) -> Vec<Record> {
        for rollout in 0..self.rollouts {
            let status = [Status::Finished, Status::Overlong, Status::Aborted][rollout % 3];
            let outcome = Outcome {
                rollout: format!("r{rollout}"),
                group: "g".into(),
                reward: rollout as f64 / 3.0,
                status,
                extra: write::extra(rollout == 1),
            };
            self.oracle.push(Record::Outcome(outcome));
        }
        self.oracle.records
    }

    fn root(&mut self, prompt: &[Text]) {
        let segments = self.texts(prompt);
        let context = self.context();
        self.threads.push(Thread { rollout: self.rollouts, context, contexts: Vec::new() });
        self.rollouts += 1;
        self.current = self.threads.len() - 1;
        let append =
            Append { context: ContextId(context), from: None, segments, extra: Extra::new() };
        self.made(context, Record::Append(append));
    }

    fn append(&mut self, segments: &[SegmentId]) {
        let (from, context) = self.next();
        let append =
            Append { context, from: Some(from), segments: segments.to_vec(), extra: Extra::new() };
        self.made(context.0, Record::Append(append));
    }

    fn fork(&mut self, from: u32, reason: u8, rollout: bool) {
        if self.kv_evict {
            return;
        }
        let number = if rollout { self.rollouts } else { self.threads[self.current].rollout };
        self.rollouts = self.rollouts.max(number + 1);
        let context = self.context();
        self.threads.push(Thread { rollout: number, context, contexts: Vec::new() });
        self.current = self.threads.len() - 1;
        let (reason, extra) = (write::reason(reason), write::extra(reason.is_multiple_of(4)));
        let fork = Fork { context: ContextId(context), from: ContextId(from), reason, extra };
        self.made(context, Record::Fork(fork));
    }

    /// Calls the policy under the context at hand; what it says first has something before it.
    fn call(&mut self, output: &[Text]) -> Vec<SegmentId> {
        let context = self.threads[self.current].context;
        let mut before = self.list().iter().any(|slot| matches!(slot, Slot::Token(_)));
        let mut segments = Vec::new();
        for text in output {
            let text = self.copied(text);
            let origin = if before || text.tokens.is_empty() { text.origin } else { 4 };
            segments.push(self.segment(&Text { origin, ..text.clone() }, true));
            before |= !text.tokens.is_empty();
        }
        let id = GenerationId(self.oracle.calls.len() as u32 * 2);
        let mut generation = Generation::new(id, ContextId(context), segments.clone());
        generation.rollout = format!("r{}", self.threads[self.current].rollout);
        generation.thread = format!("t{}", self.current);
        generation.policy = self.current.is_multiple_of(2).then(|| "step-1".into());
        let external = |id: &SegmentId| self.oracle.segments[&id.0].origin == Origin::ExternalModel;
        generation.unrecorded = segments
            .iter()
            .filter(|id| external(id))
            .map(|_| "reasoning".to_string())
            .take(1)
            .collect();
        self.oracle.push(Record::Generation(generation));
        self.last = Some(id);
        segments
    }

    fn evict(&mut self, cut: &Cut, summary: Option<SegmentId>) {
        let evicted = pick::ranges(&self.list(), &cut.picks);
        if evicted.is_empty() {
            return;
        }
        let mut segments = cut.replacement.as_ref().map(|texts| self.texts(texts));
        if let Some(segments) = segments.as_mut().filter(|_| cut.one_each) {
            segments.truncate(evicted.len());
            while segments.len() < evicted.len() {
                segments.push(self.segment(&Text { tokens: vec![0], ..Text::default() }, false));
            }
        }
        if let Some(summary) = summary {
            segments = Some(vec![summary]);
        }
        let (from, context) = self.next();
        let mut evict = Evict {
            context,
            from,
            evicted,
            replacement: None,
            by: write::by(cut.by, self.last),
            trigger: write::trigger(cut.by),
            evidence: write::evidence(cut.by),
            extra: write::extra(cut.by == 6),
        };
        if let Some(segments) = segments {
            let mut probe = self.oracle.clone();
            probe.push(Record::Evict(Box::new(evict.clone())));
            let pieces = piece_starts(&probe.contexts[&context.0]).len();
            evict.replacement = Some(Replacement::new(
                write::kind(cut.kind, &segments),
                segments,
                write::place(cut.place, pieces),
            ));
        }
        self.made(context.0, Record::Evict(Box::new(evict)));
    }

    /// The policy writes a summary: in a thread of its own, or in this one where nothing forks.
    fn summarise(&mut self, ask: &Text, summary: &Text, cut: &Cut) {
        let main = self.current;
        let before = self.threads[main].context;
        self.fork(before, 3, false);
        let ask = self.texts(std::slice::from_ref(ask));
        self.append(&ask);
        let written = self.call(std::slice::from_ref(summary));
        self.current = main;
        let cut = Cut { by: 1, ..cut.clone() };
        self.evict(&cut, written.first().copied());
    }

    fn replace(&mut self, kept: &[u8], texts: &[Text]) {
        let list = self.list();
        let mut segments: Vec<SegmentId> = Vec::new();
        for &number in kept.iter().filter(|_| !list.is_empty()) {
            let segment = SegmentId(list[usize::from(number) % list.len()].segment());
            if !segments.contains(&segment) {
                segments.push(segment);
            }
        }
        segments.extend(self.texts(texts));
        let (from, context) = self.next();
        let by = write::by(kept.len() as u8, self.last);
        self.made(
            context.0,
            Record::Replace(Replace { context, by, ..Replace::new(from, segments) }),
        );
    }

    /// A segment of which nothing stands in the context at hand.
    fn absent(&self, number: u8) -> Option<SegmentId> {
        let list = self.list();
        let absent: Vec<u32> = self
            .segments
            .iter()
            .copied()
            .filter(|&segment| list.iter().all(|slot| slot.segment() != segment))
            .collect();
        (!absent.is_empty()).then(|| SegmentId(absent[usize::from(number) % absent.len()]))
    }

    fn list(&self) -> Vec<Slot> {
        self.oracle.contexts[&self.threads[self.current].context].clone()
    }

    fn copied(&self, text: &Text) -> Text {
        let mut text = text.clone();
        if let Some(number) = text.copy_of.filter(|_| !self.segments.is_empty()) {
            let original = self.segments[usize::from(number) % self.segments.len()];
            text.tokens = self.oracle.segments[&original].tokens.clone().unwrap_or_default();
        }
        text
    }

    fn texts(&mut self, texts: &[Text]) -> Vec<SegmentId> {
        texts.iter().map(|text| self.segment(&self.copied(text), false)).collect()
    }

    /// Ids jump about, so that nothing can lean on their order.
    fn segment(&mut self, text: &Text, sampled: bool) -> SegmentId {
        let id = self.segments.len() as u32 * 611 % 1009;
        self.segments.push(id);
        self.oracle.push(Record::Segment(write::segment(id, text, sampled)));
        SegmentId(id)
    }

    fn context(&self) -> u32 {
        self.contexts.len() as u32 * 389 % 1009
    }

    fn next(&self) -> (ContextId, ContextId) {
        (ContextId(self.threads[self.current].context), ContextId(self.context()))
    }

    fn made(&mut self, context: u32, record: Record) {
        self.oracle.push(record);
        self.contexts.push(context);
        let thread = &mut self.threads[self.current];
        thread.context = context;
        thread.contexts.push(context);
    }
}

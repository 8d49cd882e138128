//! From the events of a sample to the script.
use std::sync::Arc;

use pleach_tree::{Evidence, Extra, Origin, Outcome, ReplacementKind, Segment, Status};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::message::{Attachments, Message};
use super::pool::{Key, Known};
use super::sample::{Event, Field, Output, Ranges, Sample};
use crate::core::script::{Call, Change, Item, List, Script, Spot, Step};

/// A thread as its last call left it.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) conversation: usize,
    pub(super) spans: Vec<String>,
    /// The messages of its context and of its last call.
    pub(super) live: Vec<Key>,
    /// The node behind which the context held so many messages, in order.
    pub(super) marks: Vec<(usize, Option<usize>)>,
    pub(super) at: Option<usize>,
    pub(super) model: Option<Arc<str>>,
    /// The compaction since its last call.
    pub(super) compaction: Option<Change>,
}

#[derive(Debug, Clone, Copy)]
struct Written {
    node: usize,
    start: usize,
    end: usize,
    listed: bool,
}

impl Written {
    fn of(node: usize, count: usize) -> Self {
        Self { node, start: 0, end: count, listed: false }
    }

    fn items(self) -> Vec<Item> {
        match self.listed {
            true => vec![Item::Listed(self.node, self.start..self.end)],
            false => (self.start..self.end).map(|part| Item::Part(self.node, part)).collect(),
        }
    }
}

/// Calls that are not the policy's: where the first one stands, and how many there are.
#[derive(Debug, Default)]
pub(super) struct Others(Option<(Spot, u64)>);

impl Others {
    /// Says how many calls were left out.
    pub(super) fn tell(self, script: &mut Script) {
        let Some((spot, count)) = self.0 else { return };
        let message = format!(
            "calls ({count}) are a scorer's, or of a model in another role, here and in the samples below; they are not the policy's and are left out"
        );
        script.draft.warn(&spot.at, "events", "other-calls", message);
    }
}

/// A sample while it is played.
pub(super) struct Play<'s> {
    pub(super) script: &'s mut Script,
    pub(super) spot: &'s Spot,
    pub(super) rollout: String,
    pub(super) threads: Vec<Thread>,
    names: FxHashMap<String, String>,
    /// Spans that a score is made in.
    scorers: FxHashSet<String>,
    others: &'s mut Others,
    /// Where the segments of a message were written: as what a node brought, or as a part of a list
    /// that it made.
    written: FxHashMap<Key, Written>,
    pub(super) summaries: usize,
}

/// Adds the calls of a sample.
pub(super) fn sample(script: &mut Script, sample: Sample, spot: &Spot, others: &mut Others) {
    let (rollout, group, reward) = (sample.name(), sample.group(), sample.reward());
    let status = match (&sample.error, &sample.limit) {
        (Some(error), _) if !error.is_null() => Status::Aborted,
        (_, Some(limit)) if !limit.is_null() => Status::Overlong,
        _ => Status::Finished,
    };
    let mut attachments = Attachments { texts: &sample.attachments, missing: Vec::new() };
    let pool = sample.events_data.map(|data| data.messages).unwrap_or_default();
    let pool: Vec<Known> = pool
        .into_iter()
        .enumerate()
        .map(|(at, message)| Known::new(message, &mut attachments, &format!("message-{at}"), spot))
        .collect();
    let mut play = Play {
        script,
        spot,
        rollout: rollout.clone(),
        threads: Vec::new(),
        names: FxHashMap::default(),
        scorers: FxHashSet::default(),
        others,
        written: FxHashMap::default(),
        summaries: 0,
    };
    for (at, event) in sample.events.into_iter().enumerate() {
        play.event(event, at, &pool, &mut attachments);
    }
    for digest in std::mem::take(&mut attachments.missing) {
        let message =
            format!("the attachment {digest} is not in the sample; its mark stands for it");
        script.draft.fault(&spot.at, "attachments", "missing-attachment", message);
    }
    if let Some(reward) = reward {
        script.outcomes.push(Outcome { rollout, group, reward, status, extra: Extra::new() });
    }
}

impl Play<'_> {
    fn event(
        &mut self,
        event: Event,
        at: usize,
        pool: &[Known],
        attachments: &mut Attachments<'_>,
    ) {
        match event.kind.as_deref().unwrap_or_default() {
            "span_begin" => {
                let inside =
                    event.parent_id.as_ref().is_some_and(|parent| self.scorers.contains(parent));
                if inside || matches!(event.sort.as_deref(), Some("scorer" | "scorers")) {
                    self.scorers.extend(event.id.clone());
                }
                let named = event.name.filter(|_| {
                    matches!(event.sort.as_deref(), Some("agent" | "solver" | "handoff"))
                });
                if let Some((id, name)) = event.id.zip(named) {
                    self.names.insert(id, name);
                }
            }
            "compaction" => self.compaction(event),
            "model" => self.model(event, at, pool, attachments),
            _ => {}
        }
    }

    fn model(
        &mut self,
        event: Event,
        at: usize,
        pool: &[Known],
        attachments: &mut Attachments<'_>,
    ) {
        let failed = event.error.as_ref().is_some_and(|error| !error.is_null())
            || event.pending == Some(Value::Bool(true));
        if failed {
            return;
        }
        let scores = event.span_id.as_ref().is_some_and(|span| self.scorers.contains(span));
        if scores || event.role.is_some() {
            let (_, count) = self.others.0.get_or_insert_with(|| (self.spot.clone(), 0));
            *count += 1;
            return;
        }
        let output: Option<Output> = self.field(event.output, at, "output");
        let Some(mut choice) = output.and_then(|output| output.choices.into_iter().next()) else {
            return;
        };
        let name = event.uuid.unwrap_or_else(|| format!("event-{at}"));
        let prompt = self.prompt((event.input, event.input_refs), (at, &name), pool, attachments);
        // What a choice holds was sampled, whatever role the log gives it.
        choice.message.role = "assistant".into();
        let said = Known::new(choice.message, attachments, &name, self.spot);
        let model: Option<Arc<str>> = event.model.map(Arc::from);
        let thread = self.thread(event.span_id.as_deref(), &prompt);
        self.reach(thread, &prompt);
        let from = self.threads[thread].at;
        let output: Vec<Segment> = said.segments.to_vec();
        let (conversation, count) = (self.threads[thread].conversation, output.len());
        let call = Call { output, model: model.clone(), ..Call::default() };
        let node = self.script.push(from, conversation, self.spot, Step::Call(call));
        self.written.insert(said.key.clone(), Written::of(node, count));
        let thread = &mut self.threads[thread];
        thread.marks.push((thread.live.len(), from));
        thread.live.push(said.key);
        thread.at = Some(node);
        thread.model = model;
    }

    /// What a call was given: messages of its own, and those that it refers to.
    fn prompt(
        &mut self,
        (input, refs): (Field<Vec<Message>>, Field<Ranges>),
        (at, name): (usize, &str),
        pool: &[Known],
        attachments: &mut Attachments<'_>,
    ) -> Vec<Known> {
        let mut prompt: Vec<Known> = Vec::new();
        let input: Option<Vec<Message>> = self.field(input, at, "input");
        for (index, message) in input.into_iter().flatten().enumerate() {
            prompt.push(Known::new(message, attachments, &format!("{name}-{index}"), self.spot));
        }
        let refs = self.field(refs, at, "input_refs");
        for (start, end) in refs.into_iter().flatten() {
            match pool.get(start..end) {
                Some(messages) => prompt.extend_from_slice(messages),
                None => {
                    let message = format!(
                        "messages {start} to {end} are not all in the pool of {}; they are left out",
                        pool.len()
                    );
                    self.script.draft.fault(
                        &self.spot.at,
                        "events.input_refs",
                        "reference-outside",
                        message,
                    );
                }
            }
        }
        prompt
    }

    /// What a call has under a key; what cannot be read is a fault.
    fn field<T>(&mut self, field: Field<T>, at: usize, key: &str) -> Option<T> {
        match field {
            Field::Is(value) => value,
            Field::Odd(message) => {
                let message = format!("{message}; it is left out");
                let key = format!("events[{at}].{key}");
                self.script.draft.fault(&self.spot.at, &key, "odd-field", message);
                None
            }
        }
    }

    /// The thread that a prompt goes on from: that of its span, else the one whose context it
    /// repeats, else a new one.
    fn thread(&mut self, span: Option<&str>, prompt: &[Known]) -> usize {
        let shared = |thread: &Thread| {
            let same = |(known, key): &(&Known, &Key)| known.key == **key;
            let count = prompt.iter().zip(&thread.live).take_while(same).count();
            prompt[..count].iter().any(|known| !known.is_system()).then_some(count)
        };
        let of_span =
            |thread: &Thread| span.is_none_or(|span| thread.spans.iter().any(|own| own == span));
        let own = (0..self.threads.len())
            .filter(|&at| of_span(&self.threads[at]))
            .filter_map(|at| {
                Some((
                    shared(&self.threads[at])
                        .or(self.threads[at].compaction.as_ref().map(|_| 0))?,
                    at,
                ))
            })
            .max_by_key(|&(count, at)| (count, at))
            .map(|(_, at)| at);
        let repeated = || {
            let whole =
                |thread: &Thread| shared(thread).is_some_and(|count| count == thread.live.len());
            (0..self.threads.len()).rev().find(|&at| whole(&self.threads[at]))
        };
        let found = own.or_else(repeated).unwrap_or_else(|| {
            let named = span.and_then(|span| self.names.get(span)).cloned();
            let name = match (self.threads.is_empty(), named, span) {
                (true, ..) => "main".to_owned(),
                (_, Some(name), _) => format!("{name}-{}", self.threads.len()),
                (_, None, _) => format!("call-{}", self.threads.len()),
            };
            let conversation = self.script.conversation_of(&self.rollout, name);
            self.threads.push(Thread { conversation, ..Thread::default() });
            self.threads.len() - 1
        });
        if let Some(span) =
            span.filter(|span| !self.threads[found].spans.iter().any(|own| own == span))
        {
            self.threads[found].spans.push(span.to_owned());
        }
        found
    }

    /// Makes the context of a thread what a prompt holds.
    fn reach(&mut self, thread: usize, prompt: &[Known]) {
        let live = std::mem::take(&mut self.threads[thread].live);
        let shared = prompt.iter().zip(&live).take_while(|(known, key)| known.key == **key).count();
        let mut change = self.threads[thread].compaction.take();
        if shared < live.len() {
            let mark = self.threads[thread].marks.iter().rposition(|&(count, _)| count == shared);
            match mark.filter(|_| change.is_none()) {
                // The prompt goes back to where the thread stood before.
                Some(mark) => {
                    self.threads[thread].at = self.threads[thread].marks[mark].1;
                    self.threads[thread].marks.truncate(mark);
                }
                None => {
                    let inferred = Change {
                        evidence: Evidence::Inferred,
                        ..Change::new(ReplacementKind::Summary).quiet()
                    };
                    self.rewrite(thread, prompt, change.take().unwrap_or(inferred));
                    return;
                }
            }
        }
        for (count, known) in prompt.iter().enumerate().skip(shared) {
            let from = self.threads[thread].at;
            self.append(thread, known);
            self.threads[thread].marks.push((count, from));
        }
        self.threads[thread].live = prompt.iter().map(|known| known.key.clone()).collect();
    }

    /// Adds a message to the context: a node of its own, because a later call may go back to it.
    fn append(&mut self, thread: usize, known: &Known) {
        let (from, conversation) = (self.threads[thread].at, self.threads[thread].conversation);
        let node =
            self.script.push(from, conversation, self.spot, Step::Put(known.segments.to_vec()));
        self.written.insert(known.key.clone(), Written::of(node, known.segments.len()));
        self.threads[thread].at = Some(node);
    }

    fn rewrite(&mut self, thread: usize, prompt: &[Known], change: Change) {
        if change.kind != ReplacementKind::Summary {
            // What came in since the last call was there when something else was taken out.
            let known = prompt
                .iter()
                .rposition(|known| self.written.contains_key(&known.key))
                .map_or(0, |at| at + 1);
            for known in &prompt[known..] {
                self.append(thread, known);
            }
        }
        let node = self.script.nodes.len();
        let (mut items, mut at) = (Vec::new(), 0);
        for known in prompt {
            if let Some(written) = self.written.get(&known.key) {
                items.extend(written.items());
                at += written.end - written.start;
                continue;
            }
            let start = at;
            for segment in known.segments.iter() {
                let quote = self
                    .quote(&change, segment)
                    .unwrap_or_else(|| vec![Item::New(vec![elsewhere(segment)])]);
                at += quote.len();
                items.extend(quote);
            }
            self.written.insert(known.key.clone(), Written { node, start, end: at, listed: true });
        }
        let (from, conversation) = (self.threads[thread].at, self.threads[thread].conversation);
        let list = List { items, change };
        self.script.push(from, conversation, self.spot, Step::List(Box::new(list)));
        let thread = &mut self.threads[thread];
        thread.at = Some(node);
        thread.marks.clear();
        thread.live = prompt.iter().map(|known| known.key.clone()).collect();
    }
}

/// What stands in a prompt and was said by no call of the sample was said elsewhere.
fn elsewhere(segment: &Segment) -> Segment {
    match segment.origin {
        Origin::Policy => Segment { origin: Origin::ExternalModel, ..segment.clone() },
        _ => segment.clone(),
    }
}

//! Steps as what happened to a context, message by message.
use std::sync::Arc;

use pleach_tree::{
    By, ByKind, ForkReason, Origin, Part as SegmentPart, ReplacementKind, Role, Segment,
};
use rustc_hash::FxHashMap;

use super::handoff::{self, Reference};
use super::import::Part;
use super::model::{Boundary, TrajectoryStep, text};
use crate::core::script::{self, Author, Call, Change, Cursor, Item, List, Script, Spot, Step};

/// A thread while it is played.
#[derive(Debug, Clone, Default)]
pub(super) struct Thread {
    cursor: Cursor,
    rollout: Option<String>,
    /// Nodes of leading system steps of the thread.
    heads: Vec<usize>,
    begun: bool,
    /// The nodes of its context, in order, and those of them before its first call.
    pub(super) path: Vec<usize>,
    pub(super) opening: Vec<usize>,
    /// Its last call.
    pub(super) call: Option<usize>,
    /// Whether all of it so far stands in another thread too.
    copies: bool,
    /// Whether a handoff called for it.
    hands_off: bool,
}

/// What a step is behind, and a number for what it says.
type Said = (Option<String>, Option<usize>, u64);

/// The threads so far, and those to come: a part that begins one, and those that go on from it.
#[derive(Default)]
pub(super) struct Steps {
    groups: Vec<Group>,
    pub(super) thread: Thread,
    begun: bool,
    /// The node of everything that was said, so that copies of it are known.
    known: FxHashMap<Said, usize>,
}

/// A trajectory with what it goes on in.
struct Group {
    parts: Vec<Part>,
    /// The file that it begins in, and its ids.
    file: Option<String>,
    ids: [Option<String>; 2],
    /// The thread that it became.
    played: Option<Thread>,
}

impl Steps {
    /// Nothing played yet of these parts.
    pub(super) fn of(parts: Vec<Part>) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for part in parts {
            match groups.last_mut().filter(|_| part.thread.is_none()) {
                Some(group) => group.parts.push(part),
                None => groups.push(Group {
                    file: part.file.clone(),
                    ids: [
                        part.trajectory.trajectory_id.clone(),
                        part.trajectory.session_id.clone(),
                    ],
                    parts: vec![part],
                    played: None,
                }),
            }
        }
        Self { groups, ..Self::default() }
    }

    /// Plays every part.
    pub(super) fn play(mut self, script: &mut Script) {
        for at in 0..self.groups.len() {
            self.group(script, at, false);
        }
    }

    fn group(&mut self, script: &mut Script, at: usize, hands_off: bool) {
        let parts = std::mem::take(&mut self.groups[at].parts);
        if parts.is_empty() {
            return;
        }
        let outer = std::mem::take(&mut self.thread);
        self.thread.hands_off = hands_off;
        for part in parts {
            self.part(script, part);
        }
        self.groups[at].played = Some(std::mem::replace(&mut self.thread, outer));
    }

    /// Plays a sub-agent where it was not yet; its thread.
    pub(super) fn sub_agent(
        &mut self,
        script: &mut Script,
        reference: &Reference,
    ) -> Option<Thread> {
        let is = |group: &Group| match (&reference.path, &group.file) {
            (Some(path), Some(file)) => file == path || file.ends_with(&format!("/{path}")),
            _ => group.ids.iter().flatten().any(|id| reference.ids.contains(id)),
        };
        let at = self.groups.iter().position(|group| {
            let own = group.played.is_none() && group.parts.is_empty();
            is(group) && !own
        })?;
        self.group(script, at, true);
        self.groups[at].played.clone()
    }

    fn part(&mut self, script: &mut Script, part: Part) {
        let Part { trajectory, rollout, thread, spot, key, .. } = part;
        let mut steps: Vec<TrajectoryStep> = trajectory.steps;
        self.ordinals(script, &steps, &spot, &key);
        match thread {
            Some(thread) => {
                let conversation = match (&rollout, std::mem::replace(&mut self.begun, true)) {
                    (Some(rollout), _) => script.conversation_of(rollout, thread),
                    (None, false) => 0,
                    (None, true) => script.conversation(thread),
                };
                self.thread.cursor = Cursor::new(conversation);
                self.thread.rollout = rollout;
                self.thread.copies = true;
            }
            None => {
                let given = steps
                    .iter()
                    .take_while(|step| !step.is_call() && step.boundary().is_none())
                    .count();
                let rest = steps.split_off(given);
                self.continued(script, &steps, &spot, &key);
                steps = rest;
            }
        }
        let model = trajectory.agent.model_name;
        let mut steps = steps.into_iter().enumerate().peekable();
        while let Some((index, step)) = steps.next() {
            let key = format!("{key}steps[{index}]");
            match handoff::of(&step) {
                Some(references) => {
                    let next = steps.next_if(|(_, next)| next.source == "user");
                    let next = next.as_ref().map(|(_, step)| step);
                    self.handoff(script, &references, next, &spot, &key);
                }
                None => self.step(script, step, model.as_deref(), &spot, &key),
            }
        }
    }

    /// Adds a step behind the last one; one that is a copy of what stands in another thread is that.
    pub(super) fn push(
        &mut self,
        script: &mut Script,
        spot: &Spot,
        step: Step,
        copied: bool,
    ) -> usize {
        let says = match &step {
            Step::Put(segments) => Some(script::content_number(segments)),
            Step::Call(call) => Some(script::content_number(&call.output)),
            Step::List(_) | Step::Swap(_) => None,
        };
        let thread = &mut self.thread;
        thread.copies &= copied;
        let said = says.map(|says| (thread.rollout.clone(), thread.cursor.at, says));
        if let Some(&node) = said.as_ref().and_then(|said| self.known.get(said))
            && thread.copies
        {
            thread.cursor.at = Some(node);
            thread.path.push(node);
            return node;
        }
        thread.copies = false;
        let (from, is_list) = (thread.cursor.at, matches!(step, Step::List(_)));
        let is_call = matches!(step, Step::Call(_));
        let node = thread.cursor.push(script, spot, step);
        if from.is_some_and(|from| script.nodes[from].conversation != thread.cursor.conversation) {
            let reason =
                if thread.hands_off { ForkReason::Summarizer } else { ForkReason::Subagent };
            script.forks(node, reason);
        }
        if let Some(said) = said {
            self.known.entry(said).or_insert(node);
        }
        if is_list {
            thread.path.clear();
        }
        if is_call {
            thread.call = Some(node);
        } else if thread.call.is_none() && !is_list {
            thread.opening.push(node);
        }
        thread.path.push(node);
        node
    }

    /// Ordinals that stand twice say that steps of two runs were mixed, or that a step was written
    /// twice.
    fn ordinals(&self, script: &mut Script, steps: &[TrajectoryStep], spot: &Spot, key: &str) {
        let mut seen: FxHashMap<i64, usize> = FxHashMap::default();
        for (index, step) in steps.iter().enumerate() {
            let Some(id) = step.step_id else { continue };
            if let Some(first) = seen.insert(id, index) {
                let message = format!(
                    "step_id {id} stands at steps[{first}] already; both are taken, in the order of the file"
                );
                script.draft.fault(
                    &spot.at,
                    &format!("{key}steps[{index}].step_id"),
                    "duplicate-step",
                    message,
                );
            }
        }
    }

    /// What a run that goes on in another file is given there.
    fn continued(&mut self, script: &mut Script, steps: &[TrajectoryStep], spot: &Spot, key: &str) {
        let mut items = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let key = format!("{key}steps[{index}]");
            let told = said(step, spot, &key).into_iter().chain(observed(step, spot, &key));
            items.push(Item::Told(told.collect()));
        }
        let change = Change {
            evidence: pleach_tree::Evidence::Inferred,
            ..Change::new(ReplacementKind::Summary)
        };
        let list = List { items, change };
        self.push(script, spot, Step::List(Box::new(list)), false);
        self.thread.heads.clear();
    }

    fn step(
        &mut self,
        script: &mut Script,
        step: TrajectoryStep,
        model: Option<&str>,
        spot: &Spot,
        key: &str,
    ) {
        let (boundary, copied) = (step.boundary(), step.is_copied_context == Some(true));
        let mut call = None;
        if step.is_call() {
            if step.llm_call_count.is_some_and(|count| count > 1) {
                let message = format!(
                    "the step is {} calls in one; it is taken as one",
                    step.llm_call_count.unwrap_or_default()
                );
                script.draft.warn(
                    &spot.at,
                    &format!("{key}.llm_call_count"),
                    "aggregated-calls",
                    message,
                );
            }
            let model: Option<Arc<str>> = step.model_name.as_deref().or(model).map(Into::into);
            let node =
                Step::Call(Call { output: said(&step, spot, key), model, ..Call::default() });
            call = Some(self.push(script, spot, node, false));
            self.thread.begun = true;
        } else if boundary.is_none() || step.source == "agent" {
            let mut given = said(&step, spot, key);
            if self.thread.hands_off && !copied {
                // The harness asks, in a person's place.
                let human = |said: &&mut Segment| said.origin == Origin::Human;
                given.iter_mut().filter(human).for_each(|said| said.origin = Origin::Harness);
            }
            self.put(script, given, spot, step.source == "system", copied);
        }
        match boundary {
            None => self.put(script, observed(&step, spot, key), spot, false, copied),
            Some(Boundary::Append) => {
                let segments = injected(&step, spot, key);
                self.put(script, segments, spot, false, copied);
            }
            Some(Boundary::Unsaid) => {
                let message = "the step takes something out of the context and does not say what; the context stays as it is";
                script.draft.warn(
                    &spot.at,
                    &format!("{key}.extra.context_management"),
                    "pruning-unsaid",
                    message,
                );
                let results =
                    if step.source == "agent" { observed(&step, spot, key) } else { Vec::new() };
                self.put(script, results, spot, false, copied);
            }
            Some(boundary) => self.rewrite(script, &step, boundary, call, spot, key),
        }
    }

    fn put(
        &mut self,
        script: &mut Script,
        segments: Vec<Segment>,
        spot: &Spot,
        head: bool,
        copied: bool,
    ) {
        if segments.is_empty() {
            return;
        }
        let node = self.push(script, spot, Step::Put(segments), copied);
        if head && !self.thread.begun {
            self.thread.heads.push(node);
        } else {
            self.thread.begun = true;
        }
    }

    fn rewrite(
        &mut self,
        script: &mut Script,
        step: &TrajectoryStep,
        boundary: Boundary,
        call: Option<usize>,
        spot: &Spot,
        key: &str,
    ) {
        let mut items: Vec<Item> = self.thread.heads.iter().copied().map(Item::Of).collect();
        let put =
            if boundary == Boundary::Replace { observed(step, spot, key) } else { Vec::new() };
        let kind = if put.is_empty() { ReplacementKind::None } else { ReplacementKind::Summary };
        // A summary is the harness's message to the policy, whatever wrote it.
        let told = |mut segment: Segment| {
            (segment.role, segment.result_of) = (Role::User, None);
            segment.origin = Origin::Harness;
            segment
        };
        items.push(Item::New(put.into_iter().map(told).collect()));
        let author = call.map_or_else(|| Author::Known(By::new(ByKind::Unknown)), Author::Of);
        let list = List { items, change: Change::new(kind).by(author) };
        self.push(script, spot, Step::List(Box::new(list)), false);
    }
}

/// What a step itself says.
pub(super) fn said(step: &TrajectoryStep, spot: &Spot, key: &str) -> Vec<Segment> {
    let message = text(&step.message);
    let mut segments = Vec::new();
    match step.source.as_str() {
        "agent" => {
            let reasoning = step.reasoning_content.as_deref().filter(|text| !text.is_empty());
            segments.extend(reasoning.map(|text| script::said(SegmentPart::Reasoning, text)));
            if !message.is_empty() {
                segments.push(script::said(SegmentPart::Content, message));
            }
            for call in step.tool_calls.iter().flatten() {
                let arguments =
                    if call.arguments.is_null() { "{}".into() } else { call.arguments.to_string() };
                segments.push(script::call(&call.tool_call_id, &call.function_name, &arguments));
            }
        }
        "system" => segments.push(script::text(Role::System, Origin::Harness, message)),
        _ => segments.push(script::text(Role::User, Origin::Human, message)),
    }
    if !step.is_call() && step.source == "agent" {
        let origin = if step.is_copied_context == Some(true) {
            Origin::ExternalModel
        } else {
            Origin::Harness
        };
        segments.iter_mut().for_each(|segment| segment.origin = origin);
    }
    segments.into_iter().map(|segment| spot.segment(key, segment)).collect()
}

/// What a step observed.
fn observed(step: &TrajectoryStep, spot: &Spot, key: &str) -> Vec<Segment> {
    let results = step.observation.iter().flat_map(|observation| &observation.results);
    let observed = results.enumerate().filter(|(_, result)| !result.content.is_null()).map(
        |(index, result)| {
            let content = text(&result.content);
            let segment = match &result.source_call_id {
                Some(call) => script::result(call, content, false),
                None => script::text(Role::User, Origin::Environment, content),
            };
            spot.segment(format!("{key}.observation.results[{index}]"), segment)
        },
    );
    observed.collect()
}

/// What a step adds to the context from outside: its observation, else its message.
fn injected(step: &TrajectoryStep, spot: &Spot, key: &str) -> Vec<Segment> {
    let observed = observed(step, spot, key);
    if !observed.is_empty() || step.source == "agent" {
        return observed;
    }
    vec![spot.segment(key, script::text(Role::User, Origin::Harness, text(&step.message)))]
}

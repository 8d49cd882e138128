//! From the messages of a session to its script.
use std::sync::Arc;

use pleach_tree::{By, ByKind, ForkReason, Origin, ReplacementKind, Role, Segment, Trigger};
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::load::Loaded;
use super::message::{self, CLEARED, Turn};
use super::order;
use super::record::WithParts;
use crate::core::script::{
    self, Author, Call, Change, Cursor, Item, List, Script, Spot, Step, Swap,
};

/// From when on the tail stands behind the summary: the first of May 2026, in milliseconds.
const TAIL_BEHIND: f64 = 1_777_593_600_000.0;

/// A message in the list that requests hold.
#[derive(Debug, Clone)]
struct Shown {
    id: String,
    nodes: Vec<usize>,
}

/// A request to compact.
#[derive(Debug, Clone)]
struct Request {
    tail: Option<String>,
    auto: Option<bool>,
}

/// A session while it is written.
struct Writer<'s> {
    script: &'s mut Script,
    cursor: Cursor,
    /// All messages of the session so far.
    all: Vec<Shown>,
    /// Those that the next request shows, by their ids.
    live: Vec<String>,
    requests: FxHashMap<String, Request>,
    /// Results that are to be cleared: when, the call, and the message that made it.
    pruned: Vec<(f64, String, String)>,
    /// When the session began.
    began: Option<f64>,
    copied: u64,
    compactions: usize,
}

/// Adds what a session says to the script.
pub(super) fn write(script: &mut Script, mut loaded: Loaded, conversation: usize) {
    order::by_time(&mut loaded.messages);
    let began = loaded.session.time.created;
    let mut writer = Writer {
        script,
        cursor: Cursor::new(conversation),
        all: Vec::new(),
        live: Vec::new(),
        requests: FxHashMap::default(),
        pruned: Vec::new(),
        began,
        copied: 0,
        compactions: 0,
    };
    writer.system(&loaded);
    let mut seen: FxHashMap<String, u64> = FxHashMap::default();
    for (message, spot) in loaded.messages {
        let content = script::content_of(&message);
        if let Some(&first) = seen.get(&message.info.id) {
            let what = format!("message {}", message.info.id);
            writer.script.draft.repeated(&spot.at, "info.id", &what, first == content);
            continue;
        }
        seen.insert(message.info.id.clone(), content);
        writer.message(message, &spot);
    }
    if writer.copied > 0 {
        let text = format!(
            "calls ({}) are older than the session, which was forked with them; they are context here",
            writer.copied
        );
        writer.script.draft.warn(&loaded.spot.at, "info.time", "copied-history", text);
    }
}

impl Writer<'_> {
    /// Puts in the system prompt, where a version records it with its calls.
    fn system(&mut self, loaded: &Loaded) {
        let Some((message, spot)) =
            loaded.messages.iter().find(|(message, _)| message.info.system.is_some())
        else {
            return;
        };
        let texts: Vec<&str> = match &message.info.system {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let segment =
            |text: &str| spot.segment("system", script::text(Role::System, Origin::Harness, text));
        let segments: Vec<Segment> = texts.into_iter().map(segment).collect();
        if !segments.is_empty() {
            let node = self.cursor.push(self.script, spot, Step::Put(segments));
            self.shown("system".into(), vec![node]);
        }
    }

    fn shown(&mut self, id: String, nodes: Vec<usize>) {
        self.cursor.at = nodes.last().copied().or(self.cursor.at);
        self.live.push(id.clone());
        self.all.push(Shown { id, nodes });
    }

    fn message(&mut self, message: WithParts, spot: &Spot) {
        match message.info.role.as_str() {
            "user" => self.user(message, spot),
            "assistant" if message.info.is_summary() => self.summary(message, spot),
            "assistant" => self.assistant(message, spot),
            role => self.script.unknown(&format!("message of role {role}"), &spot.at),
        }
    }

    fn user(&mut self, message: WithParts, spot: &Spot) {
        if let Some(part) = message.compaction() {
            let request = Request { tail: part.tail_start_id.clone(), auto: part.auto };
            self.requests.insert(message.info.id.clone(), request);
        }
        let segments = message::given(message.parts, &message.info.id, spot);
        let nodes = match segments.is_empty() {
            true => Vec::new(),
            false => vec![self.cursor.push(self.script, spot, Step::Put(segments))],
        };
        self.shown(message.info.id, nodes);
    }

    fn assistant(&mut self, message: WithParts, spot: &Spot) {
        self.prune(message.info.time.created, spot);
        let said = message
            .parts
            .iter()
            .any(|part| !matches!(part.kind.as_str(), "step-start" | "reasoning"));
        let dropped = message.info.failed() && !(message.info.aborted() && said);
        let copied = message
            .info
            .time
            .created
            .zip(self.began)
            .is_some_and(|(created, began)| created < began);
        let model: Option<Arc<str>> = message.info.model.as_deref().map(Arc::from);
        let mut nodes = Vec::new();
        for Turn { said, results, pruned } in message::steps(message.parts, &message.info.id, spot)
        {
            self.copied += u64::from(copied);
            let step = match (copied, dropped) {
                (true, true) => continue,
                (true, false) => Step::Put(said),
                (false, _) => Step::Call(Call {
                    output: said,
                    model: model.clone(),
                    dropped,
                    ..Call::default()
                }),
            };
            nodes.push(self.cursor.push(self.script, spot, step));
            if !dropped && !results.is_empty() {
                nodes.push(self.cursor.push(self.script, spot, Step::Put(results)));
                self.pruned.extend(
                    pruned.into_iter().map(|(at, call)| (at, call, message.info.id.clone())),
                );
            }
        }
        let kept = if dropped { Vec::new() } else { nodes };
        let cursor = self.cursor;
        self.shown(message.info.id, kept);
        self.cursor = cursor;
    }

    /// Clears the results that were pruned before a request.
    fn prune(&mut self, before: Option<f64>, spot: &Spot) {
        let Some(before) = before else { return };
        let (mut now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pruned).into_iter().partition(|(at, ..)| *at <= before);
        self.pruned = later;
        now.retain(|(_, _, message)| self.live.contains(message));
        if now.is_empty() {
            return;
        }
        now.sort_by(|a, b| a.0.total_cmp(&b.0));
        let cleared = |call: &String| {
            let segment =
                Segment { origin: Origin::Harness, ..script::result(call, CLEARED, false) };
            (call.clone(), spot.segment(format!("{call}#cleared"), segment))
        };
        let results = now.iter().map(|(_, call, _)| cleared(call)).collect();
        let change = Change::new(ReplacementKind::Placeholder)
            .by(Author::Known(By::rule("prune")))
            .trigger(Some(Trigger::Auto));
        let swap = Swap { results, every: false, change, key: "state.time.compacted" };
        self.cursor.push(self.script, spot, Step::Swap(Box::new(swap)));
    }

    /// A summary: a call of its own thread, and, where it is complete, what it leaves of the list.
    fn summary(&mut self, message: WithParts, spot: &Spot) {
        self.prune(message.info.time.created, spot);
        self.compactions += 1;
        let complete = message.info.finish.is_some() && !message.info.failed();
        let created = message.info.time.created;
        let copied = created.zip(self.began).is_some_and(|(created, began)| created < began);
        let model = message.info.model.as_deref().map(Arc::from);
        let mut output: Vec<Segment> = message::steps(message.parts, &message.info.id, spot)
            .into_iter()
            .flat_map(|step| step.said)
            .collect();
        // What it was asked is not recorded, so it cannot be trained on.
        output.iter_mut().for_each(|said| said.origin = Origin::ExternalModel);
        let conversation = self.script.conversation(format!("compact-{}", self.compactions));
        let step = match copied {
            true => Step::Put(output),
            false => Step::Call(Call {
                output,
                model,
                unrecorded: vec!["prompt".into()],
                ..Call::default()
            }),
        };
        let node = self.script.push(self.cursor.at, conversation, spot, step);
        self.script.forks(node, ForkReason::Summarizer);
        let text = "the prompt of the call that summarises is not in the session; its text carries no loss";
        self.script.draft.warn(&spot.at, "info.summary", "summariser-prompt", text);
        self.all.push(Shown { id: message.info.id.clone(), nodes: vec![node] });
        if !complete {
            let text = "the summary failed or was broken off; the list stays as it was";
            self.script.draft.warn(&spot.at, "info.finish", "compaction-failed", text);
            return;
        }
        let parent = message.info.parent.unwrap_or_default();
        let Some(request) = self.requests.get(&parent).cloned() else {
            let text = format!(
                "the request {parent} of the summary is not in the session; the list stays as it was"
            );
            self.script.draft.fault(&spot.at, "info.parentID", "request-missing", text);
            return;
        };
        let author =
            if copied { Author::Known(By::new(ByKind::Unknown)) } else { Author::Of(node) };
        let trigger = request.auto.map(|auto| if auto { Trigger::Auto } else { Trigger::Manual });
        let change = Change::new(ReplacementKind::Summary).by(author).trigger(trigger);
        self.compact(&parent, &message.info.id, &request, created, change, spot);
    }

    fn compact(
        &mut self,
        request: &str,
        summary: &str,
        asked: &Request,
        created: Option<f64>,
        change: Change,
        spot: &Spot,
    ) {
        let place = |id: &str| self.all.iter().position(|shown| shown.id == id);
        let start = place(request).unwrap_or(self.all.len());
        let tail = asked.tail.as_deref().map(place);
        let ids = |range: std::ops::Range<usize>| -> Vec<String> {
            self.all.get(range).unwrap_or_default().iter().map(|shown| shown.id.clone()).collect()
        };
        let pair = [request.to_owned(), summary.to_owned()];
        let system = ids(0..usize::from(place("system") == Some(0)));
        let live: Vec<String> = match tail {
            None => system.into_iter().chain(pair).collect(),
            Some(Some(tail)) if tail < start => {
                let text =
                    "whether the tail stands before the summary or behind it is told from the date";
                self.script.draft.warn(&spot.at, "tail_start_id", "tail-placement", text);
                let tail = ids(tail..start);
                match created.is_some_and(|created| created >= TAIL_BEHIND) {
                    true => system.into_iter().chain(pair).chain(tail).collect(),
                    false => system.into_iter().chain(tail).chain(pair).collect(),
                }
            }
            Some(_) => {
                let text = "the tail begins with a message that is not in the session; the harness sends all of the history";
                self.script.draft.warn(&spot.at, "tail_start_id", "stale-tail", text);
                ids(0..self.all.len())
            }
        };
        let nodes: FxHashMap<&str, &[usize]> =
            self.all.iter().map(|shown| (shown.id.as_str(), shown.nodes.as_slice())).collect();
        let items = live
            .iter()
            .flat_map(|id| nodes.get(id.as_str()).copied().unwrap_or_default())
            .map(|&node| Item::Of(node))
            .collect();
        self.cursor.push(self.script, spot, Step::List(Box::new(List { items, change })));
        self.live = live;
    }
}

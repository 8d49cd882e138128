//! From the lines of a session to its script.
use std::sync::Arc;

use pleach_tree::{By, Origin, ReadOptions, ReplacementKind, Role, Segment};
use rustc_hash::{FxHashMap, FxHashSet};

use super::line::{Line, Message, Time};
use super::message::{BRANCH, COMPACTION, given, said, summary};
use crate::core::block;
use crate::core::format::Format;
use crate::core::input::{Member, Relation};
use crate::core::script::{self, Author, Call, Change, Item, List, Script, Spot, Step};
use crate::core::shape::Shape;
use crate::{Conversion, HarnessError, Input};

/// How a session of Pi is told from other files.
pub(crate) const FORMAT: Format = Format::new("pi", "a Pi or OpenClaw session", is_line, convert);

/// From when on OpenClaw leaves its notes of deliveries out of requests, as far as dates tell.
const NOTES_LEFT_OUT: &str = "2026-06";

fn is_line(shape: &Shape) -> bool {
    let header = shape.is("type", &["session"]) && shape.has_all(&["id", "cwd"]);
    let entry = shape.is("type", &["message", "compaction"])
        && shape.has("timestamp")
        && shape.kind("parentId").is_some();
    header || entry && shape.has("id") && !shape.has("sessionId")
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let mut script = Script::new("pi", options);
    let mut session = PiSession::default();
    let main = input.main();
    script.lines(&main, |script, entry: Line, spot| {
        if let Some(name) =
            entry.branched_from().filter(|_| entry.is_header() && session.order.is_empty())
        {
            session.branched(script, input, name, spot);
        }
        session.take(script, entry, spot);
    })?;
    session.finish(&mut script);
    script.play()
}

/// The ids of the entries of a session.
fn ids(member: &Member, options: ReadOptions) -> Result<FxHashSet<String>, HarnessError> {
    // What is wrong with that file is told where it is converted itself.
    let mut other = Script::new("pi", options);
    let mut ids = FxHashSet::default();
    other.lines(member, |_, entry: Line, spot| {
        ids.insert(entry.id.unwrap_or_else(|| format!("line-{}", spot.at.line)));
    })?;
    Ok(ids)
}

/// The session as far as it is read.
#[derive(Default)]
struct PiSession {
    version: u32,
    /// Where the entries of each id stand, in the order of the file: a harness may give one id to
    /// every marker of a kind, and what names it means the nearest above.
    entries: FxHashMap<String, Vec<Placed>>,
    /// The ids of version 1, which counts entries.
    order: Vec<String>,
    last: Option<usize>,
    /// Calls without a result, by the node behind which they are open.
    open: FxHashMap<usize, Vec<String>>,
    copied: Copied,
    /// The first message that the harness wrote in the policy's place, and how many there are.
    mirrored: Option<(Spot, u64)>,
}

/// Where an entry stands in the script.
#[derive(Debug, Clone, Copy)]
struct Placed {
    /// The node that stands for it; none where nothing stands before it.
    node: Option<usize>,
    /// Whether the node is the entry's own, and not that of an entry before it.
    own: bool,
    /// A number for what it says.
    content: u64,
}

/// Entries that are those of another session.
#[derive(Default)]
struct Copied {
    ids: FxHashSet<String>,
    from: Option<(String, Spot)>,
    beside: bool,
    calls: u64,
}

impl PiSession {
    /// Takes note of the session that this one was branched from; of one that cannot be read to its
    /// end nothing is known to be a copy.
    fn branched(&mut self, script: &mut Script, input: &Input, name: &str, spot: &Spot) {
        let main = input.main();
        self.copied.from = Some((name.to_owned(), spot.clone()));
        let beside = input.beside("").unwrap_or_else(|error| {
            script.draft.unread(&main, Relation::Neighbour, &error);
            Vec::new()
        });
        let parent =
            beside.iter().find(|member| member.file_name() == name && member.listed != main.listed);
        match parent.map(|parent| (parent, ids(parent, script.draft.options))) {
            Some((_, Ok(ids))) => (self.copied.ids, self.copied.beside) = (ids, true),
            Some((parent, Err(error))) => script.draft.unread(parent, Relation::Neighbour, &error),
            None => {}
        }
    }

    fn take(&mut self, script: &mut Script, entry: Line, spot: &Spot) {
        if entry.is_header() {
            self.version = entry.version.unwrap_or(1);
            self.order.push(String::new());
            return;
        }
        let linear = self.version < 2 && entry.parent_id.is_none() && entry.id.is_none();
        let id = match &entry.id {
            Some(id) => id.clone(),
            None => {
                if !linear {
                    script.draft.fault(
                        &spot.at,
                        "id",
                        "no-id",
                        "the entry has no id; the number of the line stands for it",
                    );
                }
                format!("line-{}", spot.at.line)
            }
        };
        self.order.push(id.clone());
        let content = script::content_of(&entry);
        if let Some(above) = self.entries.get(&id) {
            if above.iter().any(|entry| entry.content == content) {
                script.draft.repeated(&spot.at, "id", &format!("entry {id}"), true);
                return;
            }
            let message = format!(
                "entry {id} stands above already with other content; what names the id means the nearest one above"
            );
            script.draft.warn(&spot.at, "id", "id-twice", message);
        }
        let parent = if linear { self.last } else { self.parent(script, &entry, spot) };
        let node = self.entry(script, entry, &id, parent, spot);
        self.entries.entry(id).or_default().push(Placed { node, own: node != parent, content });
        self.last = node;
    }

    fn parent(&mut self, script: &mut Script, entry: &Line, spot: &Spot) -> Option<usize> {
        let id = entry.parent_id.as_ref()?;
        if let Some(entry) = self.entries.get(id).and_then(|entries| entries.last()) {
            return entry.node;
        }
        let message =
            format!("the parent {id} is not in the file above; the entry before it is taken");
        script.draft.fault(&spot.at, "parentId", "dangling-parent", message);
        self.last
    }

    /// Adds what an entry does; what does nothing is the node it goes on from.
    fn entry(
        &mut self,
        script: &mut Script,
        entry: Line,
        id: &str,
        parent: Option<usize>,
        spot: &Spot,
    ) -> Option<usize> {
        match entry.kind.as_str() {
            "message" => {
                let message = entry.message.unwrap_or_default();
                self.message(script, message, &entry.timestamp, id, parent, spot)
            }
            "custom_message" => {
                let segments = given(entry.content.unwrap_or_default(), Origin::Harness, id, spot);
                Some(self.put(script, segments, parent, spot))
            }
            "branch_summary" => {
                let segments = summary(BRANCH, &entry.summary.unwrap_or_default(), id, spot);
                Some(self.put(script, segments, parent, spot))
            }
            "compaction" => Some(self.compaction(script, &entry, id, parent, spot)),
            "thinking_level_change" | "model_change" | "custom" | "label" | "session_info" => {
                parent
            }
            kind => {
                script.unknown(kind, &spot.at);
                parent
            }
        }
    }

    fn message(
        &mut self,
        script: &mut Script,
        message: Message,
        time: &Time,
        id: &str,
        parent: Option<usize>,
        spot: &Spot,
    ) -> Option<usize> {
        match message.role.as_str() {
            "user" => Some(self.put(
                script,
                given(message.content, Origin::Human, id, spot),
                parent,
                spot,
            )),
            "custom" | "hookMessage" => Some(self.put(
                script,
                given(message.content, Origin::Harness, id, spot),
                parent,
                spot,
            )),
            "branchSummary" => Some(self.put(
                script,
                summary(BRANCH, &message.summary.unwrap_or_default(), id, spot),
                parent,
                spot,
            )),
            "bashExecution" if message.exclude_from_context == Some(true) => parent,
            "bashExecution" => {
                let ran =
                    spot.segment(id, script::text(Role::User, Origin::Harness, message.ran()));
                Some(self.put(script, vec![ran], parent, spot))
            }
            "toolResult" => Some(self.result(script, message, parent, spot)),
            "assistant" if message.is_of_harness() => {
                let (_, count) = self.mirrored.get_or_insert_with(|| (spot.clone(), 0));
                *count += 1;
                if message.is_note() && time.is_from(NOTES_LEFT_OUT) {
                    return parent;
                }
                let said = said(message.content).into_iter();
                let said = said.map(|said| Segment { origin: Origin::Harness, ..said });
                let segments = said.map(|said| spot.segment(id, said)).collect();
                Some(self.put(script, segments, parent, spot))
            }
            "assistant" => Some(self.call(script, message, id, parent, spot)),
            role => {
                script.unknown(&format!("message of role {role}"), &spot.at);
                parent
            }
        }
    }

    /// Adds what is no result, behind the answers that the harness gives to calls that have none.
    fn put(
        &mut self,
        script: &mut Script,
        segments: Vec<Segment>,
        parent: Option<usize>,
        spot: &Spot,
    ) -> usize {
        let parent = self.close(script, parent);
        script.push(parent, 0, spot, Step::Put(segments))
    }

    fn result(
        &mut self,
        script: &mut Script,
        message: Message,
        parent: Option<usize>,
        spot: &Spot,
    ) -> usize {
        let call = message.tool_call_id.unwrap_or_default();
        let text = block::joined(message.content);
        let result = script::result(&call, text, message.is_error == Some(true));
        let node =
            script.push(parent, 0, spot, Step::Put(vec![spot.segment(call.as_str(), result)]));
        if let Some(mut open) = parent.and_then(|parent| self.open.get(&parent)).cloned() {
            if let Some(at) = open.iter().rposition(|id| *id == call) {
                open.remove(at);
            }
            if !open.is_empty() {
                self.open.insert(node, open);
            }
        }
        node
    }

    fn close(&mut self, script: &mut Script, parent: Option<usize>) -> Option<usize> {
        let Some(open) = parent
            .and_then(|parent| self.open.get(&parent))
            .filter(|open| !open.is_empty())
            .cloned()
        else {
            return parent;
        };
        let spot = script.nodes[parent?].spot.clone();
        let message = format!(
            "calls ({}) have no result in the file; the request shows the harness's own answer",
            open.join(", ")
        );
        script.draft.warn(&spot.at, "", "missing-result", message);
        let answer = |call: &String| {
            let mut result = script::result(call, "No result provided", true);
            result.origin = Origin::Harness;
            spot.segment(format!("{call}#missing"), result)
        };
        let answers = open.iter().map(answer).collect();
        Some(script.push(parent, 0, &spot, Step::Put(answers)))
    }

    fn call(
        &mut self,
        script: &mut Script,
        message: Message,
        id: &str,
        parent: Option<usize>,
        spot: &Spot,
    ) -> usize {
        let parent = self.close(script, parent);
        let output: Vec<Segment> =
            said(message.content).into_iter().map(|said| spot.segment(id, said)).collect();
        let dropped = matches!(message.stop_reason.as_deref(), Some("error" | "aborted"));
        let calls: Vec<String> =
            output.iter().flat_map(|said| said.calls.iter().cloned()).collect();
        let copied = self.copied.beside && self.copied.ids.contains(id);
        self.copied.calls += u64::from(copied || self.copied.from.is_some() && !self.copied.beside);
        let model = message.model.map(Arc::from);
        let step = match (copied, dropped) {
            (true, true) => Step::Put(Vec::new()),
            (true, false) => Step::Put(output),
            (false, _) => Step::Call(Call { output, model, dropped, ..Call::default() }),
        };
        let node = script.push(parent, 0, spot, step);
        if !dropped && !calls.is_empty() {
            self.open.insert(node, calls);
        }
        node
    }

    fn compaction(
        &mut self,
        script: &mut Script,
        entry: &Line,
        id: &str,
        parent: Option<usize>,
        spot: &Spot,
    ) -> usize {
        let mut path = Vec::new();
        let mut at = parent;
        while let Some(node) = at {
            path.push(node);
            at = script.nodes[node].parent;
        }
        path.reverse();
        let first = match (entry.first_kept_entry_id.as_ref(), entry.first_kept_entry_index) {
            (None, Some(index)) => self.order.get(index),
            (id, _) => id,
        };
        let on_path = |entry: &Placed| match entry.node {
            None => Some(0),
            // An entry that brings nothing stands behind the node before it.
            Some(node) => {
                path.iter().position(|&other| other == node).map(|at| at + usize::from(!entry.own))
            }
        };
        let named = first.and_then(|id| self.entries.get(id));
        let start = named.and_then(|entries| entries.iter().rev().find_map(on_path));
        if start.is_none() {
            let message =
                "the first kept entry is not in the file above; nothing but the summary is kept";
            script.draft.fault(&spot.at, "firstKeptEntryId", "first-kept-missing", message);
        }
        let kept = path.get(start.unwrap_or(path.len())..).unwrap_or_default();
        let mut items = vec![Item::New(summary(
            COMPACTION,
            entry.summary.as_deref().unwrap_or_default(),
            id,
            spot,
        ))];
        let shown = |node: &&usize| {
            !matches!(
                &script.nodes[**node].step,
                Step::List(_) | Step::Call(Call { dropped: true, .. })
            )
        };
        items.extend(kept.iter().filter(shown).map(|&node| Item::Of(node)));
        let change = Change::new(ReplacementKind::Summary);
        let change = if entry.from_hook == Some(true) {
            change.by(Author::Known(By::rule("extension")))
        } else {
            change
        };
        let node = script.push(parent, 0, spot, Step::List(Box::new(List { items, change })));
        if let Some(open) = parent.and_then(|parent| self.open.get(&parent)).cloned() {
            self.open.insert(node, open);
        }
        node
    }

    fn finish(&self, script: &mut Script) {
        if let Some((spot, count)) = &self.mirrored {
            let message = format!(
                "OpenClaw itself wrote what stands as answers here and below ({count}); they are no calls, and whether requests show its notes of what was delivered is told from the date"
            );
            script.draft.warn(&spot.at, "message.provider", "harness-message", message);
        }
        let Some((name, spot)) = self.copied.from.as_ref().filter(|_| self.copied.calls > 0) else {
            return;
        };
        let message = match self.copied.beside {
            true => format!(
                "calls ({}) are copied from {name}, which lies beside; they are context here",
                self.copied.calls
            ),
            false => format!(
                "the session was branched from {name}, which is not beside it or cannot be read: its calls are in both files"
            ),
        };
        script.draft.warn(&spot.at, "parentSession", "copied-history", message);
    }
}

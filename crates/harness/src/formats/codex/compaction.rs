//! Compactions of a rollout.
use pleach_tree::{By, ByKind, Evidence, ForkReason, Origin, Part, ReplacementKind, Role, Segment};

use rustc_hash::{FxHashMap, FxHashSet};

use super::history::{From, HistoryEntry};
use super::item::{self, Piece};
use super::known::Key;
use super::line::{Compacted, Item as Line};
use super::run;
use super::session::Rollout;
use crate::core::script::{self, Author, Back, Change, Item, List, Script, Spot, Step};
use crate::core::wording;

/// The call that wrote a summary: its node, the segment of its text, and the text.
struct Summariser {
    node: usize,
    part: usize,
    text: String,
}

/// An item of the new list, with what a rollback and a later compaction need of it.
struct Told {
    item: Item,
    count: usize,
    turn: bool,
    context: bool,
    summary: bool,
    bytes: usize,
    keys: Vec<Key>,
}

impl Rollout {
    pub(super) fn compaction(&mut self, script: &mut Script, compacted: Compacted, spot: &Spot) {
        self.compactions += 1;
        let message = compacted.message.unwrap_or_default();
        if message.is_empty() && compacted.replacement_history.is_none() {
            let text = "the compaction has neither a summary nor a list; what it compacted leaves without one";
            script.draft.fault(&spot.at, "payload.message", "no-summary", text);
        }
        if self.cursor.at.is_none() {
            let text =
                "nothing stands before the compaction in the file; its list is all that is known";
            script.draft.warn(&spot.at, "payload", "no-predecessor", text);
        }
        let list = compacted.replacement_history.as_deref().unwrap_or_default();
        let sealed = list.iter().find(|item| item.is_sealed());
        let last = match sealed {
            // The provider's own item is the summary, and every prompt in the list one that stays.
            Some(_) => message.clone(),
            None => summary_of(list).unwrap_or_else(|| message.clone()),
        };
        let summariser = self.summariser(script, &last);
        let mut change = Change::new(ReplacementKind::Summary);
        if let Some(item) = sealed {
            change = change.by(Author::Known(By::new(ByKind::Provider)));
            self.sealed(script, item.sealed_bytes(), spot);
        }
        if let Some(found) = &summariser {
            change = change.by(Author::Of(found.node));
        }
        let told = match compacted.replacement_history {
            Some(list) => {
                let (mut told, broken) = told(list, &last, summariser.as_ref(), spot);
                keep_ids(&mut told, &self.history.entries);
                if broken > 0 {
                    let text = format!(
                        "calls and outputs whose other half is not in the list ({broken}) are sent as the harness mends them"
                    );
                    script.draft.warn(&spot.at, "payload.replacement_history", "pair-broken", text);
                }
                // The base instructions are no part of the history, and stand before every one.
                let base = self.base.map(|node| Told {
                    item: Item::Of(node),
                    count: 1,
                    turn: false,
                    context: false,
                    summary: false,
                    bytes: 0,
                    keys: Vec::new(),
                });
                base.into_iter().chain(told).collect()
            }
            None => {
                change.evidence = Evidence::Inferred;
                self.rebuilt(script, &message, summariser.as_ref(), spot)
            }
        };
        self.rewrite(script, told, change, spot);
    }

    /// Warns, once in a rollout, that what a provider wrote cannot be read.
    pub(super) fn sealed(&mut self, script: &mut Script, bytes: usize, spot: &Spot) {
        if !std::mem::replace(&mut self.unreadable, true) {
            let text = format!(
                "what the provider put in place of the history is encrypted ({bytes} bytes): contexts from here on hold what cannot be read, and its size stands for it"
            );
            script.draft.warn(&spot.at, "encrypted_content", "encrypted-summary", text);
        }
    }

    fn rewrite(&mut self, script: &mut Script, told: Vec<Told>, change: Change, spot: &Spot) {
        let node = script.nodes.len();
        let (mut entries, mut items, mut at) = (Vec::new(), Vec::new(), 0);
        for told in told {
            let (start, end) = (at, at + told.count);
            at = end;
            let (from, back) = (From::List { node, start, end }, Back::Into(node, end));
            entries.push(HistoryEntry {
                from,
                back,
                turn: told.turn,
                context: told.context,
                summary: told.summary,
                bytes: told.bytes,
                keys: told.keys,
            });
            items.push(told.item);
        }
        self.cursor.push(script, spot, Step::List(Box::new(List { items, change })));
        self.known.hold(&entries);
        self.unanswered.retain(|call| self.known.is_made(call) && !self.known.is_answered(call));
        self.history.entries = entries;
    }

    /// Finds the summariser's call, which stands right before the compaction, and makes it a thread
    /// of its own.
    fn summariser(&mut self, script: &mut Script, summary: &str) -> Option<Summariser> {
        let node = self.cursor.at.filter(|&at| at + 1 == script.nodes.len())?;
        let Step::Call(call) = &mut script.nodes[node].step else { return None };
        let part = call.output.iter().rposition(|said| said.part == Some(Part::Content))?;
        let text = call.output[part].text.clone().filter(|text| is_of(text, summary))?;
        if call.output.iter().any(|said| !said.calls.is_empty()) {
            return None;
        }
        for said in &mut call.output {
            said.origin = Origin::ExternalModel;
        }
        call.unrecorded.push("prompt".into());
        let at = script.nodes[node].spot.at.clone();
        let message =
            "the prompt of the call that summarises is not in the file; its text carries no loss";
        script.draft.warn(&at, "payload", "summariser-prompt", message);
        self.cursor.at = script.nodes[node].parent;
        script.nodes[node].conversation =
            script.conversation(format!("compact-{}", self.compactions));
        script.forks(node, ForkReason::Summarizer);
        self.history.entries.pop();
        Some(Summariser { node, part, text })
    }

    /// The list of a compaction that has only a summary, as the harness builds it.
    fn rebuilt(
        &mut self,
        script: &mut Script,
        message: &str,
        summariser: Option<&Summariser>,
        spot: &Spot,
    ) -> Vec<Told> {
        let (kept, cut) = self.history.kept();
        let text = match cut {
            true => {
                "the list behind the compaction is not recorded; it is rebuilt, with its oldest prompt whole that was cut to fit"
            }
            false => {
                "the list behind the compaction is not recorded; it is rebuilt as the harness does"
            }
        };
        script.draft.warn(&spot.at, "payload", "compaction-rebuilt", text);
        let count = |script: &Script, entry: &HistoryEntry| match entry.from {
            From::List { start, end, .. } => end - start,
            From::Node(node) => match &script.nodes[node].step {
                Step::Put(segments) => segments.len(),
                Step::Call(call) => call.output.len(),
                Step::List(_) | Step::Swap(_) => 0,
            },
        };
        let told = |(item, entry): (Item, HistoryEntry)| Told {
            item,
            count: count(script, &entry),
            turn: entry.turn,
            context: entry.context,
            summary: entry.summary,
            bytes: entry.bytes,
            keys: entry.keys,
        };
        let mut told: Vec<Told> = kept.into_iter().map(told).collect();
        if !message.is_empty() {
            told.extend(summary(message, summariser, spot));
        }
        told
    }
}

/// Whether a summary is what a call said, behind words of the harness or alone; a short text ends
/// others by chance.
fn is_of(said: &str, summary: &str) -> bool {
    said == summary && !said.trim().is_empty()
        || said.len() >= wording::SHORTEST_QUOTE && summary.ends_with(said)
}

/// The text of a list's last message by a user, which is the summary.
fn summary_of(list: &[Line]) -> Option<String> {
    let last = list.iter().rev().find(|item| item.kind == "message")?;
    let text = last.content.as_text()?;
    (last.role.as_deref() == Some("user")).then(|| text.to_owned())
}

/// A summary as the harness's words and the text of the call that wrote it, where that is known.
fn summary(text: &str, summariser: Option<&Summariser>, spot: &Spot) -> Vec<Told> {
    let key = format!("line-{}", spot.at.line);
    let one = |item, count, bytes| Told {
        item,
        count,
        turn: true,
        context: false,
        summary: true,
        bytes,
        keys: Vec::new(),
    };
    let Some((found, words)) =
        summariser.and_then(|found| Some((found, text.strip_suffix(found.text.as_str())?)))
    else {
        let segment = spot.segment(key, script::text(Role::User, Origin::ExternalModel, text));
        return vec![one(Item::Told(vec![segment]), 1, text.len())];
    };
    let words = Segment { open: true, ..script::text(Role::User, Origin::Harness, words) };
    let own = one(Item::Part(found.node, found.part), 1, found.text.len());
    let words = one(Item::New(vec![spot.segment(key, words)]), 1, 0);
    if text.len() == found.text.len() {
        vec![own]
    } else {
        vec![words, Told { turn: false, ..own }]
    }
}

/// The items of a recorded list, with calls answered and outputs left out as the harness does in a
/// request.
fn told(
    list: Vec<Line>,
    last: &str,
    summariser: Option<&Summariser>,
    spot: &Spot,
) -> (Vec<Told>, usize) {
    let key = format!("line-{}", spot.at.line);
    let (mut told, mut broken) = (Vec::new(), 0);
    let (mut called, mut open) = (FxHashSet::default(), Vec::new());
    let answered: FxHashSet<String> = list
        .iter()
        .filter(|item| item.output.is_some())
        .filter_map(|item| item.call_id.clone())
        .collect();
    for item in list {
        let is_summary = item.role.as_deref() == Some("user")
            && !last.is_empty()
            && item.content.as_text() == Some(last);
        let id = item.id.clone().filter(|id| !id.is_empty());
        let piece = item::piece(item, &key, spot);
        let keys =
            piece.number().map(|number| Key::of(&piece, id.as_deref(), number)).unwrap_or_default();
        if is_summary {
            let mut summary = summary(last, summariser, spot);
            summary.iter_mut().take(1).for_each(|first| first.keys.clone_from(&keys));
            told.extend(summary);
            continue;
        }
        let (segments, turn) = match piece {
            Piece::Said(segments) => (segments, false),
            Piece::Given { segments, turn } => (segments, turn),
            Piece::Output(segment) => (vec![*segment], false),
            Piece::Silent | Piece::Unknown(_) => continue,
        };
        called.extend(segments.iter().flat_map(|segment| segment.calls.iter().cloned()));
        open.extend(
            segments
                .iter()
                .flat_map(|segment| &segment.calls)
                .filter(|call| !answered.contains(*call))
                .cloned(),
        );
        let orphan = |segment: &Segment| {
            segment.result_of.as_ref().is_some_and(|call| !called.contains(call))
        };
        if segments.iter().any(orphan) {
            broken += 1;
            continue;
        }
        let context = !turn && segments.iter().all(|segment| segment.origin == Origin::Harness);
        let bytes = segments.iter().map(Segment::extent).sum();
        told.push(Told {
            count: segments.len(),
            item: Item::Told(segments),
            turn,
            context,
            summary: false,
            bytes,
            keys,
        });
        for call in open.drain(..) {
            broken += 1;
            let (answer, key) = run::missing(&call, spot);
            told.push(Told {
                count: 1,
                item: Item::New(vec![answer]),
                turn: false,
                context: false,
                summary: false,
                bytes: 0,
                keys: vec![key],
            });
        }
    }
    (told, broken)
}

/// Lets items of a list that have no id keep that of the newest one in the history that says the
/// same.
fn keep_ids(told: &mut [Told], before: &[HistoryEntry]) {
    let listed: FxHashSet<&Key> = told.iter().flat_map(|told| &told.keys).collect();
    let mut by_number: FxHashMap<u64, Vec<Key>> = FxHashMap::default();
    for key in before.iter().flat_map(|entry| &entry.keys).filter(|key| !listed.contains(key)) {
        if let Key::Item(_, number) = key {
            by_number.entry(*number).or_default().push(key.clone());
        }
    }
    for told in told.iter_mut().rev() {
        if let [Key::Text(number)] = told.keys.as_slice() {
            let key = by_number.get_mut(number).and_then(Vec::pop);
            told.keys.extend(key);
        }
    }
}

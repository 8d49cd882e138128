//! What the API took out of a request before the model saw it.
use pleach_tree::{By, ByKind, Part, Replace, ReplacementKind, Role, SegmentId};
use rustc_hash::FxHashSet;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::replay::{Replay, State};
use crate::core::script::Change;

/// One change that the API made to a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Transformation {
    #[serde(rename = "type")]
    kind: Option<String>,
    path: Option<String>,
}

/// The changes that the API made to a request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Transformed {
    /// Where in the request the thinking stood that was taken out.
    pub(super) dropped: Vec<String>,
    /// A type of change that is not known.
    pub(super) unknown: Option<String>,
}

/// A segment that requests hold and the model does not see.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dropped {
    segment: SegmentId,
    /// What requests hold before it.
    behind: Option<SegmentId>,
}

/// Reads the changes; none where they are not recorded.
pub(super) fn transformed(raw: &RawValue) -> Option<Transformed> {
    let changes: Vec<Transformation> = serde_json::from_str(raw.get()).ok()?;
    let mut found = Transformed::default();
    for change in changes {
        match change.kind.as_deref() {
            Some("thinking_dropped") => found.dropped.push(change.path.unwrap_or_default()),
            // The thinking was let through.
            Some("thinking_mismatch_allowed") => {}
            kind => found.unknown = Some(kind.unwrap_or_default().to_owned()),
        }
    }
    Some(found)
}

impl Replay<'_> {
    /// Takes thinking out of the context that the API took out of the request of a call, which the
    /// next request holds again.
    pub(super) fn drop_thinking(&mut self, state: &mut State, line: usize, paths: &[String]) {
        let sent = self.sent(state);
        let dropped = self.thinking(&sent, paths);
        if dropped.len() < paths.len() {
            let message = format!(
                "thinking that the API took out of the request ({} of {} blocks) is not found in it; it stands in the context",
                paths.len() - dropped.len(),
                paths.len()
            );
            self.session.warn(line, "message.input_transformations", "dropped-thinking", message);
        }
        let Some(held) = state.held else { return };
        let there: FxHashSet<SegmentId> = self.ledger().list(state.held).into_iter().collect();
        let after: Vec<SegmentId> =
            sent.iter().copied().filter(|id| !dropped.contains(id)).collect();
        let gone: Vec<SegmentId> =
            sent.iter().copied().filter(|id| dropped.contains(id) && there.contains(id)).collect();
        let by = By { name: Some("input_transformations".into()), ..By::new(ByKind::Provider) };
        if after.iter().any(|id| !there.contains(id)) {
            let replace = Replace::new(held.id, after).with_author(by);
            state.held = Some(self.ledger().replace(held, replace));
        } else if !gone.is_empty() {
            let evict = Change::new(ReplacementKind::None).evict(held, gone, by);
            state.held = Some(self.ledger().evict(held, evict, &after));
        }
        let before = std::iter::once(None).chain(sent.iter().copied().map(Some));
        let hidden = sent.iter().zip(before).filter(|(id, _)| dropped.contains(id));
        state.dropped =
            hidden.map(|(&segment, behind)| Dropped { segment, behind }).collect::<Vec<_>>().into();
    }

    /// What the request holds: the context, and what was taken out of earlier requests.
    fn sent(&mut self, state: &State) -> Vec<SegmentId> {
        let mut sent = self.ledger().list(state.held);
        for dropped in state.dropped.iter() {
            if sent.contains(&dropped.segment) {
                continue;
            }
            let place = match dropped.behind {
                None => Some(0),
                Some(behind) => sent.iter().position(|&id| id == behind).map(|at| at + 1),
            };
            if let Some(place) = place {
                sent.insert(place, dropped.segment);
            }
        }
        sent
    }

    /// The thinking at paths such as `messages.1.content.0`; where they lead elsewhere, all of it
    /// where it is as many blocks.
    fn thinking(&self, sent: &[SegmentId], paths: &[String]) -> FxHashSet<SegmentId> {
        let ledger = &self.session.draft.ledger;
        let segments = || sent.iter().filter_map(|&id| Some((id, ledger.written(id)?)));
        // Neighbours of one side are one message; the system prompt is none.
        let mut messages: Vec<(Role, Vec<SegmentId>)> = Vec::new();
        let mut runs_on = false;
        for (id, segment) in segments() {
            let role = if segment.role == Role::Tool { Role::User } else { segment.role };
            match messages.last_mut() {
                None if role == Role::System => {}
                Some((last, _)) if *last == role && runs_on => {}
                Some((last, blocks)) if *last == role => blocks.push(id),
                _ => messages.push((role, vec![id])),
            }
            runs_on = segment.open;
        }
        let is_thinking = |id: &SegmentId| {
            ledger.written(*id).is_some_and(|segment| segment.part == Some(Part::Reasoning))
        };
        let at = |path: &String| -> Option<SegmentId> {
            let (message, block) = path.strip_prefix("messages.")?.split_once(".content.")?;
            let (_, blocks) = messages.get(message.parse::<usize>().ok()?)?;
            blocks.get(block.parse::<usize>().ok()?).copied().filter(is_thinking)
        };
        let found: FxHashSet<SegmentId> = paths.iter().filter_map(at).collect();
        let all: FxHashSet<SegmentId> = segments().map(|(id, _)| id).filter(is_thinking).collect();
        if found.len() < paths.len() && all.len() == paths.len() { all } else { found }
    }
}

//! The system prompt and the tools at the head of every request, where the session records them.
use std::sync::Arc;

use pleach_tree::{
    By, Evict, Evicted, Origin, Place, Replace, Replacement, ReplacementKind, Role, SegmentId,
};
use rustc_hash::FxHashSet;

use super::attachment::Prompt;
use super::entry::Body;
use super::replay::{Replay, State};
use crate::core::script::text;

/// Who changes the head of a context.
const RULE: &str = "prompt_snapshot";

/// The segments at the head of a context that are recorded as such.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Head {
    pub(super) tools: Option<SegmentId>,
    pub(super) system: Vec<SegmentId>,
}

impl Head {
    /// Whether everything that stands at the head is recorded.
    pub(super) fn is_whole(&self) -> bool {
        self.tools.is_some() && !self.system.is_empty()
    }

    /// The segments, in their order.
    pub(super) fn list(&self) -> Vec<SegmentId> {
        self.tools.iter().chain(&self.system).copied().collect()
    }
}

impl Replay<'_> {
    /// Puts what lines record at the head of the context, in place of what stood there.
    pub(super) fn record_heads(&mut self, state: &mut State, lines: impl Iterator<Item = usize>) {
        let was = state.head.clone();
        for entry in lines {
            let written = self.head(entry);
            if !self.says(state.head.tools.as_slice(), written.tools.as_slice()) {
                state.head.tools = written.tools;
            }
            if !self.says(&state.head.system, &written.system) {
                state.head.system = written.system;
            }
        }
        if state.head != was {
            self.change_head(state, &was);
        }
    }

    /// Whether segments say what other ones say, or those say nothing.
    fn says(&self, known: &[SegmentId], written: &[SegmentId]) -> bool {
        let ledger = &self.session.draft.ledger;
        let text = |id: &SegmentId| ledger.written(*id).and_then(|segment| segment.text.as_deref());
        written.is_empty() || known.iter().map(text).eq(written.iter().map(text))
    }

    fn change_head(&mut self, state: &mut State, was: &Head) {
        let list = self.ledger().list(state.held);
        let (before, now) = (was.list(), state.head.list());
        let gone: FxHashSet<SegmentId> =
            before.iter().copied().filter(|id| !now.contains(id)).collect();
        let rest = list.iter().copied().filter(|id| !before.contains(id));
        let after: Vec<SegmentId> = now.iter().copied().chain(rest).collect();
        let Some(held) = state.held else {
            state.held = Some(self.ledger().append(None, after));
            return;
        };
        state.held = Some(if gone.is_empty() {
            let replace = Replace::new(held.id, after).with_author(By::rule(RULE));
            self.ledger().replace(held, replace)
        } else {
            let put: Vec<SegmentId> =
                now.iter().copied().filter(|id| !before.contains(id)).collect();
            let evicted: Vec<Evicted> =
                list.iter().copied().filter(|id| gone.contains(id)).map(Evicted::whole).collect();
            let replacement =
                Replacement::new(ReplacementKind::Placeholder, put, Place::BeforeFirst);
            let evict = Evict::new(held.id, evicted)
                .with_author(By::rule(RULE))
                .with_replacement(replacement);
            self.ledger().evict(held, evict, &after)
        });
        if state.head.is_whole() && !was.is_whole() {
            state.era = self.era();
        }
    }

    /// The segments of a line that records the head, written when they are first needed.
    fn head(&mut self, entry: usize) -> Head {
        if let Some(head) = self.heads.get(&entry) {
            return head.clone();
        }
        let Body::Prompt(prompt) = &mut self.session.entries[entry].body else {
            return Head::default();
        };
        let Prompt { tools, system } = std::mem::take(prompt);
        let key = Arc::clone(&self.session.entries[entry].uuid);
        let tools = tools.map(|tools| {
            let mut segment = text(Role::System, Origin::Harness, tools);
            segment.extra.insert("tools".into(), true.into());
            self.write(entry, &key, segment)
        });
        let system = system
            .into_iter()
            .map(|part| self.write(entry, &key, text(Role::System, Origin::Harness, part)))
            .collect();
        let head = Head { tools, system };
        self.heads.insert(entry, head.clone());
        head
    }
}

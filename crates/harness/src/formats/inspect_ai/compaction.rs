//! Compactions that a sample's log names.
use std::sync::Arc;

use pleach_tree::{By, ByKind, ForkReason, Origin, Part, ReplacementKind, Segment, Trigger};

use super::play::{Play, Thread};
use super::sample::Event;
use crate::core::script::{self, Author, Change, Item, Step};

impl Play<'_> {
    /// A new text as the words of the call that wrote the summary and those around them.
    pub(super) fn quote(&self, change: &Change, segment: &Segment) -> Option<Vec<Item>> {
        let Author::Of(node) = change.author else { return None };
        let Step::Call(call) = &self.script.nodes[node].step else { return None };
        let part = call.output.iter().rposition(|said| said.part == Some(Part::Content))?;
        script::quoting(segment, call.output[part].text.as_deref()?, Item::Part(node, part))
    }

    /// A compaction of a span's thread; the call before a summary wrote it, and is a thread of its
    /// own.
    pub(super) fn compaction(&mut self, event: Event) {
        let span = event.span_id.as_deref();
        let of_span =
            |thread: &Thread| span.is_none_or(|span| thread.spans.iter().any(|own| own == span));
        let Some(thread) = (0..self.threads.len()).rev().find(|&at| of_span(&self.threads[at]))
        else {
            return;
        };
        let field = |name: &str| event.metadata.as_ref()?.get(name)?.as_str().map(str::to_owned);
        let trigger = match field("trigger").as_deref() {
            Some("manual") => Some(Trigger::Manual),
            Some(_) => Some(Trigger::Auto),
            None => None,
        };
        let rule = By::rule(
            field("strategy")
                .unwrap_or_else(|| event.sort.clone().unwrap_or_else(|| "compaction".into())),
        );
        let (kind, author) = match (event.sort.as_deref(), event.source.as_deref()) {
            (_, Some(source)) if source != "inspect" => {
                (ReplacementKind::Summary, Author::Known(By::new(ByKind::Provider)))
            }
            (Some("summary" | "auto"), _) => {
                (ReplacementKind::Summary, self.summariser(thread).unwrap_or(Author::Known(rule)))
            }
            (Some("edit"), _) => (ReplacementKind::Placeholder, Author::Known(rule)),
            _ => (ReplacementKind::None, Author::Known(rule)),
        };
        self.threads[thread].compaction = Some(Change::new(kind).by(author).trigger(trigger));
    }

    /// Parts the last call of a thread from it, where it went on from the context with a prompt to
    /// summarise it.
    fn summariser(&mut self, thread: usize) -> Option<Author> {
        let node = self.threads[thread].at?;
        let last = node + 1 == self.script.nodes.len();
        let Step::Call(call) = &self.script.nodes[node].step else { return None };
        if !last || call.output.iter().any(|said| !said.calls.is_empty()) {
            return None;
        }
        let model = call.model.clone();
        let (_, asked) = self.threads[thread].marks.pop()?;
        // The prompt to summarise, which is all that the call added to the context.
        let (count, before) = match self.threads[thread].marks.last().copied() {
            Some((count, before))
                if asked
                    .is_some_and(|asked| matches!(self.script.nodes[asked].step, Step::Put(_))) =>
            {
                self.threads[thread].marks.pop();
                (count, before)
            }
            _ => (self.threads[thread].live.len().checked_sub(1)?, asked),
        };
        self.summaries += 1;
        let conversation =
            self.script.conversation_of(&self.rollout, format!("summary-{}", self.summaries));
        let before_model = before.and_then(|before| self.model_before(before));
        let external = model.is_some() && before_model.is_some() && model != before_model;
        let first = asked.filter(|&asked| Some(asked) != before);
        for at in first.into_iter().chain([node]) {
            self.script.nodes[at].conversation = conversation;
        }
        self.script.forks(first.unwrap_or(node), ForkReason::Summarizer);
        self.threads[thread].live.truncate(count);
        self.threads[thread].at = before;
        if !external {
            return Some(Author::Of(node));
        }
        if let Step::Call(call) = &mut self.script.nodes[node].step {
            call.output.iter_mut().for_each(|said| said.origin = Origin::ExternalModel);
        }
        Some(Author::Known(By {
            name: model.as_deref().map(str::to_owned),
            ..By::new(ByKind::ExternalModel)
        }))
    }

    fn model_before(&self, node: usize) -> Option<Arc<str>> {
        let mut at = Some(node);
        while let Some(node) = at {
            if let Step::Call(call) = &self.script.nodes[node].step {
                return call.model.clone();
            }
            at = self.script.nodes[node].parent;
        }
        None
    }
}

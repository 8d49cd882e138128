//! Steps as records: the tree's own operations with all that they say, and what only the template
//! changes.
use pleach_tree::{
    Append, By, ContextId, Evict, Evicted, Extra, Fork, Operation, Record, Replace, Replacement,
    ReplacementKind, SegmentId, Span,
};
use rustc_hash::FxHashSet;

use super::RenderError;
use super::list_edit::{Cut, ListEdit, Plan};
use super::rewrite::Rewriter;

/// The rule by which a template changes what a context held.
const RULE: &str = "chat_template";

/// The operation of the tree that a plan stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Author<'t>(Operation<'t>);

impl<'t> Author<'t> {
    pub(super) fn of(operation: Operation<'t>) -> Self {
        Self(operation)
    }

    /// Index of the step that is this operation.
    fn step(self, steps: usize) -> usize {
        match self.0 {
            Operation::Append(_) => steps - 1,
            _ => 0,
        }
    }
}

impl Rewriter<'_, '_> {
    /// Writes a plan as records that lead from one context to another, over contexts of their own;
    /// returns the last list.
    pub(super) fn emit(
        &mut self,
        plan: Plan,
        context: ContextId,
        (from, before): (Option<ContextId>, &[Span]),
        author: Author,
    ) -> Result<Vec<Span>, RenderError> {
        let (count, own) = (plan.steps.len(), author.step(plan.steps.len()));
        let mut at = from;
        for (index, step) in plan.steps.into_iter().enumerate() {
            let next = if index + 1 == count { context } else { self.fresh_context()? };
            let operation = (index == own).then_some(author.0);
            let record = self.step(step, next, at, before, operation);
            self.table.records.push(record);
            at = Some(next);
        }
        Ok(plan.list)
    }

    fn step(
        &mut self,
        step: ListEdit,
        context: ContextId,
        from: Option<ContextId>,
        before: &[Span],
        own: Option<Operation>,
    ) -> Record {
        let parent = from.unwrap_or(context);
        match (step, own) {
            (ListEdit::Append(segments), own) => {
                let extra = match own {
                    Some(Operation::Append(record)) => record.extra.clone(),
                    _ => Extra::new(),
                };
                Record::Append(Append { context, from, segments, extra })
            }
            (ListEdit::Fork, Some(Operation::Fork(record))) => {
                Record::Fork(Fork { context, from: parent, ..record.clone() })
            }
            (ListEdit::Replace(segments), Some(Operation::Replace(record))) => {
                self.leave_but(before, &segments);
                Record::Replace(Replace { context, from: parent, segments, ..record.clone() })
            }
            (ListEdit::Replace(segments), _) => {
                self.notes.rewritten += 1;
                self.leave_but(before, &segments);
                let replace = Replace::new(parent, segments).with_author(By::rule(RULE));
                Record::Replace(Replace { context, ..replace })
            }
            (ListEdit::Evict(cut), Some(Operation::Evict(record))) => {
                let evicted = self.evicted(&cut, before);
                let replacement = record.replacement.as_ref().map(|replacement| Replacement {
                    kind: match replacement.kind {
                        // What the template writes around nothing is something.
                        ReplacementKind::None if !cut.inserted.is_empty() => {
                            ReplacementKind::Truncation
                        }
                        kind => kind,
                    },
                    segments: cut.inserted,
                    place: cut.place,
                    ..replacement.clone()
                });
                Record::Evict(Box::new(Evict {
                    context,
                    from: parent,
                    evicted,
                    replacement,
                    ..record.clone()
                }))
            }
            (ListEdit::Evict(cut), _) => {
                self.notes.rewritten += 1;
                let evicted = self.evicted(&cut, before);
                let replacement =
                    Replacement::new(ReplacementKind::Truncation, cut.inserted, cut.place);
                let replacement =
                    Some(replacement).filter(|replacement| !replacement.segments.is_empty());
                let evict = Evict::new(parent, evicted).with_author(By::rule(RULE));
                Record::Evict(Box::new(Evict { context, replacement, ..evict }))
            }
            (ListEdit::Fork, _) => {
                Record::Append(Append { context, ..Append::new(from, Vec::new()) })
            }
        }
    }

    /// The entries of an eviction: a segment by name where all that is there of it leaves, else by
    /// range.
    fn evicted(&mut self, cut: &Cut, before: &[Span]) -> Vec<Evicted> {
        self.leave(cut.removed.iter());
        let before: FxHashSet<&Span> = before.iter().collect();
        let whole = |span: &Span| before.contains(span) || *span == self.table.whole(span.segment);
        let entry = |span: &Span| match whole(span) {
            true => Evicted::whole(span.segment),
            false => Evicted::range(span.segment, span.start, span.end),
        };
        cut.removed.iter().map(entry).collect()
    }

    fn leave_but(&mut self, before: &[Span], kept: &[SegmentId]) {
        let kept: FxHashSet<SegmentId> = kept.iter().copied().collect();
        self.leave(before.iter().filter(|span| !kept.contains(&span.segment)));
    }

    fn leave<'s>(&mut self, spans: impl Iterator<Item = &'s Span>) {
        spans.for_each(|span| self.table.leave(span.segment));
    }

    fn fresh_context(&mut self) -> Result<ContextId, RenderError> {
        let id = ContextId(self.next_context);
        self.next_context =
            self.next_context.checked_add(1).ok_or(RenderError::TooMany { what: "contexts" })?;
        Ok(id)
    }
}

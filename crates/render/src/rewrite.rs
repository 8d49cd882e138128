//! The records of a tree with tokens in place of text.
use std::rc::Rc;

use pleach_tree::{
    BranchTree, ContextId, Fidelity, Generation, Header, Operation, Record, SegmentId, Span,
    TokenizerIdentity,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::encode::Encoder;
use super::folder::Loss;
use super::list_edit::{ListEdit, Plan};
use super::lists::{Held, Lists};
use super::message::Messages;
use super::note::Notes;
use super::operation::Author;
use super::table::Table;
use super::target::Target;
use super::view::{Failure, Viewer, runs};
use super::window::window;
use super::{ChatTemplate, RenderError};

/// Segments of a context from which on what is kept of its whole rendering is too much to keep.
const MANY: usize = 4096;

/// Records with tokens, and what a reader of them should know.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rendered {
    /// The records; those of a tree that was read soundly are sound.
    pub records: Vec<Record>,
    /// What rendering changed or could not keep, one sentence each.
    pub notes: Vec<String>,
}

/// A tree on its way to token-level records.
pub(super) struct Rewriter<'r, 't> {
    pub(super) tree: &'t BranchTree,
    pub(super) viewer: Viewer<'r, 't>,
    pub(super) table: Table,
    pub(super) notes: Notes,
    pub(super) next_context: u32,
    pub(super) loss: Loss,
    /// Whether what comes behind a long list is rendered with the end of it alone.
    pub(super) windows: bool,
    /// Whether lists were the renderings of the whole wherever that was looked at.
    pub(super) sure: bool,
    pub(super) lists: Lists,
    pub(super) called: FxHashMap<ContextId, &'t Generation>,
}

/// Renders every context of a tree, in the order of its records.
pub(super) fn rewrite(
    tree: &BranchTree,
    template: &ChatTemplate,
    encoder: &Encoder,
    identity: &TokenizerIdentity,
    loss: Loss,
) -> Result<Rendered, RenderError> {
    match attempt(tree, template, encoder, identity, loss, true)? {
        (rendered, true) => Ok(rendered),
        (_, false) => Ok(attempt(tree, template, encoder, identity, loss, false)?.0),
    }
}

/// The rendered tree, and whether its ids are sure to be those of every text as one.
fn attempt(
    tree: &BranchTree,
    template: &ChatTemplate,
    encoder: &Encoder,
    identity: &TokenizerIdentity,
    loss: Loss,
    shortcuts: bool,
) -> Result<(Rendered, bool), RenderError> {
    let mut messages = Messages::new(tree, template.takes_tools())?;
    messages.suspect(template.literals());
    let mut called = FxHashMap::default();
    tree.generations().for_each(|generation| {
        called.entry(generation.context).or_insert(generation);
    });
    let ids = tree.contexts().filter_map(|context| context.id());
    let mut rewriter = Rewriter {
        tree,
        viewer: Viewer::new(messages, template, encoder, shortcuts),
        table: Table::default(),
        notes: Notes::new(tree, template),
        next_context: ids.map(|id| id.0).max().map_or(0, |id| id.saturating_add(1)),
        loss,
        windows: shortcuts,
        sure: true,
        lists: Lists::of(tree),
        called,
    };
    let longest = rewriter.longest()?;
    if let Some((context, members)) = &longest {
        let same = rewriter
            .viewer
            .verify(members)
            .map_err(|failure| rewriter.refused(*context, failure))?;
        rewriter.notes.whole = !same;
    }
    if longest.as_ref().is_some_and(|(_, members)| members.len() > MANY) {
        rewriter.viewer.forget();
    }
    for record in tree.records() {
        rewriter.record(record, identity)?;
        if !rewriter.sure {
            break;
        }
    }
    let sure = match &longest {
        Some((context, members)) => rewriter
            .viewer
            .confirm(members)
            .map_err(|failure| rewriter.refused(*context, failure))?,
        None => true,
    };
    let sure = sure && rewriter.sure;
    rewriter.notes.searched = rewriter.viewer.searched;
    Ok((Rendered { records: rewriter.table.records, notes: rewriter.notes.sentences() }, sure))
}

impl<'t> Rewriter<'_, 't> {
    fn record(
        &mut self,
        record: &'t Record,
        identity: &TokenizerIdentity,
    ) -> Result<(), RenderError> {
        match record {
            Record::Header(header) => {
                let fidelity = header.fidelity.min(Fidelity::Message);
                let header =
                    Header { fidelity, tokenizer: Some(identity.clone()), ..header.clone() };
                self.table.records.push(Record::Header(header));
            }
            Record::Segment(_) => {}
            Record::Append(record) => self.context(record.context, record.from)?,
            Record::Evict(record) => self.context(record.context, Some(record.from))?,
            Record::Replace(record) => self.context(record.context, Some(record.from))?,
            Record::Fork(record) => self.context(record.context, Some(record.from))?,
            Record::Generation(generation) => self.generation(generation)?,
            other => self.table.records.push(other.clone()),
        }
        Ok(())
    }

    /// The longest context that the policy was called under, with what it holds.
    fn longest(&self) -> Result<Option<(ContextId, Vec<u32>)>, RenderError> {
        let size = |id: &ContextId| self.tree.context(*id).map_or(0, |context| context.tokens());
        let longest = self.called.keys().copied().max_by_key(|id| (size(id), id.0));
        longest.map(|context| Ok((context, self.members(context)?))).transpose()
    }

    /// The numbers of the segments that a context holds, which must be there whole.
    pub(super) fn members(&self, context: ContextId) -> Result<Vec<u32>, RenderError> {
        let spans = self.tree.spans(context).unwrap_or_default();
        let whole = |span: Span| {
            let segment = self.tree.segment(span.segment)?;
            (span.start == 0 && span.len() == segment.extent())
                .then(|| self.viewer.messages.number(span.segment))?
        };
        spans
            .into_iter()
            .map(|span| {
                whole(span).ok_or_else(|| {
                    let at = self.tree.context_location(context).map(ToString::to_string);
                    RenderError::PartOfSegment {
                        place: at.unwrap_or_default(),
                        context,
                        segment: span.segment,
                    }
                })
            })
            .collect()
    }

    fn context(&mut self, context: ContextId, from: Option<ContextId>) -> Result<(), RenderError> {
        let mut held = from.map(|from| self.lists.take(from)).unwrap_or_default();
        let Some(operation) = self.tree.operation(context) else { return Ok(()) };
        if let Operation::Append(append) = operation {
            match self.append_behind(context, append, held)? {
                Some(back) => held = back,
                None => return Ok(()),
            }
        }
        if let Some(from) = from.filter(|_| held.rendered < held.starts.len()) {
            self.confirm_list(&held, from)?;
        }
        let before = &held.list;
        let members = self.members(context)?;
        let target = self.target(context, &members, before)?;
        let plan = match operation {
            Operation::Append(_) => Plan::edits(before, target, true, &mut self.table)?,
            Operation::Evict(record) => {
                let left: FxHashSet<u32> = self.numbers(self.tree.removed(context).iter());
                let placed =
                    record.replacement.iter().flat_map(|replacement| &replacement.segments);
                let placed: FxHashSet<u32> =
                    placed.filter_map(|&id| self.viewer.messages.number(id)).collect();
                Plan::eviction(before, target, &left, &placed, &mut self.table)?
            }
            Operation::Replace(_) => {
                let segments = self.table.as_wholes(&target)?;
                let list = segments.iter().map(|&id| self.table.whole(id)).collect();
                Plan { steps: vec![ListEdit::Replace(segments)], list }
            }
            Operation::Fork(_) => {
                let mut plan = Plan::edits(before, target, false, &mut self.table)?;
                plan.steps.insert(0, ListEdit::Fork);
                plan
            }
        };
        let list = self.emit(plan, context, (from, before), Author::of(operation))?;
        let mut starts = Vec::new();
        self.viewer.messages.starts(&members, &mut starts);
        let rendered = starts.len();
        self.lists.put(context, Rc::new(Held { list, members, starts, rendered }));
        Ok(())
    }

    fn numbers<'s>(&self, spans: impl Iterator<Item = &'s Span>) -> FxHashSet<u32> {
        spans.filter_map(|span| self.viewer.messages.number(span.segment)).collect()
    }

    /// What a context shall hold: its rendering, as a prompt where the policy was called under it.
    fn target(
        &mut self,
        context: ContextId,
        members: &[u32],
        before: &[Span],
    ) -> Result<Vec<Span>, RenderError> {
        let prompt = self.called.contains_key(&context);
        match self.viewer.render(members, prompt) {
            Ok(rendering) => {
                let runs = runs(&rendering.tokens, &rendering.regions, 0);
                let target = Target::new(&mut self.table, &self.viewer.messages, before);
                target.build(&runs, &rendering.tokens.ids, members)
            }
            Err(Failure::Refused(_)) if !prompt => {
                self.notes.refused += 1;
                self.bare(members, before)
            }
            Err(failure) => Err(self.refused(context, failure)),
        }
    }

    /// The texts of `members` without any template, for a context that no call was made under and
    /// that the template refuses.
    fn bare(&mut self, members: &[u32], before: &[Span]) -> Result<Vec<Span>, RenderError> {
        let mut standing: FxHashMap<u32, Vec<Span>> = FxHashMap::default();
        for span in before {
            if let Some((segment, _)) = self.table.part(span.segment) {
                standing.entry(segment).or_default().push(*span);
            }
        }
        let mut list = Vec::new();
        for &member in members {
            if let Some(spans) = standing.get(&member) {
                list.extend_from_slice(spans);
                continue;
            }
            let ids = self.viewer.encode(self.viewer.messages.text(member))?.ids;
            let id = self.table.render((member, 0), &ids, self.viewer.messages.segment(member))?;
            list.push(self.table.whole(id));
        }
        Ok(list)
    }

    pub(super) fn refused(&self, context: ContextId, failure: Failure) -> RenderError {
        match (failure, self.called.get(&context)) {
            (Failure::Other(error), _) => error,
            (Failure::Refused(message), Some(generation)) => RenderError::Refused {
                place: self
                    .tree
                    .generation_location(generation.id)
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                generation: generation.id,
                message,
            },
            (Failure::Refused(message), None) => {
                RenderError::Template { file: "chat template".into(), message }
            }
        }
    }

    /// Writes a generation with what the template makes of its output.
    fn generation(&mut self, generation: &'t Generation) -> Result<(), RenderError> {
        let held = self.lists.take(generation.context);
        let near = if self.windows { window(&self.viewer.messages, &held) } else { None };
        let members = near.as_ref().unwrap_or(&held.members);
        let output: Vec<u32> =
            generation.output.iter().filter_map(|&id| self.viewer.messages.number(id)).collect();
        let answer = self.output(generation.context, members, &output)?;
        let segments = Target::behind(&mut self.table, &self.viewer.messages, &held.list).extend(
            &answer.runs,
            &answer.ids,
            &output,
            generation.id,
        )?;
        let mut at = answer.runs.first().map_or(0, |run| run.tokens.start);
        for &id in &segments {
            self.weigh(id);
            at = self.table.train_only(id, at, &answer.trained);
        }
        if let Some(recorded) = &generation.prompt_tokens {
            let prompt = held.list.iter().flat_map(|&span| self.table.ids(span));
            self.notes.prompts(prompt.eq(recorded.iter()));
        }
        let generation = Generation { output: segments, prompt_tokens: None, ..generation.clone() };
        self.table.records.push(Record::Generation(generation));
        Ok(())
    }

    fn weigh(&mut self, id: SegmentId) {
        let Some((number, _)) = self.table.part(id) else { return };
        let original = self.viewer.messages.segment(number);
        if !self.table.weigh(id, original) {
            self.notes.weights.push(original.id);
        }
    }
}

//! The packed layout where keys and values are evicted in place: every token once, in the order it
//! is processed.
use indexmap::IndexMap;
use pleach_tree::{
    BranchTree, ContextId, Event, Operation, ReplacementKind, SegmentId, Span, View,
};
use rustc_hash::FxHashMap;

use crate::layouts::{Layout, LayoutKind};
use crate::sequence::index;
use crate::{Identity, LayoutError, Sequence, Term};

/// What one root's engine has processed.
#[derive(Debug, Default)]
struct Tape {
    tokens: Vec<u32>,
    identities: Vec<Identity>,
    /// The index of the first token processed after each token's eviction.
    deaths: Vec<Option<usize>>,
    /// Where the living tokens of each segment stand, by their index in the segment.
    alive: FxHashMap<SegmentId, Vec<Option<usize>>>,
    /// Segments that were sampled and stand in no context yet.
    pending: Vec<SegmentId>,
}

pub(crate) fn packed(tree: &BranchTree) -> Result<Layout, LayoutError> {
    let mut tapes: IndexMap<ContextId, Tape> = IndexMap::new();
    let mut generations = Vec::new();
    for &event in tree.events() {
        match event {
            Event::Context(id) => {
                let root = tree.context(id).and_then(pleach_tree::Context::root).unwrap_or(id);
                tapes.entry(root).or_default().operate(tree, id);
            }
            Event::Generation(id) => {
                let Some(view) = tree.view(id) else { continue };
                let root = view.context().root().unwrap_or(view.generation().context);
                let terms = tapes.entry(root).or_default().generate(tree, &view);
                generations.push((root, terms));
            }
        }
    }
    join(&tapes, generations)
}

fn join(
    tapes: &IndexMap<ContextId, Tape>,
    generations: Vec<(ContextId, Vec<Term>)>,
) -> Result<Layout, LayoutError> {
    let mut sequence = Sequence::default();
    let mut identities = Vec::new();
    let mut starts = FxHashMap::default();
    for (&root, tape) in tapes {
        let start = sequence.len();
        starts.insert(root, start as u32);
        let len = tape.tokens.len();
        index(start + len)?;
        sequence.tokens.extend_from_slice(&tape.tokens);
        sequence.positions.extend(0..index(len)?);
        for death in &tape.deaths {
            sequence.ends.push(index(start + death.unwrap_or(len))?);
        }
        identities.extend_from_slice(&tape.identities);
    }
    for (root, terms) in generations {
        let start = starts.get(&root).copied().unwrap_or(0);
        sequence
            .terms
            .extend(terms.into_iter().map(|term| Term { source: term.source + start, ..term }));
    }
    Ok(Layout {
        kind: LayoutKind::Packed,
        sequences: vec![sequence],
        identities: vec![identities],
        parents: None,
    })
}

impl Tape {
    fn operate(&mut self, tree: &BranchTree, id: ContextId) {
        match tree.operation(id) {
            Some(Operation::Append(append)) => {
                append.segments.iter().for_each(|&segment| self.enter(tree, segment))
            }
            Some(Operation::Evict(evict)) => {
                self.evict(tree, id);
                let replacement = evict
                    .replacement
                    .iter()
                    .filter(|replacement| replacement.kind != ReplacementKind::Latent);
                replacement
                    .flat_map(|replacement| &replacement.segments)
                    .for_each(|&segment| self.enter(tree, segment));
            }
            Some(Operation::Replace(replace)) => {
                self.evict(tree, id);
                replace.segments.iter().for_each(|&segment| self.enter(tree, segment));
            }
            Some(Operation::Fork(_)) | None => {}
        }
    }

    fn evict(&mut self, tree: &BranchTree, id: ContextId) {
        for span in tree.removed(id) {
            self.kill(*span);
        }
    }

    fn kill(&mut self, span: Span) {
        let now = self.tokens.len();
        let Some(alive) = self.alive.get_mut(&span.segment) else { return };
        for place in alive.iter_mut().take(span.end as usize).skip(span.start as usize) {
            if let Some(at) = place.take() {
                self.deaths[at] = Some(now);
            }
        }
    }

    /// A segment enters the context: what of it is not alive is processed, so a sampled segment is
    /// not processed again.
    fn enter(&mut self, tree: &BranchTree, segment: SegmentId) {
        self.pending.retain(|&pending| pending != segment);
        self.process(tree, segment);
    }

    fn process(&mut self, tree: &BranchTree, segment: SegmentId) {
        let tokens =
            tree.segment(segment).and_then(|segment| segment.tokens.as_deref()).unwrap_or_default();
        let alive = self.alive.entry(segment).or_insert_with(|| vec![None; tokens.len()]);
        for ((place, &token), offset) in
            alive.iter_mut().zip(tokens).zip(0..).filter(|((place, _), _)| place.is_none())
        {
            *place = Some(self.tokens.len());
            self.tokens.push(token);
            self.identities.push(Identity { segment: segment.0, offset });
            self.deaths.push(None);
        }
    }

    fn generate(&mut self, tree: &BranchTree, view: &View<'_>) -> Vec<Term> {
        for segment in std::mem::take(&mut self.pending) {
            // A sampled segment that the next call's context leaves out was dropped before that
            // call.
            let end = u32::try_from(tree.segment(segment).map_or(0, pleach_tree::Segment::extent))
                .unwrap_or(u32::MAX);
            self.kill(Span { segment, start: 0, end });
        }
        let generation = view.generation().id.0;
        let (before, context) = (self.tokens.len(), view.context().tokens());
        for &segment in &view.generation().output {
            self.process(tree, segment);
            self.pending.push(segment);
        }
        let term = |token: pleach_tree::OutputToken| {
            let offset = token.offset as usize;
            let source = (before + offset).checked_sub(1).filter(|_| context + offset > 0)?;
            let weight = token.weight?;
            Some(Term {
                source: source as u32,
                target: token.token,
                generation,
                offset: token.offset,
                weight,
            })
        };
        view.output().filter_map(term).collect()
    }
}

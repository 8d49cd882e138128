//! The two common flattenings, both wrong in opposite directions.
use indexmap::IndexMap;
use pleach_tree::{BranchTree, GenerationId, SegmentId, Span, View};
use rustc_hash::FxHashMap;

use crate::layouts::{Layout, LayoutKind};
use crate::{Identity, LayoutError, Sequence, Term};

/// One thread flattened: every identity at most once, in some order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flat {
    pub(crate) generations: Vec<GenerationId>,
    pub(crate) spans: Vec<Span>,
    /// Per segment its ranges and where they stand, by start.
    pub(crate) places: FxHashMap<SegmentId, Vec<Placed>>,
    len: u32,
}

/// Where a range of a segment stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) at: u32,
}

impl Flat {
    /// Puts what of `span` does not stand yet at the end.
    fn push(&mut self, span: Span) {
        let ranges = self.places.entry(span.segment).or_default();
        let mut start = span.start;
        let mut new = Vec::new();
        for placed in
            ranges.iter().filter(|placed| placed.end > span.start && placed.start < span.end)
        {
            if start < placed.start {
                new.push((start, placed.start));
            }
            start = start.max(placed.end);
        }
        if start < span.end {
            new.push((start, span.end));
        }
        for (start, end) in new {
            ranges.push(Placed { start, end, at: self.len });
            self.len += end - start;
            self.spans.push(Span { start, end, ..span });
        }
        ranges.sort_unstable_by_key(|placed| placed.start);
    }

    /// Where a token stands.
    pub(crate) fn place(&self, segment: SegmentId, offset: u32) -> Option<u32> {
        let ranges = self.places.get(&segment)?;
        let placed = ranges.get(ranges.partition_point(|placed| placed.end <= offset))?;
        (placed.start <= offset).then(|| placed.at + offset - placed.start)
    }

    /// The terms of one of the thread's generations.
    pub(crate) fn terms(&self, view: &View<'_>) -> Vec<Term> {
        let (generation, context) = (view.generation().id.0, view.context().tokens());
        let term = |token: pleach_tree::OutputToken| {
            if context + token.offset as usize == 0 {
                return None;
            }
            let source = self.place(token.segment, token.at)?.checked_sub(1)?;
            Some(Term {
                source,
                target: token.token,
                generation,
                offset: token.offset,
                weight: token.weight?,
            })
        };
        view.output().filter_map(term).collect()
    }

    pub(crate) fn layout(
        tree: &BranchTree,
        kind: LayoutKind,
        threads: &[Self],
    ) -> Result<Layout, LayoutError> {
        let sequence = |flat: &Self| {
            let tokens =
                flat.spans.iter().flat_map(|&span| tree.tokens(span).iter().copied()).collect();
            let views = flat.generations.iter().filter_map(|&id| tree.view(id));
            Sequence::causal(tokens, views.flat_map(|view| flat.terms(&view)).collect())
        };
        let identities = |flat: &Self| {
            let tokens = |span: &Span| {
                let segment = span.segment.0;
                (span.start..span.end).map(move |offset| Identity { segment, offset })
            };
            flat.spans.iter().flat_map(tokens).collect()
        };
        Ok(Layout {
            kind,
            sequences: threads.iter().map(sequence).collect::<Result<_, _>>()?,
            identities: threads.iter().map(identities).collect(),
            parents: None,
        })
    }
}

/// The last view of each thread.
pub(crate) fn compressed(tree: &BranchTree) -> Vec<Flat> {
    let flatten = |generations: Vec<GenerationId>| {
        let mut flat = Flat::default();
        if let Some(view) = generations.last().and_then(|&id| tree.view(id)) {
            view.context_spans()
                .into_iter()
                .chain(view.output_spans())
                .for_each(|span| flat.push(span));
        }
        Flat { generations, ..flat }
    };
    threads(tree).into_values().map(flatten).collect()
}

/// The views that `compressed` lays out.
pub(crate) fn last_views(tree: &BranchTree) -> Vec<View<'_>> {
    let last = |generations: Vec<GenerationId>| tree.view(*generations.last()?);
    threads(tree).into_values().filter_map(last).collect()
}

/// Everything that was ever live in each thread, in order of first appearance.
pub(crate) fn full(tree: &BranchTree) -> Vec<Flat> {
    let flatten = |generations: Vec<GenerationId>| {
        let mut flat = Flat::default();
        let mut seen = vec![false; tree.pieces().len()];
        for view in generations.iter().filter_map(|&id| tree.view(id)) {
            let mut unseen = Vec::new();
            let mut piece = view.tail();
            while let Some(id) = piece.filter(|id| !std::mem::replace(&mut seen[id.index()], true))
            {
                unseen.push(tree.pieces()[id.index()].span);
                piece = tree.pieces()[id.index()].parent;
            }
            unseen.into_iter().rev().chain(view.output_spans()).for_each(|span| flat.push(span));
        }
        Flat { generations, ..flat }
    };
    threads(tree).into_values().map(flatten).collect()
}

/// The generations of each thread, threads in order of their first generation.
fn threads(tree: &BranchTree) -> IndexMap<(&str, &str), Vec<GenerationId>> {
    let mut threads: IndexMap<(&str, &str), Vec<GenerationId>> = IndexMap::new();
    for generation in tree.generations() {
        threads.entry((&generation.rollout, &generation.thread)).or_default().push(generation.id);
    }
    threads
}

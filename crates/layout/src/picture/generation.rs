//! What of a picture comes from the generations: where they sampled, and where their views begin.
use indexmap::IndexMap;
use pleach_tree::BranchTree;
use rustc_hash::FxHashMap;

use super::subject::Chosen;
use crate::layouts::{Layout, LayoutKind, Layouts};
use crate::trie::NodeId;
use crate::{Sequence, naive};

/// Consecutive sampled tokens of the same generations.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The first generation that sampled them.
    pub(super) generation: u32,
    /// How many generations sampled them.
    pub(super) sharers: usize,
}

/// Where a thread, or a sequence, begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Start {
    pub(super) row: usize,
    pub(super) label: String,
}

/// The sampled tokens that loss terms predict.
pub(super) fn bars(layout: &Layout, chosen: &Chosen) -> Vec<Bar> {
    let mut sampled: Vec<(usize, u32)> = Vec::new();
    for (at, start) in chosen.iter() {
        let sequence = &layout.sequences[at];
        let target = targets(layout, sequence);
        sampled.extend(sequence.terms.iter().filter_map(|term| {
            let row = target(term.source as usize, term.target)?;
            Some((start + row, term.generation))
        }));
    }
    sampled.sort_unstable();
    sampled.dedup();
    let mut bars: Vec<Bar> = Vec::new();
    let mut before: &[(usize, u32)] = &[];
    for same in sampled.chunk_by(|a, b| a.0 == b.0) {
        let row = same[0].0;
        let continues = before.iter().map(|hit| hit.1).eq(same.iter().map(|hit| hit.1));
        match bars.last_mut().filter(|bar| bar.end == row && continues) {
            Some(bar) => bar.end = row + 1,
            None => bars.push(Bar {
                start: row,
                end: row + 1,
                generation: same[0].1,
                sharers: same.len(),
            }),
        }
        before = same;
    }
    bars
}

/// Where the token stands that a source predicts.
fn targets<'l>(
    layout: &'l Layout,
    sequence: &'l Sequence,
) -> impl Fn(usize, u32) -> Option<usize> + 'l {
    let mut later: FxHashMap<(i32, u32), usize> = FxHashMap::default();
    for (token, &parent) in layout.parents.iter().flatten().enumerate() {
        if usize::try_from(parent).is_ok_and(|parent| parent + 1 != token) {
            later.insert((parent, sequence.tokens[token]), token);
        }
    }
    move |source, target| {
        let next = source + 1;
        let follows = layout.parents.as_ref().is_none_or(|parents| {
            parents.get(next).is_some_and(|&parent| usize::try_from(parent) == Ok(source))
                && sequence.tokens[next] == target
        });
        if follows {
            Some(next)
        } else {
            later.get(&(i32::try_from(source).ok()?, target)).copied()
        }
    }
}

/// For each generation in file order, the first row that its view brings into the picture.
pub(super) fn begins(
    layouts: &Layouts<'_>,
    layout: &Layout,
    chosen: &Chosen,
) -> Vec<Option<usize>> {
    match layout.kind {
        LayoutKind::Packed if layout.parents.is_some() => of_trie(layouts, chosen),
        LayoutKind::Full => of_full(layouts.tree(), chosen),
        LayoutKind::Packed | LayoutKind::Segments | LayoutKind::Compressed => {
            of_terms(layouts.tree(), layout, chosen)
        }
    }
}

fn of_trie(layouts: &Layouts<'_>, chosen: &Chosen) -> Vec<Option<usize>> {
    let (forest, place) = (layouts.forest(), super::trie::places(layouts));
    let mut seen = 0;
    let row = |node: NodeId| {
        Some(chosen.start(0)? + place[node.index()] as usize).filter(|_| node != NodeId::ROOT)
    };
    let begin = |output: &crate::forest::Output| {
        // Nodes are numbered as the views make them, so those behind `seen` are this view's own.
        let own = |&node: &NodeId| node.index() > seen;
        let first = std::iter::successors(Some(output.end()), |&node| forest.trie.parent(node))
            .take_while(own)
            .last();
        seen = seen.max(output.end().index());
        row(first.unwrap_or(output.end()))
    };
    forest.outputs.iter().map(begin).collect()
}

fn of_full(tree: &BranchTree, chosen: &Chosen) -> Vec<Option<usize>> {
    let mut begins: IndexMap<u32, Option<usize>> =
        tree.generations().map(|generation| (generation.id.0, None)).collect();
    let mut seen = vec![usize::MAX; tree.pieces().len()];
    for (at, flat) in naive::full(tree).iter().enumerate() {
        let Some(start) = chosen.start(at) else { continue };
        let mut placed = 0;
        for view in flat.generations.iter().filter_map(|&id| tree.view(id)) {
            let mut spans: Vec<_> = view.output_spans().collect();
            let mut piece = view.tail();
            while let Some(id) =
                piece.filter(|id| std::mem::replace(&mut seen[id.index()], at) != at)
            {
                spans.push(tree.pieces()[id.index()].span);
                piece = tree.pieces()[id.index()].parent;
            }
            let ends = spans
                .iter()
                .filter(|span| !span.is_empty())
                .filter_map(|span| flat.place(span.segment, span.end - 1));
            let last = ends.max().map_or(placed, |last| last as usize + 1);
            begins.insert(view.generation().id.0, Some(start + placed));
            placed = placed.max(last);
        }
    }
    begins.into_values().collect()
}

fn of_terms(tree: &BranchTree, layout: &Layout, chosen: &Chosen) -> Vec<Option<usize>> {
    let mut first: FxHashMap<u32, usize> = FxHashMap::default();
    for (at, start) in chosen.iter() {
        for term in &layout.sequences[at].terms {
            first.entry(term.generation).or_insert(start + term.source as usize + 1);
        }
    }
    tree.generations().map(|generation| first.get(&generation.id.0).copied()).collect()
}

/// Where threads begin, where there are several; where sequences begin, where a layout has several.
pub(super) fn starts(
    tree: &BranchTree,
    layout: &Layout,
    chosen: &Chosen,
    begins: &[Option<usize>],
) -> Vec<Start> {
    let mut threads: IndexMap<(&str, &str), Option<usize>> = IndexMap::new();
    for (generation, begin) in tree.generations().zip(begins) {
        threads.entry((&generation.rollout, &generation.thread)).or_insert(*begin);
    }
    if threads.len() < 2 && layout.sequences.len() < 2 {
        return Vec::new();
    }
    let name = |(rollout, thread): (&str, &str)| match thread {
        "main" => format!("rollout {rollout}"),
        thread if thread == rollout => format!("rollout {rollout}"),
        thread => format!("rollout {rollout}, {thread}"),
    };
    match layout.kind {
        LayoutKind::Packed => {
            let start = |(thread, row): ((&str, &str), Option<usize>)| {
                Some(Start { row: row?, label: name(thread) })
            };
            threads.into_iter().filter_map(start).collect()
        }
        LayoutKind::Segments => {
            let start = |(at, row): (usize, usize)| {
                let last = layout.sequences[at].terms.last();
                let thread = last
                    .and_then(|term| tree.generation(pleach_tree::GenerationId(term.generation)));
                let thread = thread.map_or_else(String::new, |thread| {
                    format!(": {}", name((&thread.rollout, &thread.thread)))
                });
                Start { row, label: format!("sequence {at}{thread}") }
            };
            chosen.iter().map(start).collect()
        }
        LayoutKind::Compressed | LayoutKind::Full => {
            let start = |(at, row): (usize, usize)| {
                Some(Start { row, label: name(*threads.get_index(at)?.0) })
            };
            chosen.iter().filter_map(start).collect()
        }
    }
}

//! What of a picture comes from the generations: where they sampled, and where their views begin.
use indexmap::IndexMap;
use pleach_layout::{Layout, LayoutKind, Layouts, Sequence};
use pleach_tree::{BranchTree, GenerationId};
use rustc_hash::FxHashMap;

use crate::subject::Chosen;

/// Consecutive sampled tokens of the same generations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The first generation that sampled them.
    pub(crate) generation: u32,
    /// How many generations sampled them.
    pub(crate) sharers: usize,
}

/// Where a thread, or a sequence, begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Start {
    pub(crate) row: usize,
    pub(crate) label: String,
}

/// The sampled tokens that loss terms predict.
pub(crate) fn bars(layout: &Layout, chosen: &Chosen) -> Vec<Bar> {
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
pub(crate) fn begins(
    layouts: &Layouts<'_>,
    layout: &Layout,
    chosen: &Chosen,
) -> Vec<Option<usize>> {
    let places = layouts.generation_places(layout).into_iter();
    let rows: FxHashMap<GenerationId, usize> = places
        .filter_map(|place| Some((place.generation, chosen.start(place.sequence)? + place.row)))
        .collect();
    layouts.tree().generations().map(|generation| rows.get(&generation.id).copied()).collect()
}

/// Where threads begin, where there are several; where sequences begin, where a layout has several.
pub(crate) fn starts(
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
                let thread = last.and_then(|term| tree.generation(GenerationId(term.generation)));
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

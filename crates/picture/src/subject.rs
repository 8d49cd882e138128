//! What a picture shows, gathered from a layout and its tree.
use std::ops::Range;

use indexmap::IndexMap;
use pleach_layout::{
    Eviction, EvictionPlace, Identity, Layout, LayoutError, LayoutKind, Layouts, Sequence,
};
use pleach_tree::{BranchTree, CacheSemantics, GenerationId, SegmentId};
use rustc_hash::FxHashMap;

use crate::PictureError;
use crate::speaker::Speaker;

/// Consecutive tokens of one segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    pub(crate) segment: u32,
    /// Index in the segment of its first token.
    pub(crate) offset: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) speaker: Speaker,
}

/// The sequences that are drawn, one after the other, and what a picture says about them.
#[derive(Debug)]
pub(crate) struct Subject<'t> {
    pub(crate) tree: &'t BranchTree,
    pub(crate) kind: LayoutKind,
    pub(crate) tokens: Vec<u32>,
    pub(crate) ends: Vec<i32>,
    pub(crate) pairs: u64,
    pub(crate) runs: Vec<Run>,
    /// First token of every tree, tape or sequence.
    pub(crate) roots: Vec<usize>,
    pub(crate) branches: Vec<Branch>,
    /// Token that predicts and token id that it predicts, by place, each pair once.
    pub(crate) predictions: Vec<(usize, u32)>,
    /// Loss terms.
    pub(crate) terms: usize,
    pub(crate) bars: Vec<Bar>,
    pub(crate) starts: Vec<Start>,
    pub(crate) evictions: Vec<Mark>,
}

/// A token at which several branches of the trie go on, and where those after the first stand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Branch {
    pub(crate) from: usize,
    /// First tokens of the later branches, in order.
    pub(crate) to: Vec<usize>,
    /// Branchings that stand one inside the other under this one, itself counted.
    pub(crate) height: usize,
}

impl Branch {
    /// First token of its last branch.
    pub(crate) fn last(&self) -> usize {
        self.to.last().copied().unwrap_or(self.from)
    }
}

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

/// An eviction in the picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
    pub(crate) eviction: Eviction,
    /// The rows that live after it, or that stand behind the hole it left.
    pub(crate) rows: Range<usize>,
    /// The keys that left, where they stand in the picture.
    pub(crate) keys: Vec<Range<usize>>,
}

/// Which sequences are drawn and where each starts.
#[derive(Debug)]
pub(crate) struct Chosen {
    starts: Vec<Option<usize>>,
    pub(crate) len: usize,
}

impl Chosen {
    fn new(layout: &Layout, one: Option<usize>) -> Result<Self, PictureError> {
        let sequences = layout.sequences.len();
        if let Some(index) = one.filter(|&index| index >= sequences) {
            return Err(PictureError::NoSequence { index, sequences });
        }
        let mut len = 0;
        let mut starts = vec![None; sequences];
        for (at, sequence) in layout.sequences.iter().enumerate() {
            if one.is_none_or(|one| one == at) {
                starts[at] = Some(len);
                len += sequence.len();
            }
        }
        index(len)?;
        Ok(Self { starts, len })
    }

    /// Where the first token of a sequence stands in the picture.
    pub(crate) fn start(&self, sequence: usize) -> Option<usize> {
        self.starts.get(sequence).copied().flatten()
    }

    /// The sequences in order, each with its start.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.starts.iter().enumerate().filter_map(|(at, start)| Some((at, (*start)?)))
    }
}

impl<'t> Subject<'t> {
    pub(crate) fn new(
        layouts: &Layouts<'t>,
        layout: &Layout,
        one: Option<usize>,
    ) -> Result<Self, PictureError> {
        let tree = layouts.tree();
        let chosen = Chosen::new(layout, one)?;
        let mut subject = Self {
            tree,
            kind: layout.kind,
            tokens: Vec::with_capacity(chosen.len),
            ends: Vec::with_capacity(chosen.len),
            pairs: 0,
            runs: Vec::new(),
            roots: Vec::new(),
            branches: branches(layout, &chosen),
            predictions: Vec::new(),
            terms: 0,
            bars: Vec::new(),
            starts: Vec::new(),
            evictions: Vec::new(),
        };
        for (at, start) in chosen.iter() {
            let sequence = &layout.sequences[at];
            let shift = index(start)?;
            subject.pairs += sequence.pairs();
            subject.terms += sequence.terms.len();
            subject.tokens.extend_from_slice(&sequence.tokens);
            subject.ends.extend(sequence.ends.iter().map(|end| end + shift));
            subject.predictions.extend(
                sequence.terms.iter().map(|term| (start + term.source as usize, term.target)),
            );
            let roots =
                sequence.positions.iter().enumerate().filter(|(_, position)| **position == 0);
            subject.roots.extend(roots.map(|(token, _)| start + token));
            runs(tree, start, &layout.identities[at], &mut subject.runs);
        }
        subject.predictions.sort_unstable();
        subject.predictions.dedup();
        subject.bars = bars(layout, &chosen);
        let begins = begins(layouts, layout, &chosen);
        subject.starts = starts(tree, layout, &chosen, &begins);
        subject.evictions = marks(layouts, layout, &chosen);
        Ok(subject)
    }

    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether every token stands once and dies where it is evicted.
    pub(crate) fn is_tape(&self) -> bool {
        self.kind == LayoutKind::Packed && self.tree.header().cache == CacheSemantics::KvEvict
    }

    /// Who wrote each token.
    pub(crate) fn speakers(&self) -> Vec<Speaker> {
        self.runs
            .iter()
            .flat_map(|run| std::iter::repeat_n(run.speaker, run.end - run.start))
            .collect()
    }
}

/// `count` as the index of a token.
fn index(count: usize) -> Result<i32, LayoutError> {
    i32::try_from(count).map_err(|_| LayoutError::TooLong { tokens: count })
}

fn runs(tree: &BranchTree, start: usize, identities: &[Identity], runs: &mut Vec<Run>) {
    let follows = |a: &Identity, b: &Identity| a.segment == b.segment && a.offset + 1 == b.offset;
    let mut at = start;
    for same in identities.chunk_by(follows) {
        let Identity { segment, offset } = same[0];
        let speaker = tree.segment(SegmentId(segment)).map_or(Speaker::Harness, Speaker::of);
        runs.push(Run { segment, offset, start: at, end: at + same.len(), speaker });
        at += same.len();
    }
}

/// Where the branches of a packed trie attach, by token. In depth-first order these brackets nest
/// and never cross.
fn branches(layout: &Layout, chosen: &Chosen) -> Vec<Branch> {
    let (Some(parents), Some(start)) = (&layout.parents, chosen.start(0)) else {
        return Vec::new();
    };
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (token, &parent) in parents.iter().enumerate() {
        if let Ok(parent) = usize::try_from(parent)
            && parent + 1 != token
        {
            pairs.push((start + parent, start + token));
        }
    }
    pairs.sort_unstable();
    let mut branches: Vec<Branch> = pairs
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| Branch {
            from: same[0].0,
            to: same.iter().map(|pair| pair.1).collect(),
            height: 1,
        })
        .collect();
    let mut open: Vec<usize> = Vec::new();
    let close = |branches: &mut Vec<Branch>, open: &mut Vec<usize>| {
        if let Some(inner) = open.pop()
            && let Some(&outer) = open.last()
        {
            branches[outer].height = branches[outer].height.max(branches[inner].height + 1);
        }
    };
    for at in 0..branches.len() {
        while open.last().is_some_and(|&last| branches[last].last() <= branches[at].from) {
            close(&mut branches, &mut open);
        }
        open.push(at);
    }
    while !open.is_empty() {
        close(&mut branches, &mut open);
    }
    branches
}

/// The sampled tokens that loss terms predict.
fn bars(layout: &Layout, chosen: &Chosen) -> Vec<Bar> {
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
fn begins(layouts: &Layouts<'_>, layout: &Layout, chosen: &Chosen) -> Vec<Option<usize>> {
    let places = layouts.generation_places(layout).into_iter();
    let rows: FxHashMap<GenerationId, usize> = places
        .filter_map(|place| Some((place.generation, chosen.start(place.sequence)? + place.row)))
        .collect();
    layouts.tree().generations().map(|generation| rows.get(&generation.id).copied()).collect()
}

/// Where threads begin, where there are several; where sequences begin, where a layout has several.
fn starts(
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

/// The evictions that some generation lives under, by row.
fn marks(layouts: &Layouts<'_>, layout: &Layout, chosen: &Chosen) -> Vec<Mark> {
    let evictions: FxHashMap<u32, Eviction> =
        layouts.evictions().into_iter().map(|eviction| (eviction.context, eviction)).collect();
    let mark = |place: EvictionPlace| {
        let start = chosen.start(place.sequence)?;
        let shifted = |range: Range<usize>| start + range.start..start + range.end;
        Some(Mark {
            eviction: evictions.get(&place.context.0)?.clone(),
            rows: shifted(place.rows),
            keys: place.keys.into_iter().map(shifted).collect(),
        })
    };
    let mut marks: Vec<Mark> =
        layouts.eviction_places(layout).into_iter().filter_map(mark).collect();
    marks.sort_by_key(|mark| (mark.rows.start, mark.eviction.context));
    marks
}

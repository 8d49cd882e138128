//! What a picture shows, gathered from a layout and its tree.
use pleach_tree::{BranchTree, CacheSemantics, SegmentId};

use super::branches::{self, Branch};
use super::eviction::{self, Mark};
use super::generation::{self, Bar, Start};
use super::speaker::Speaker;
use crate::sequence::index;
use crate::{Identity, Layout, LayoutError, LayoutKind, Layouts};

/// Consecutive tokens of one segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Run {
    pub(super) segment: u32,
    /// Index in the segment of its first token.
    pub(super) offset: u32,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) speaker: Speaker,
}

/// The sequences that are drawn, one after the other, and what is told about them.
#[derive(Debug)]
pub(super) struct Subject<'t> {
    pub(super) tree: &'t BranchTree,
    pub(super) kind: LayoutKind,
    pub(super) tokens: Vec<u32>,
    pub(super) ends: Vec<i32>,
    pub(super) pairs: u64,
    pub(super) runs: Vec<Run>,
    /// First token of every tree, tape or sequence.
    pub(super) roots: Vec<usize>,
    pub(super) branches: Vec<Branch>,
    /// Token that predicts and token id that it predicts, by place, each pair once.
    pub(super) predictions: Vec<(usize, u32)>,
    /// Loss terms.
    pub(super) terms: usize,
    pub(super) bars: Vec<Bar>,
    pub(super) starts: Vec<Start>,
    pub(super) evictions: Vec<Mark>,
}

/// Which sequences are drawn and where each starts.
#[derive(Debug)]
pub(super) struct Chosen {
    starts: Vec<Option<usize>>,
    pub(super) len: usize,
}

impl Chosen {
    fn new(layout: &Layout, one: Option<usize>) -> Result<Self, LayoutError> {
        let sequences = layout.sequences.len();
        if let Some(index) = one.filter(|&index| index >= sequences) {
            return Err(LayoutError::NoSequence { index, sequences });
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
    pub(super) fn start(&self, sequence: usize) -> Option<usize> {
        self.starts.get(sequence).copied().flatten()
    }

    /// The sequences in order, each with its start.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.starts.iter().enumerate().filter_map(|(at, start)| Some((at, (*start)?)))
    }
}

impl<'t> Subject<'t> {
    pub(super) fn new(
        layouts: &Layouts<'t>,
        layout: &Layout,
        one: Option<usize>,
    ) -> Result<Self, LayoutError> {
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
            branches: branches::find(layout, &chosen),
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
        subject.bars = generation::bars(layout, &chosen);
        let begins = generation::begins(layouts, layout, &chosen);
        subject.starts = generation::starts(tree, layout, &chosen, &begins);
        subject.evictions = eviction::marks(layouts, layout, &chosen, &subject, &begins);
        Ok(subject)
    }

    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether every token stands once and dies where it is evicted.
    pub(super) fn is_tape(&self) -> bool {
        self.kind == LayoutKind::Packed && self.tree.header().cache == CacheSemantics::KvEvict
    }

    /// The end of the tree, tape or sequence that a token is in.
    pub(super) fn root_end(&self, token: usize) -> usize {
        let next = self.roots.partition_point(|&root| root <= token);
        self.roots.get(next).copied().unwrap_or(self.len())
    }

    /// The first token of the tree, tape or sequence that a token is in.
    pub(super) fn root_start(&self, token: usize) -> usize {
        let next = self.roots.partition_point(|&root| root <= token);
        next.checked_sub(1).map_or(0, |root| self.roots[root])
    }

    /// Who wrote each token.
    pub(super) fn speakers(&self) -> Vec<Speaker> {
        self.runs
            .iter()
            .flat_map(|run| std::iter::repeat_n(run.speaker, run.end - run.start))
            .collect()
    }
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

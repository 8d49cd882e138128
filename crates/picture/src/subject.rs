//! What a picture shows, gathered from a layout and its tree.
use pleach_layout::{Identity, Layout, LayoutError, LayoutKind, Layouts};
use pleach_tree::{BranchTree, CacheSemantics, SegmentId};

use crate::PictureError;
use crate::branches::{self, Branch};
use crate::eviction::{self, Mark};
use crate::generation::{self, Bar, Start};
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

/// The sequences that are drawn, one after the other, and what is told about them.
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
        subject.evictions = eviction::marks(layouts, layout, &chosen);
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

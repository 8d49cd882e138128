use pleach_tree::{BranchTree, CacheSemantics, GenerationId, Span};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::flattened::{self, Flat};
use crate::layouts::{LayoutKind, Layouts};
use crate::trie::NodeId;
use crate::{LayoutError, Term, TermId};

/// How far the prefix of one loss term in a flattened layout is from the live view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Conditioning {
    /// Id of the generation.
    pub generation: u32,
    /// Index of the target in the generation's output.
    pub offset: u32,
    /// Tokens of the live view that are not in the layout's prefix.
    pub missing: u32,
    /// Tokens of the layout's prefix that are not in the live view.
    pub leaked: u32,
}

/// The conditioning of a whole layout in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ConditioningSummary {
    /// Number of terms.
    pub terms: usize,
    /// Number of terms whose prefix differs from the live view.
    pub diverging: usize,
    /// Mean number of missing tokens per term.
    pub mean_missing: f64,
    /// Largest number of missing tokens.
    pub max_missing: u32,
    /// Mean number of leaked tokens per term.
    pub mean_leaked: f64,
    /// Largest number of leaked tokens.
    pub max_leaked: u32,
}

impl ConditioningSummary {
    /// The summary of the terms of both.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let terms = self.terms + other.terms;
        let mean = |a: f64, b: f64| match terms {
            0 => 0.0,
            terms => (a * self.terms as f64 + b * other.terms as f64) / terms as f64,
        };
        Self {
            terms,
            diverging: self.diverging + other.diverging,
            mean_missing: mean(self.mean_missing, other.mean_missing),
            max_missing: self.max_missing.max(other.max_missing),
            mean_leaked: mean(self.mean_leaked, other.mean_leaked),
            max_leaked: self.max_leaked.max(other.max_leaked),
        }
    }

    /// Sums up the terms of a layout.
    pub fn of(terms: &[Conditioning]) -> Self {
        let mean = |of: fn(&Conditioning) -> u32| match terms.len() {
            0 => 0.0,
            count => terms.iter().map(|term| f64::from(of(term))).sum::<f64>() / count as f64,
        };
        let max = |of: fn(&Conditioning) -> u32| terms.iter().map(of).max().unwrap_or(0);
        Self {
            terms: terms.len(),
            diverging: terms.iter().filter(|term| term.missing + term.leaked > 0).count(),
            mean_missing: mean(|term| term.missing),
            max_missing: max(|term| term.missing),
            mean_leaked: mean(|term| term.leaked),
            max_leaked: max(|term| term.leaked),
        }
    }
}

impl Layouts<'_> {
    /// Missing and leaked conditioning of every term of a layout, in the order of its terms; zero
    /// for the exact layouts.
    ///
    /// Model-free: it compares token identities and not their values.
    ///
    /// ```
    /// # use pleach_layout::{ConditioningSummary, LayoutKind, Layouts};
    /// # use pleach_tree::{BranchTree, ReadOptions};
    /// # let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
    /// # {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
    /// # {"t":"append","context":0,"from":null,"segments":[0]}
    /// # {"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}
    /// # {"t":"generation","id":0,"context":0,"output":[1]}
    /// # {"t":"append","context":1,"from":0,"segments":[1]}
    /// # {"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,2]}]}
    /// # {"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[10]}
    /// # {"t":"generation","id":1,"context":2,"output":[2]}
    /// # "#;
    /// # let (tree, _) = BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT)?;
    /// let layouts = Layouts::new(&tree)?;
    /// // `compressed` scores 8 and 9 without the evicted token, `full` scores 10 with it.
    /// let summary = |kind| ConditioningSummary::of(&layouts.conditioning(kind));
    /// let (compressed, full) = (summary(LayoutKind::Compressed), summary(LayoutKind::Full));
    /// assert_eq!((compressed.diverging, compressed.max_missing, compressed.max_leaked), (2, 1, 0));
    /// assert_eq!((full.diverging, full.max_missing, full.max_leaked), (1, 0, 1));
    /// assert_eq!(summary(LayoutKind::Packed).diverging, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn conditioning(&self, kind: LayoutKind) -> Vec<Conditioning> {
        let threads = match kind {
            LayoutKind::Compressed => flattened::compressed(self.tree()),
            LayoutKind::Full => flattened::full(self.tree()),
            LayoutKind::Packed | LayoutKind::Segments => return self.exact(),
        };
        let mut terms = Vec::new();
        for flat in &threads {
            for &generation in &flat.generations {
                terms.extend(of_generation(self.tree(), flat, generation));
            }
        }
        terms
    }

    fn exact(&self) -> Vec<Conditioning> {
        let outputs = self.tree().views().flat_map(|view| {
            let (generation, before) = (view.generation().id.0, view.context().tokens());
            let has_term = move |token: &pleach_tree::OutputToken| {
                token.weight.is_some() && before + token.offset as usize > 0
            };
            view.output().filter(has_term).map(move |token| (generation, token.offset))
        });
        outputs
            .map(|(generation, offset)| Conditioning { generation, offset, missing: 0, leaked: 0 })
            .collect()
    }
}

fn of_generation(tree: &BranchTree, flat: &Flat, generation: GenerationId) -> Vec<Conditioning> {
    let Some(view) = tree.view(generation) else { return Vec::new() };
    let terms = flat.terms(&view);
    if terms.is_empty() {
        return Vec::new();
    }
    let live = Live::new(flat, view.context_spans(), view.output_spans());
    let context = view.context().tokens() as u32;
    let of_term = |term: &Term| {
        let common = live.before(term.source + 1, term.offset);
        let (live, prefix) = (context + term.offset, term.source + 1);
        Conditioning {
            generation: term.generation,
            offset: term.offset,
            missing: live - common,
            leaked: prefix - common,
        }
    };
    terms.iter().map(of_term).collect()
}

/// A live view seen from a flattened layout: which of the layout's places it holds.
struct Live {
    /// Disjoint place ranges of the context's tokens, sorted, each with the number of tokens before
    /// it.
    context: Vec<(u32, u32, u32)>,
    /// The output's runs: index in the output, place, length.
    output: Vec<(u32, u32, u32)>,
}

impl Live {
    fn new(flat: &Flat, context: Vec<Span>, output: impl Iterator<Item = Span>) -> Self {
        let mut ranges: Vec<(u32, u32, u32)> = context
            .into_iter()
            .flat_map(|span| runs(flat, span))
            .map(|(_, at, len)| (at, at + len, 0))
            .collect();
        ranges.sort_unstable();
        let mut before = 0;
        for range in &mut ranges {
            range.2 = before;
            before += range.1 - range.0;
        }
        let mut first = 0;
        let mut sampled = Vec::new();
        for span in output {
            sampled.extend(
                runs(flat, span).into_iter().map(|(start, at, len)| (first + start, at, len)),
            );
            first += span.len() as u32;
        }
        Self { context: ranges, output: sampled }
    }

    /// Number of tokens of the context and of the first `offset` of the output that stand before
    /// `place`.
    fn before(&self, place: u32, offset: u32) -> u32 {
        let next = self.context.partition_point(|range| range.0 < place);
        let context = match next.checked_sub(1).map(|last| self.context[last]) {
            Some((start, end, before)) => before + end.min(place) - start,
            None => 0,
        };
        let of_run = |&(index, at, len): &(u32, u32, u32)| {
            len.min(offset.saturating_sub(index)).min(place.saturating_sub(at))
        };
        context + self.output.iter().map(of_run).sum::<u32>()
    }
}

/// The runs of a span that stand in the layout: index in the span, place, length.
fn runs(flat: &Flat, span: Span) -> Vec<(u32, u32, u32)> {
    let placed = flat.places.get(&span.segment).map(Vec::as_slice).unwrap_or_default();
    let overlap = |placed: &flattened::Placed| {
        let (start, end) = (placed.start.max(span.start), placed.end.min(span.end));
        (start < end).then(|| (start - span.start, placed.at + start - placed.start, end - start))
    };
    placed.iter().filter_map(overlap).collect()
}

impl Layouts<'_> {
    /// The loss terms whose compressed prefix differs, as token ids, from their live view, in the
    /// order of `compressed`'s terms.
    ///
    /// The last view of a thread is in the trie like any other, so two prefixes are equal if and
    /// only if they are one node.
    ///
    /// ```
    /// # use pleach_layout::{Layouts, TermId};
    /// # use pleach_tree::{BranchTree, ReadOptions};
    /// # let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
    /// # {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
    /// # {"t":"append","context":0,"from":null,"segments":[0]}
    /// # {"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}
    /// # {"t":"generation","id":0,"context":0,"output":[1]}
    /// # {"t":"append","context":1,"from":0,"segments":[1]}
    /// # {"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,2]}]}
    /// # {"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[10]}
    /// # {"t":"generation","id":1,"context":2,"output":[2]}
    /// # "#;
    /// # let (tree, _) = BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT)?;
    /// let diverging = Layouts::new(&tree)?.diverging()?;
    /// assert_eq!(diverging, [TermId::new(0, 0), TermId::new(0, 1)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::DivergingUnderKvEvict`]: there, equal token ids do not mean equal conditioning.
    pub fn diverging(&self) -> Result<Vec<TermId>, LayoutError> {
        let (tree, forest) = (self.tree(), self.forest());
        if tree.header().cache == CacheSemantics::KvEvict {
            return Err(LayoutError::DivergingUnderKvEvict);
        }
        let place: FxHashMap<GenerationId, usize> =
            tree.generations().map(|generation| generation.id).zip(0..).collect();
        let mut diverging = Vec::new();
        for flat in flattened::compressed(tree) {
            let last = flat.generations.last().map(|id| forest.outputs[place[id]].end());
            let path = last.map(|node| self.path(node)).unwrap_or_default();
            for view in flat.generations.iter().filter_map(|&id| tree.view(id)) {
                let output = &forest.outputs[place[&view.generation().id]];
                for term in flat.terms(&view) {
                    let live = match term.offset.checked_sub(1) {
                        None => Some(&output.before),
                        Some(before) => output.nodes.get(before as usize),
                    };
                    if path.get(term.source as usize) != live {
                        diverging.push(term.id());
                    }
                }
            }
        }
        Ok(diverging)
    }

    /// The nodes from the first token to `node`.
    fn path(&self, node: NodeId) -> Vec<NodeId> {
        let trie = &self.forest().trie;
        let mut path: Vec<NodeId> = std::iter::successors(Some(node), |&node| trie.parent(node))
            .take_while(|&node| node != NodeId::ROOT)
            .collect();
        path.reverse();
        path
    }
}

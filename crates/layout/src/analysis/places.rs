use std::ops::Range;

use pleach_tree::{
    BranchTree, CacheSemantics, Context, ContextId, GenerationId, Operation, PieceId, SegmentId,
    Span, View,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::flattened;
use crate::forest::Output;
use crate::layouts::{Layout, LayoutKind, Layouts};
use crate::trie::NodeId;
use crate::{Identity, Sequence, packed, segments};

/// Where a generation's view begins to add tokens to a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenerationPlace {
    /// The generation.
    pub generation: GenerationId,
    /// Index of the sequence that holds its output.
    pub sequence: usize,
    /// The first token that its view holds and no earlier generation's does. In `segments` and
    /// `compressed`, which lay out whole views, the first token of its output that has a term.
    pub row: usize,
}

/// Where an eviction shows in a layout: which rows live after it, and which keys left.
///
/// A layout that goes on showing those keys to those rows trains on stale context; one that never
/// held them has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionPlace {
    /// The context that the eviction made.
    pub context: ContextId,
    /// Index of the sequence.
    pub sequence: usize,
    /// The rows that live after it. In `segments` and `compressed`, which lay out whole views, what
    /// stands behind the hole, counted from the start of a segment that the hole only cuts.
    pub rows: Range<usize>,
    /// The keys that left, as ranges in order; none in `segments` and `compressed`, where the hole
    /// has closed.
    pub keys: Vec<Range<usize>>,
}

impl Layouts<'_> {
    /// Where each generation begins in a layout of this tree, in file order; a generation that has
    /// no token there is left out.
    ///
    /// ```
    /// # use pleach_layout::Layouts;
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
    /// # let (tree, _) = BranchTree::read(records.as_bytes(), "example", ReadOptions::STRICT)?;
    /// let layouts = Layouts::new(&tree)?;
    /// let packed = layouts.packed()?;
    /// assert_eq!(packed.sequences[0].tokens, [5, 6, 7, 8, 9, 7, 8, 9, 10]);
    /// let rows: Vec<usize> =
    ///     layouts.generation_places(&packed).iter().map(|place| place.row).collect();
    /// assert_eq!(rows, [0, 5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn generation_places(&self, layout: &Layout) -> Vec<GenerationPlace> {
        let tree = self.tree();
        match layout.kind {
            LayoutKind::Packed if tree.header().cache == CacheSemantics::Reprefill => {
                first_nodes(self)
            }
            LayoutKind::Full => first_appearances(tree),
            LayoutKind::Packed | LayoutKind::Segments | LayoutKind::Compressed => {
                first_terms(tree, layout)
            }
        }
    }

    /// Where each eviction shows in a layout of this tree, by sequence, row and context; one that
    /// no generation lives under is left out.
    ///
    /// ```
    /// # use pleach_layout::Layouts;
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
    /// # let (tree, _) = BranchTree::read(records.as_bytes(), "example", ReadOptions::STRICT)?;
    /// let layouts = Layouts::new(&tree)?;
    /// let packed = layouts.packed()?;
    /// assert_eq!(packed.sequences[0].tokens, [5, 6, 7, 8, 9, 7, 8, 9, 10]);
    /// let eviction = &layouts.eviction_places(&packed)[0];
    /// assert_eq!((&eviction.rows, &eviction.keys[..]), (&(5..9), &[1..2][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn eviction_places(&self, layout: &Layout) -> Vec<EvictionPlace> {
        let tree = self.tree();
        let begins = || -> FxHashMap<GenerationId, GenerationPlace> {
            let places = self.generation_places(layout).into_iter();
            places.map(|place| (place.generation, place)).collect()
        };
        let mut places = match layout.kind {
            LayoutKind::Packed => match (tree.header().cache, &layout.sequences[..]) {
                (CacheSemantics::Reprefill, [sequence, ..]) => on_trie(self, sequence, &begins()),
                (CacheSemantics::KvEvict, [sequence, ..]) => on_tape(self, layout, sequence),
                (_, []) => Vec::new(),
            },
            LayoutKind::Full => on_full(tree, layout, &begins()),
            LayoutKind::Segments => in_views(tree, layout, &segments::views(tree, self.forest())),
            LayoutKind::Compressed => in_views(tree, layout, &flattened::last_views(tree)),
        };
        places.sort_by_key(|place| (place.sequence, place.rows.start, place.context));
        places
    }
}

fn first_nodes(layouts: &Layouts<'_>) -> Vec<GenerationPlace> {
    let (tree, forest) = (layouts.tree(), layouts.forest());
    let place = packed::places(&forest.trie.depth_first());
    let mut walked = 0;
    let mut first = |output: &Output| {
        // Nodes are numbered as the views make them, so those behind `walked` are this view's own.
        let own = |&node: &NodeId| node.index() > walked;
        let first = std::iter::successors(Some(output.end()), |&node| forest.trie.parent(node))
            .take_while(own)
            .last();
        walked = walked.max(output.end().index());
        first.unwrap_or(output.end())
    };
    let generations = tree.generations().zip(&forest.outputs);
    generations
        .map(|(generation, output)| (generation.id, first(output)))
        .filter(|(_, node)| *node != NodeId::ROOT)
        .map(|(generation, node)| {
            let row = place[node.index()] as usize;
            GenerationPlace { generation, sequence: 0, row }
        })
        .collect()
}

fn first_appearances(tree: &BranchTree) -> Vec<GenerationPlace> {
    let mut rows: FxHashMap<GenerationId, (usize, usize)> = FxHashMap::default();
    let mut seen = vec![usize::MAX; tree.pieces().len()];
    for (sequence, flat) in flattened::full(tree).iter().enumerate() {
        let mut placed = 0;
        for view in flat.generations.iter().filter_map(|&id| tree.view(id)) {
            let mut spans: Vec<_> = view.output_spans().collect();
            let mut piece = view.tail();
            while let Some(id) =
                piece.filter(|id| std::mem::replace(&mut seen[id.index()], sequence) != sequence)
            {
                spans.push(tree.pieces()[id.index()].span);
                piece = tree.pieces()[id.index()].parent;
            }
            let last = spans
                .iter()
                .filter(|span| !span.is_empty())
                .filter_map(|span| flat.place(span.segment, span.end - 1))
                .max();
            rows.insert(view.generation().id, (sequence, placed));
            placed = placed.max(last.map_or(placed, |last| last as usize + 1));
        }
    }
    in_file_order(tree, &rows)
}

fn first_terms(tree: &BranchTree, layout: &Layout) -> Vec<GenerationPlace> {
    let mut rows: FxHashMap<GenerationId, (usize, usize)> = FxHashMap::default();
    for (at, sequence) in layout.sequences.iter().enumerate() {
        for term in &sequence.terms {
            let row = (at, term.source as usize + 1);
            rows.entry(GenerationId(term.generation)).or_insert(row);
        }
    }
    in_file_order(tree, &rows)
}

fn in_file_order(
    tree: &BranchTree,
    rows: &FxHashMap<GenerationId, (usize, usize)>,
) -> Vec<GenerationPlace> {
    let generations = tree.generations().map(|generation| generation.id);
    let place = |generation| {
        let &(sequence, row) = rows.get(&generation)?;
        Some(GenerationPlace { generation, sequence, row })
    };
    generations.filter_map(place).collect()
}

/// An eviction and the first generation after it.
struct Claim {
    context: ContextId,
    generation: GenerationId,
}

fn claims(tree: &BranchTree) -> Vec<Claim> {
    let mut seen = FxHashSet::default();
    let mut claims = Vec::new();
    for generation in tree.generations() {
        let line = std::iter::successors(Some(generation.context), |&id| tree.parent(id))
            .take_while(|&id| seen.insert(id));
        let mut evictions: Vec<ContextId> = line.filter(|&id| evicts(tree, id)).collect();
        evictions.reverse();
        let claim = |context| Claim { context, generation: generation.id };
        claims.extend(evictions.into_iter().map(claim));
    }
    claims
}

fn evicts(tree: &BranchTree, context: ContextId) -> bool {
    matches!(tree.operation(context), Some(Operation::Evict(_) | Operation::Replace(_)))
}

/// Keys as ranges in order.
fn ranges(mut keys: Vec<usize>) -> Vec<Range<usize>> {
    keys.sort_unstable();
    keys.dedup();
    keys.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[0] + run.len()).collect()
}

fn end(sequence: &Sequence, row: usize) -> usize {
    sequence.ends.get(row).and_then(|&end| usize::try_from(end).ok()).unwrap_or(row)
}

fn on_trie(
    layouts: &Layouts<'_>,
    sequence: &Sequence,
    begins: &FxHashMap<GenerationId, GenerationPlace>,
) -> Vec<EvictionPlace> {
    let (tree, trie) = (layouts.tree(), &layouts.forest().trie);
    let place = packed::places(&trie.depth_first());
    let (ends, sampled) = (piece_ends(layouts), sampled_ends(layouts));
    let of_claim = |claim: &Claim| {
        let row = begins.get(&claim.generation)?.row;
        let mut left: FxHashMap<SegmentId, Vec<Span>> = FxHashMap::default();
        for span in tree.removed(claim.context) {
            left.entry(span.segment).or_default().push(*span);
        }
        let mut keys = Vec::new();
        let before =
            tree.parent(claim.context).and_then(|id| tree.context(id)).and_then(Context::tail);
        for id in tree.path(before) {
            let span = tree.pieces()[id.index()].span;
            let Some(spans) = left.get(&span.segment) else { continue };
            let sampled =
                sampled.get(&span.segment).filter(|(len, _)| *len == span.end).map(|(_, end)| *end);
            let Some(mut node) = ends[id.index()].or(sampled) else { continue };
            for offset in (span.start..span.end).rev() {
                if spans.iter().any(|span| (span.start..span.end).contains(&offset)) {
                    keys.push(place[node.index()] as usize);
                }
                node = trie.parent(node).unwrap_or(NodeId::ROOT);
            }
        }
        let (context, rows) = (claim.context, row..end(sequence, row));
        Some(EvictionPlace { context, sequence: 0, rows, keys: ranges(keys) })
    };
    claims(tree).iter().filter_map(of_claim).collect()
}

/// The last node of each piece that some generation saw.
fn piece_ends(layouts: &Layouts<'_>) -> Vec<Option<NodeId>> {
    let (tree, forest) = (layouts.tree(), layouts.forest());
    let mut ends: Vec<Option<NodeId>> = vec![None; tree.pieces().len()];
    for (view, output) in tree.views().zip(&forest.outputs) {
        let (mut node, mut piece) = (output.before, view.tail());
        while let Some(id) = piece.filter(|id| ends[id.index()].is_none()) {
            ends[id.index()] = Some(node);
            for _ in 0..tree.pieces()[id.index()].span.len() {
                node = forest.trie.parent(node).unwrap_or(NodeId::ROOT);
            }
            piece = tree.pieces()[id.index()].parent;
        }
    }
    ends
}

/// The length and the last node of each sampled segment where its generation sampled it, for those
/// that no later view holds.
fn sampled_ends(layouts: &Layouts<'_>) -> FxHashMap<SegmentId, (u32, NodeId)> {
    let (tree, forest) = (layouts.tree(), layouts.forest());
    let mut ends = FxHashMap::default();
    for (view, output) in tree.views().zip(&forest.outputs) {
        let mut until = 0;
        for span in view.output_spans().filter(|span| !span.is_empty()) {
            until += span.len();
            ends.entry(span.segment).or_insert((span.end, output.nodes[until - 1]));
        }
    }
    ends
}

/// Consecutive tokens of one segment in a sequence.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Index in the segment of its first token.
    offset: u32,
    start: usize,
    end: usize,
}

/// Where the tokens of segments stand in a sequence, by segment.
#[derive(Debug, Default)]
struct Runs(FxHashMap<u32, Vec<Run>>);

impl Runs {
    fn new(identities: &[Identity]) -> Self {
        let follows =
            |a: &Identity, b: &Identity| a.segment == b.segment && a.offset + 1 == b.offset;
        let mut runs: FxHashMap<u32, Vec<Run>> = FxHashMap::default();
        let mut start = 0;
        for same in identities.chunk_by(follows) {
            let (Identity { segment, offset }, end) = (same[0], start + same.len());
            runs.entry(segment).or_default().push(Run { offset, start, end });
            start = end;
        }
        Self(runs)
    }

    /// The tokens of a span, each with its index in the segment.
    fn find(&self, span: Span) -> impl Iterator<Item = (usize, u32)> {
        let runs = self.0.get(&span.segment.0).into_iter().flatten();
        runs.flat_map(move |run| {
            (run.start..run.end)
                .zip(run.offset..)
                .filter(move |(_, offset)| (span.start..span.end).contains(offset))
        })
    }
}

fn on_tape(layouts: &Layouts<'_>, layout: &Layout, sequence: &Sequence) -> Vec<EvictionPlace> {
    let tree = layouts.tree();
    let runs = layout.identities.first().map(|all| Runs::new(all)).unwrap_or_default();
    let starts = sequence.positions.iter().zip(0..).filter(|(position, _)| **position == 0);
    let roots: Vec<usize> = starts.map(|(_, at)| at).collect();
    let root_end = |token: usize| {
        let next = roots.partition_point(|&root| root <= token);
        roots.get(next).copied().unwrap_or(sequence.len())
    };
    let mut gone = vec![false; sequence.len()];
    let mut of_claim = |claim: &Claim| {
        let mut keys = Vec::new();
        for &span in tree.removed(claim.context) {
            let mut fresh: FxHashMap<u32, usize> = FxHashMap::default();
            for (key, offset) in runs.find(span).filter(|&(key, _)| gone.get(key) == Some(&false)) {
                // A span that came back is processed again: the earliest copy that lives is the one
                // that leaves.
                fresh.entry(offset).or_insert(key);
            }
            keys.extend(fresh.into_values());
        }
        keys.iter().for_each(|&key| gone[key] = true);
        let row = keys.iter().map(|&key| end(sequence, key)).min()?;
        let (context, rows) = (claim.context, row..root_end(row.saturating_sub(1)));
        Some(EvictionPlace { context, sequence: 0, rows, keys: ranges(keys) })
    };
    claims(tree).iter().filter_map(&mut of_claim).collect()
}

fn on_full(
    tree: &BranchTree,
    layout: &Layout,
    begins: &FxHashMap<GenerationId, GenerationPlace>,
) -> Vec<EvictionPlace> {
    let runs: Vec<Runs> = layout.identities.iter().map(|all| Runs::new(all)).collect();
    let of_claim = |claim: &Claim| {
        let &GenerationPlace { sequence, row, .. } = begins.get(&claim.generation)?;
        let runs = runs.get(sequence)?;
        let spans = tree.removed(claim.context).iter();
        let keys = spans.flat_map(|&span| runs.find(span)).map(|(key, _)| key);
        let keys = ranges(keys.filter(|&key| key < row).collect());
        let rows = row..layout.sequences.get(sequence)?.len();
        Some(EvictionPlace { context: claim.context, sequence, rows, keys })
    };
    claims(tree).iter().filter_map(of_claim).collect()
}

/// The holes in each sequence that is one view.
fn in_views(tree: &BranchTree, layout: &Layout, views: &[View<'_>]) -> Vec<EvictionPlace> {
    let mut before: FxHashMap<ContextId, Option<PieceId>> = FxHashMap::default();
    let mut places = Vec::new();
    for (sequence, (view, laid_out)) in views.iter().zip(&layout.sequences).enumerate() {
        let mut ends: FxHashMap<PieceId, usize> = FxHashMap::default();
        let mut row = 0;
        for id in tree.path(view.tail()) {
            row += tree.pieces()[id.index()].span.len();
            ends.insert(id, row);
        }
        let line = std::iter::successors(Some(view.generation().context), |&id| tree.parent(id));
        for context in line.filter(|&id| evicts(tree, id)) {
            let mut piece = *before.entry(context).or_insert_with(|| before_hole(tree, context));
            while let Some(id) = piece.filter(|id| !ends.contains_key(id)) {
                piece = tree.pieces()[id.index()].parent;
            }
            let row = piece.and_then(|id| ends.get(&id).copied()).unwrap_or(0);
            let rows = row..laid_out.len();
            places.push(EvictionPlace { context, sequence, rows, keys: Vec::new() });
        }
    }
    places
}

/// The last piece that a context shares with the one it was made from.
fn before_hole(tree: &BranchTree, context: ContextId) -> Option<PieceId> {
    let parent = tree.parent(context).and_then(|id| tree.context(id))?;
    let kept: FxHashSet<PieceId> = tree.path(parent.tail()).into_iter().collect();
    let tail = tree.context(context)?.tail();
    std::iter::successors(tail, |id| tree.pieces()[id.index()].parent).find(|id| kept.contains(id))
}

//! Where evictions are seen in a picture.
use std::ops::Range;

use pleach_tree::{BranchTree, Context, ContextId, PieceId, SegmentId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use super::subject::{Chosen, Run, Subject};
use crate::account::{Eviction, eviction};
use crate::layouts::{Layout, LayoutKind, Layouts};
use crate::trie::NodeId;

/// An eviction in the picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    pub(super) eviction: Eviction,
    /// The first row that lives after it, or that stands behind the hole it left.
    pub(super) row: usize,
    /// The row at which what lives after it ends.
    pub(super) until: usize,
    /// The keys that left, where they stand in the picture.
    pub(super) keys: Vec<Range<usize>>,
}

/// An eviction and the first generation after it.
struct Claim {
    context: ContextId,
    generation: usize,
}

/// The evictions that some generation lives under, by row.
pub(super) fn marks(
    layouts: &Layouts<'_>,
    layout: &Layout,
    chosen: &Chosen,
    subject: &Subject<'_>,
    begins: &[Option<usize>],
) -> Vec<Mark> {
    let tree = layouts.tree();
    let claims = claims(tree);
    let mut marks = match layout.kind {
        LayoutKind::Packed if subject.is_tape() => of_tape(tree, subject, &claims),
        LayoutKind::Packed => of_trie(layouts, chosen, subject, &claims, begins),
        LayoutKind::Full => of_full(tree, subject, &claims, begins),
        LayoutKind::Segments => of_views(tree, chosen, subject, &super::trie::maximal(layouts)),
        LayoutKind::Compressed => of_views(tree, chosen, subject, &last_of_threads(tree)),
    };
    marks.sort_by_key(|mark| (mark.row, mark.eviction.context));
    marks
}

fn mark(
    tree: &BranchTree,
    context: ContextId,
    rows: Range<usize>,
    keys: Vec<usize>,
) -> Option<Mark> {
    let eviction = eviction(tree, tree.context(context)?)?;
    Some(Mark { eviction, row: rows.start, until: rows.end, keys: ranges(keys) })
}

fn ranges(mut keys: Vec<usize>) -> Vec<Range<usize>> {
    keys.sort_unstable();
    keys.dedup();
    keys.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[0] + run.len()).collect()
}

fn removed(tree: &BranchTree, context: ContextId) -> &[Span] {
    tree.removed(context)
}

fn evicts(tree: &BranchTree, context: ContextId) -> bool {
    tree.operation(context).is_some_and(|operation| {
        matches!(operation, pleach_tree::Operation::Evict(_) | pleach_tree::Operation::Replace(_))
    })
}

fn claims(tree: &BranchTree) -> Vec<Claim> {
    let mut seen = FxHashSet::default();
    let mut claims = Vec::new();
    for (at, generation) in tree.generations().enumerate() {
        let line = std::iter::successors(Some(generation.context), |&id| tree.parent(id))
            .take_while(|&id| seen.insert(id));
        let mut evictions: Vec<ContextId> = line.filter(|&id| evicts(tree, id)).collect();
        evictions.reverse();
        claims.extend(evictions.into_iter().map(|context| Claim { context, generation: at }));
    }
    claims
}

fn of_trie(
    layouts: &Layouts<'_>,
    chosen: &Chosen,
    subject: &Subject<'_>,
    claims: &[Claim],
    begins: &[Option<usize>],
) -> Vec<Mark> {
    let (tree, trie) = (layouts.tree(), &layouts.forest().trie);
    let Some(start) = chosen.start(0) else { return Vec::new() };
    let (place, ends, sampled) =
        (super::trie::places(layouts), piece_ends(layouts), sampled_ends(layouts));
    let of_claim = |claim: &Claim| {
        let row = begins[claim.generation]?;
        let mut left: FxHashMap<SegmentId, Vec<Span>> = FxHashMap::default();
        for span in removed(tree, claim.context) {
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
                    keys.push(start + place[node.index()] as usize);
                }
                node = trie.parent(node).unwrap_or(NodeId::ROOT);
            }
        }
        let until = usize::try_from(subject.ends[row]).unwrap_or(row);
        mark(tree, claim.context, row..until, keys)
    };
    claims.iter().filter_map(of_claim).collect()
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

/// Where the tokens of segments stand, by segment.
struct Places(FxHashMap<u32, Vec<Run>>);

impl Places {
    fn new(runs: &[Run]) -> Self {
        let mut places: FxHashMap<u32, Vec<Run>> = FxHashMap::default();
        for run in runs {
            places.entry(run.segment).or_default().push(*run);
        }
        Self(places)
    }

    /// The tokens of a span within `rows`.
    fn find(&self, span: Span, rows: Range<usize>) -> impl Iterator<Item = usize> {
        let runs = self.0.get(&span.segment.0).into_iter().flatten();
        runs.filter(move |run| run.start >= rows.start && run.end <= rows.end).flat_map(
            move |run| {
                let within = move |&at: &usize| {
                    (span.start..span.end).contains(&(run.offset + (at - run.start) as u32))
                };
                (run.start..run.end).filter(within)
            },
        )
    }
}

fn of_tape(tree: &BranchTree, subject: &Subject<'_>, claims: &[Claim]) -> Vec<Mark> {
    let places = Places::new(&subject.runs);
    let mut gone = vec![false; subject.len()];
    let of_claim = |claim: &Claim| {
        let mut keys = Vec::new();
        for &span in removed(tree, claim.context) {
            let mut fresh: FxHashMap<u32, usize> = FxHashMap::default();
            for key in places.find(span, 0..subject.len()).filter(|&key| !gone[key]) {
                let offset = offset_of(subject, key);
                // A span that came back is processed again: the earliest copy that lives is the one
                // that leaves.
                fresh.entry(offset).or_insert(key);
            }
            keys.extend(fresh.into_values());
        }
        keys.iter().for_each(|&key| gone[key] = true);
        let row = keys.iter().filter_map(|&key| usize::try_from(subject.ends[key]).ok()).min()?;
        mark(tree, claim.context, row..subject.root_end(row.saturating_sub(1)), keys)
    };
    claims.iter().filter_map(of_claim).collect()
}

fn offset_of(subject: &Subject<'_>, key: usize) -> u32 {
    let next = subject.runs.partition_point(|run| run.start <= key);
    subject.runs.get(next.saturating_sub(1)).map_or(0, |run| run.offset + (key - run.start) as u32)
}

fn of_full(
    tree: &BranchTree,
    subject: &Subject<'_>,
    claims: &[Claim],
    begins: &[Option<usize>],
) -> Vec<Mark> {
    let places = Places::new(&subject.runs);
    let of_claim = |claim: &Claim| {
        let row = begins[claim.generation]?;
        let inside = row.min(subject.len().saturating_sub(1));
        let (first, until) = (subject.root_start(inside), subject.root_end(inside));
        let keys = removed(tree, claim.context)
            .iter()
            .flat_map(|&span| places.find(span, first..row))
            .collect();
        mark(tree, claim.context, row..until, keys)
    };
    claims.iter().filter_map(of_claim).collect()
}

/// The holes in each sequence that is one view.
fn of_views(
    tree: &BranchTree,
    chosen: &Chosen,
    subject: &Subject<'_>,
    views: &[pleach_tree::View<'_>],
) -> Vec<Mark> {
    let mut before: FxHashMap<ContextId, Option<PieceId>> = FxHashMap::default();
    let mut marks = Vec::new();
    for (view, start) in
        views.iter().enumerate().filter_map(|(at, view)| Some((view, chosen.start(at)?)))
    {
        let mut ends: FxHashMap<PieceId, usize> = FxHashMap::default();
        let mut row = start;
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
            let row = piece.and_then(|id| ends.get(&id).copied()).unwrap_or(start);
            marks.extend(mark(tree, context, row..subject.root_end(start), Vec::new()));
        }
    }
    marks
}

/// The last piece that a context shares with the one it was made from.
fn before_hole(tree: &BranchTree, context: ContextId) -> Option<PieceId> {
    let parent = tree.parent(context).and_then(|id| tree.context(id))?;
    let kept: FxHashSet<PieceId> = tree.path(parent.tail()).into_iter().collect();
    let tail = tree.context(context)?.tail();
    std::iter::successors(tail, |id| tree.pieces()[id.index()].parent).find(|id| kept.contains(id))
}

fn last_of_threads(tree: &BranchTree) -> Vec<pleach_tree::View<'_>> {
    let mut threads: indexmap::IndexMap<(&str, &str), pleach_tree::GenerationId> =
        indexmap::IndexMap::new();
    for generation in tree.generations() {
        threads.insert((&generation.rollout, &generation.thread), generation.id);
    }
    threads.into_values().filter_map(|id| tree.view(id)).collect()
}

//! Cutting a rollout into more contexts, or its text into more segments, changes nothing of what is
//! trained: the same tokens, positions and ends, and the same terms behind the same prefixes.

use std::ops::Range;

use crate::drawn::{config, tree_of};
use pleach_layout::{LayoutKind, Layouts, Sequence};
use pleach_tests::{Drawn, Trees, trees};
use pleach_tree::{
    Append, ContextId, Evict, Evicted, Extra, LossRun, Place, Record, Segment, SegmentId,
};
use proptest::prelude::*;

/// An id that no record uses; the drawn ones stay below 1009.
const FRESH: u32 = 5000;

/// One `append` becomes two.
fn cut_append(records: &[Record], which: usize, at: usize) -> Vec<Record> {
    let appends: Vec<usize> =
        (0..records.len()).filter(|&index| matches!(records[index], Record::Append(_))).collect();
    let mut cut = records.to_vec();
    let Some(&index) = appends.get(which % appends.len().max(1)) else { return cut };
    if let Record::Append(append) = &records[index] {
        let (first, second) = append.segments.split_at(at % (append.segments.len() + 1));
        let middle = ContextId(FRESH);
        let half = |context, from, segments: &[SegmentId]| {
            Record::Append(Append {
                context,
                from,
                segments: segments.to_vec(),
                extra: Extra::new(),
            })
        };
        let halves = [half(middle, append.from, first), half(append.context, Some(middle), second)];
        cut.splice(index..=index, halves);
    }
    cut
}

/// What follows from one context follows from a copy of it.
fn insert_context(records: &[Record], which: usize) -> Vec<Record> {
    let made = |record: &Record| match record {
        Record::Append(append) => Some(append.context),
        Record::Evict(evict) => Some(evict.context),
        Record::Replace(replace) => Some(replace.context),
        Record::Fork(fork) => Some(fork.context),
        _ => None,
    };
    let contexts: Vec<(usize, ContextId)> = records
        .iter()
        .enumerate()
        .filter_map(|(index, record)| Some((index, made(record)?)))
        .collect();
    let mut cut = records.to_vec();
    let Some(&(index, context)) = contexts.get(which % contexts.len().max(1)) else { return cut };
    let copy = ContextId(FRESH);
    let rewire = |from: &mut ContextId| {
        if *from == context {
            *from = copy;
        }
    };
    for record in &mut cut[index + 1..] {
        match record {
            Record::Append(append) => append.from.as_mut().into_iter().for_each(rewire),
            Record::Evict(evict) => rewire(&mut evict.from),
            Record::Replace(replace) => rewire(&mut replace.from),
            Record::Fork(fork) => rewire(&mut fork.from),
            Record::Generation(generation) => rewire(&mut generation.context),
            _ => {}
        }
    }
    let append =
        Append { context: copy, from: Some(context), segments: Vec::new(), extra: Extra::new() };
    cut.insert(index + 1, Record::Append(append));
    cut
}

/// One segment becomes two, wherever it stands; `None` where another record counts its pieces.
fn cut_segment(records: &[Record], which: usize, at: usize) -> Option<Vec<Record>> {
    let segments: Vec<&Segment> = records
        .iter()
        .filter_map(|record| match record {
            Record::Segment(segment) => Some(segment),
            _ => None,
        })
        .collect();
    let segment = *segments.get(which % segments.len().max(1))?;
    let evictions = records.iter().filter_map(|record| match record {
        Record::Evict(evict) => Some(evict),
        _ => None,
    });
    if evictions.into_iter().any(|evict| counts_pieces(evict, segment.id)) {
        return None;
    }
    let at = at as u32 % (segment.extent() as u32 + 1);
    let (first, second) = (
        part(segment, segment.id, 0..at),
        part(segment, SegmentId(FRESH), at..segment.extent() as u32),
    );
    let both = |list: &mut Vec<SegmentId>| {
        let cut = list
            .iter()
            .flat_map(|&id| [Some(id), (id == segment.id).then_some(second.id)])
            .flatten()
            .collect();
        *list = cut;
    };
    let mut cut = Vec::new();
    for mut record in records.iter().cloned() {
        match &mut record {
            Record::Segment(found) if found.id == segment.id => {
                cut.push(Record::Segment(first.clone()));
                record = Record::Segment(second.clone());
            }
            Record::Append(append) => both(&mut append.segments),
            Record::Replace(replace) => both(&mut replace.segments),
            Record::Generation(generation) => both(&mut generation.output),
            Record::Evict(evict) => {
                let entries = evict.evicted.len();
                if let Some(replacement) = &mut evict.replacement {
                    if replacement.place == Place::InPlace
                        && (entries, replacement.segments.len()) != (1, 1)
                    {
                        replacement.place = Place::BeforeFirst;
                    }
                    both(&mut replacement.segments);
                }
                if evict.evicted.iter().any(|entry| entry.segment == segment.id) {
                    evict.evicted.push(Evicted::whole(second.id));
                }
            }
            _ => {}
        }
        cut.push(record);
    }
    Some(cut)
}

fn counts_pieces(evict: &Evict, segment: SegmentId) -> bool {
    let Some(replacement) = &evict.replacement else {
        return evict
            .evicted
            .iter()
            .any(|entry| entry.segment == segment && entry.tokens.is_some());
    };
    let entries = evict.evicted.len();
    let one_each =
        replacement.place == Place::InPlace && entries == replacement.segments.len() && entries > 1;
    let ranged =
        evict.evicted.iter().any(|entry| entry.segment == segment && entry.tokens.is_some());
    ranged || one_each || matches!(replacement.place, Place::Index(_))
}

fn part(segment: &Segment, id: SegmentId, Range { start, end }: Range<u32>) -> Segment {
    let range = start as usize..end as usize;
    let run = |run: &LossRun| LossRun {
        start: run.start.max(start).saturating_sub(start),
        end: run.end.min(end).saturating_sub(start),
        weight: run.weight,
    };
    let runs =
        |runs: &Vec<LossRun>| runs.iter().map(run).filter(|run| run.start < run.end).collect();
    Segment {
        id,
        tokens: segment.tokens.as_ref().map(|tokens| tokens[range.clone()].to_vec()),
        logprobs: segment.logprobs.as_ref().map(|logprobs| logprobs[range].to_vec()),
        loss: segment.loss.as_ref().map(runs),
        ..segment.clone()
    }
}

fn all(records: &[Record]) -> Vec<Vec<Sequence>> {
    let tree = tree_of(records);
    let layouts = Layouts::new(&tree).unwrap();
    LayoutKind::ALL.iter().filter_map(|&kind| Some(layouts.layout(kind).ok()?.sequences)).collect()
}

/// Prefix, target and weight bits of every term, sorted.
fn trained(sequence: &Sequence) -> Vec<(Vec<u32>, u32, u64)> {
    let seen = |row: i32| (0..=row).filter(move |&key| row < sequence.ends[key as usize]);
    let prefix = |row: u32| seen(row as i32).map(|key| sequence.tokens[key as usize]).collect();
    let mut terms: Vec<_> = sequence
        .terms
        .iter()
        .map(|term| (prefix(term.source), term.target, term.weight.to_bits()))
        .collect();
    terms.sort_unstable();
    terms
}

fn any_trees() -> impl Strategy<Value = Drawn> {
    prop_oneof![2 => trees(Trees::default()), 1 => trees(Trees::kv_evict())]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn more_contexts_change_no_layout(records in any_trees(), which in 0..200_usize, at in 0..5_usize, copy in any::<bool>()) {
        let cut = if copy { insert_context(&records, which) } else { cut_append(&records, which, at) };
        prop_assert_eq!(all(&records), all(&cut));
    }

    #[test]
    fn a_moved_segment_boundary_changes_no_layout(records in any_trees(), which in 0..200_usize, at in 0..6_usize) {
        let Some(cut) = cut_segment(&records, which, at) else { return Ok(()) };
        let (before, after) = (all(&records), all(&cut));
        prop_assert_eq!(trained(&before[0][0]), trained(&after[0][0]));
        prop_assert_eq!(before, after);
    }
}

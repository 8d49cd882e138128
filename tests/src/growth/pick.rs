//! Ranges that are really there, from the numbers of a pick.
use pleach_tree::{Evicted, SegmentId};

use super::step::Pick;
use crate::oracle::{Slot, piece_starts};

/// The ranges of `picks` in `list`, each token at most once.
pub(super) fn ranges(list: &[Slot], picks: &[Pick]) -> Vec<Evicted> {
    let mut segments: Vec<u32> = Vec::new();
    for slot in list {
        if !segments.contains(&slot.segment()) {
            segments.push(slot.segment());
        }
    }
    let mut taken: Vec<Evicted> = Vec::new();
    for pick in picks.iter().filter(|_| !segments.is_empty()) {
        let segment = segments[usize::from(pick.segment) % segments.len()];
        let entry = match (pick.range, contiguous(list, segment)) {
            (Some(range), runs) if !runs.is_empty() => {
                let (start, end) = runs[usize::from(range.0) % runs.len()];
                let from = start + u32::from(range.0) % (end - start);
                Evicted::range(
                    SegmentId(segment),
                    from,
                    from + 1 + u32::from(range.1) % (end - from),
                )
            }
            (Some((0..=99, _)), _) => Evicted::range(SegmentId(segment), 0, 0),
            _ => Evicted::whole(SegmentId(segment)),
        };
        if !taken.iter().any(|other| clash(other, &entry)) {
            taken.push(entry);
        }
    }
    taken
}

/// The contiguous runs of a segment's tokens.
fn contiguous(list: &[Slot], segment: u32) -> Vec<(u32, u32)> {
    let starts = piece_starts(list);
    let ends = starts.iter().skip(1).copied().chain([list.len()]);
    let run = |(start, end): (&usize, usize)| match list[*start] {
        Slot::Token((of, offset)) if of == segment => Some((offset, offset + (end - start) as u32)),
        _ => None,
    };
    starts.iter().zip(ends).filter_map(run).collect()
}

fn clash(a: &Evicted, b: &Evicted) -> bool {
    let disjoint = match (a.tokens, b.tokens) {
        (Some(a), Some(b)) => a != b && (a.1 <= b.0 || b.1 <= a.0),
        _ => false,
    };
    a.segment == b.segment && !disjoint
}

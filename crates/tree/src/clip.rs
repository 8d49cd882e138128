use rustc_hash::FxHashMap;

use crate::{Evicted, LossRun, Record, Segment, SegmentId};

/// Keeps the first and last `keep / 2` tokens of every segment, so that a long rollout can be
/// looked at on a small machine.
///
/// The tree keeps its shape: log-probabilities, loss runs and evicted ranges are cut alike, and of
/// every stretch that leaves a context by itself at least one token stays, so that each eviction
/// still removes something. Recorded prompts are dropped, since no context holds them any more, and
/// so is the text of what was cut. An odd token more stays at the front, and `keep` is at least 1.
/// Segments without tokens are left as they are.
///
/// ```
/// use pleach_tree::{Origin, Record, Role, Segment, SegmentId, clip};
/// let segment = Segment::new(SegmentId(0), Role::User, Origin::Human).with_tokens((0..10).collect());
/// let clipped = clip(&[Record::Segment(segment)], 4);
/// let Record::Segment(segment) = &clipped[0] else { panic!("a segment stays one") };
/// assert_eq!(segment.tokens.as_deref(), Some(&[0, 1, 8, 9][..]));
/// ```
pub fn clip(records: &[Record], keep: u32) -> Vec<Record> {
    let cuts = cuts(records, keep.max(1));
    records.iter().map(|record| clipped(record, &cuts)).collect()
}

/// Which tokens of a segment stay, as sorted ranges, each with the number of tokens that stay
/// before it.
#[derive(Debug)]
struct Cut(Vec<(u32, u32, u32)>);

impl Cut {
    /// Keeps the ends of a segment of `len` tokens, and a token of every stretch between two of
    /// `borders`.
    fn new(len: u32, keep: u32, mut borders: Vec<u32>) -> Self {
        let (head, tail) = (keep - keep / 2, len - keep / 2);
        borders.extend([0, len]);
        borders.retain(|&border| border <= len);
        borders.sort_unstable();
        borders.dedup();
        let mut ranges = vec![(0, head, 0)];
        let mut kept = head;
        for pair in borders.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            if start >= head && end <= tail {
                ranges.push((start, start + 1, kept));
                kept += 1;
            }
        }
        ranges.push((tail, len, kept));
        Self(ranges)
    }

    /// Where the token that was at `offset`, or the next that stays, is now.
    fn place(&self, offset: u32) -> u32 {
        let at = self.0.partition_point(|&(start, ..)| start <= offset);
        at.checked_sub(1).map_or(0, |at| {
            let (start, end, before) = self.0[at];
            before + offset.min(end) - start
        })
    }

    fn pick<T: Copy>(&self, values: &[T]) -> Vec<T> {
        let ranges =
            self.0.iter().filter_map(|&(start, end, _)| values.get(start as usize..end as usize));
        ranges.flatten().copied().collect()
    }
}

/// A cut for every segment that is longer than `keep`.
fn cuts(records: &[Record], keep: u32) -> FxHashMap<SegmentId, Cut> {
    let mut borders: FxHashMap<SegmentId, Vec<u32>> = FxHashMap::default();
    for record in records {
        let Record::Evict(evict) = record else { continue };
        for Evicted { segment, tokens, .. } in &evict.evicted {
            if let Some((start, end)) = *tokens {
                borders.entry(*segment).or_default().extend([start, end]);
            }
        }
    }
    let cut = |segment: &Segment| {
        let len = u32::try_from(segment.tokens.as_ref()?.len()).ok().filter(|len| *len > keep)?;
        Some((segment.id, Cut::new(len, keep, borders.remove(&segment.id).unwrap_or_default())))
    };
    let segments = records.iter().filter_map(|record| match record {
        Record::Segment(segment) => Some(segment),
        _ => None,
    });
    segments.filter_map(cut).collect()
}

fn clipped(record: &Record, cuts: &FxHashMap<SegmentId, Cut>) -> Record {
    let mut record = record.clone();
    match &mut record {
        Record::Segment(segment) => {
            if let Some(cut) = cuts.get(&segment.id) {
                clip_segment(segment, cut);
            }
        }
        Record::Evict(evict) => {
            for Evicted { segment, tokens, .. } in &mut evict.evicted {
                if let (Some(cut), Some((start, end))) = (cuts.get(segment), tokens) {
                    (*start, *end) = (cut.place(*start), cut.place(*end));
                }
            }
        }
        Record::Generation(generation) => generation.prompt_tokens = None,
        _ => {}
    }
    record
}

fn clip_segment(segment: &mut Segment, cut: &Cut) {
    segment.text = None;
    segment.tokens = segment.tokens.as_deref().map(|tokens| cut.pick(tokens));
    segment.logprobs = segment.logprobs.as_deref().map(|logprobs| cut.pick(logprobs));
    if let Some(runs) = &mut segment.loss {
        for LossRun { start, end, .. } in runs.iter_mut() {
            (*start, *end) = (cut.place(*start), cut.place(*end));
        }
        runs.retain(|run| run.start < run.end);
    }
}

//! Stretches that two lists of units have in common, in the same order.
use rustc_hash::FxHashMap;

/// A stretch that both lists hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) old: usize,
    pub(crate) new: usize,
    pub(crate) len: usize,
}

impl Block {
    fn old_end(self) -> usize {
        self.old + self.len
    }

    fn new_end(self) -> usize {
        self.new + self.len
    }
}

/// How many units two lists begin with alike.
pub(crate) fn common_prefix(old: &[u32], new: &[u32]) -> usize {
    old.iter().zip(new).take_while(|(a, b)| a == b).count()
}

/// The stretches of at least `run` units that stand in both lists, none crossing another; a common
/// start counts at any length.
///
/// Runs that each list holds once are matched, as many as keep their order, and grown as far as
/// they agree. What stands twice is found only by growing, so that it is never paired by chance.
pub(crate) fn align(old: &[u32], new: &[u32], run: usize) -> Vec<Block> {
    let prefix = common_prefix(old, new);
    let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
    let suffix =
        old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let suffix = if suffix < run { 0 } else { suffix };
    let (old_middle, new_middle) =
        (&old_rest[..old_rest.len() - suffix], &new_rest[..new_rest.len() - suffix]);
    let mut blocks = Vec::new();
    if prefix > 0 {
        blocks.push(Block { old: 0, new: 0, len: prefix });
    }
    for block in grown(old_middle, new_middle, &anchors(old_middle, new_middle, run), run) {
        blocks.push(Block { old: block.old + prefix, new: block.new + prefix, len: block.len });
    }
    if suffix > 0 {
        blocks.push(Block { old: old.len() - suffix, new: new.len() - suffix, len: suffix });
    }
    joined(blocks)
}

/// Places of runs that each list holds exactly once, in the order of both.
fn anchors(old: &[u32], new: &[u32], run: usize) -> Vec<(usize, usize)> {
    if old.len() < run || new.len() < run {
        return Vec::new();
    }
    let once = |list: &[u32]| {
        let mut places: FxHashMap<u64, Option<usize>> = FxHashMap::default();
        for (at, print) in prints(list, run).enumerate() {
            places.entry(print).and_modify(|place| *place = None).or_insert(Some(at));
        }
        places
    };
    let (there, mut here) = (once(old), once(new));
    here.retain(|print, _| there.contains_key(print));
    let mut pairs: Vec<(usize, usize)> = here
        .iter()
        .filter_map(|(print, &new_at)| Some((new_at?, (*there.get(print)?)?)))
        .filter(|&(new_at, old_at)| old[old_at..old_at + run] == new[new_at..new_at + run])
        .collect();
    pairs.sort_unstable();
    longest_rising(&pairs)
}

/// A number for each run of `run` units, the same for equal ones.
fn prints(list: &[u32], run: usize) -> impl Iterator<Item = u64> {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    let top = (1..run).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    let mut sum = list[..run - 1]
        .iter()
        .fold(0_u64, |sum, &unit| sum.wrapping_mul(BASE).wrapping_add(u64::from(unit) + 1));
    (run - 1..list.len()).map(move |at| {
        let whole = sum.wrapping_mul(BASE).wrapping_add(u64::from(list[at]) + 1);
        sum = whole.wrapping_sub((u64::from(list[at + 1 - run]) + 1).wrapping_mul(top));
        whole
    })
}

/// The most pairs whose second members rise with the first.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let (mut tails, mut before) = (Vec::<usize>::new(), vec![None; pairs.len()]);
    for (at, &(_, old)) in pairs.iter().enumerate() {
        let place = tails.partition_point(|&tail| pairs[tail].1 < old);
        before[at] = place.checked_sub(1).map(|last| tails[last]);
        if place == tails.len() {
            tails.push(at);
        } else {
            tails[place] = at;
        }
    }
    let mut rising: Vec<(usize, usize)> =
        std::iter::successors(tails.last().copied(), |&at| before[at])
            .map(|at| (pairs[at].1, pairs[at].0))
            .collect();
    rising.reverse();
    rising
}

/// Blocks around the anchors, each as long as the lists agree and no other block begins.
fn grown(old: &[u32], new: &[u32], anchors: &[(usize, usize)], run: usize) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for &(old_at, new_at) in anchors {
        let (old_floor, new_floor) =
            blocks.last().map_or((0, 0), |last| (last.old_end(), last.new_end()));
        if old_at + run <= old_floor || new_at + run <= new_floor {
            continue;
        }
        let room = old_at.saturating_sub(old_floor).min(new_at.saturating_sub(new_floor));
        let back =
            (0..room).take_while(|&step| old[old_at - 1 - step] == new[new_at - 1 - step]).count();
        let skip = old_floor.saturating_sub(old_at).max(new_floor.saturating_sub(new_at));
        let (old_start, new_start) = (old_at - back + skip, new_at - back + skip);
        let len = common_prefix(&old[old_start..], &new[new_start..]);
        blocks.push(Block { old: old_start, new: new_start, len });
    }
    blocks.retain(|block| block.len >= run);
    blocks
}

/// Blocks that follow each other without a gap as one.
fn joined(blocks: Vec<Block>) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match out.last_mut() {
            Some(last) if last.old_end() == block.old && last.new_end() == block.new => {
                last.len += block.len
            }
            _ => out.push(block),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(old: &[u32], new: &[u32], run: usize) -> Vec<(usize, usize, usize)> {
        align(old, new, run).into_iter().map(|block| (block.old, block.new, block.len)).collect()
    }

    #[test]
    fn a_placeholder_leaves_what_stands_around_it() {
        assert_eq!(blocks(&[1, 2, 3, 4], &[1, 9, 3, 4, 5], 1), [(0, 0, 1), (2, 2, 2)]);
    }

    #[test]
    fn a_tail_behind_a_summary_is_found_again() {
        assert_eq!(blocks(&[1, 2, 3, 4, 5], &[1, 9, 4, 5, 6], 1), [(0, 0, 1), (3, 2, 2)]);
    }

    #[test]
    fn what_stands_twice_is_not_paired_by_chance() {
        assert_eq!(blocks(&[1, 7, 2, 7, 3], &[9, 7, 8], 1), []);
    }

    #[test]
    fn runs_that_are_too_short_are_no_survivors() {
        assert_eq!(blocks(&[1, 2, 3, 4, 5, 6, 7, 8], &[1, 9, 4, 5, 9, 9], 3), [(0, 0, 1)]);
        assert_eq!(
            blocks(&[1, 2, 3, 4, 5, 6, 7, 8], &[1, 9, 4, 5, 6, 9], 3),
            [(0, 0, 1), (3, 2, 3)]
        );
    }

    proptest! {
        #[test]
        fn blocks_agree_and_rise(
            old in prop::collection::vec(0_u32..12, 0..60),
            new in prop::collection::vec(0_u32..12, 0..60),
            run in 1_usize..4,
        ) {
            let (mut old_at, mut new_at) = (0, 0);
            for block in align(&old, &new, run) {
                prop_assert!(block.old >= old_at && block.new >= new_at && block.len > 0);
                prop_assert_eq!(&old[block.old..block.old_end()], &new[block.new..block.new_end()]);
                (old_at, new_at) = (block.old_end(), block.new_end());
            }
        }
    }
}

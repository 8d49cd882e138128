//! How two lists differ: what is kept, removed, inserted and moved.
//!
//! This is patience diff (Bram Cohen, 2008) over runs: runs of items that each list holds exactly
//! once are matched, as many as keep their order, and grown as far as both lists agree. What
//! stands twice is kept only where such a run reaches it. That is why the crates `similar` and
//! `imara-diff` do not serve here: between unique items they go on by Myers' algorithm or by a
//! histogram, which look for the shortest script and so pair repeated items by chance, and a
//! context that is told such a story says that a token survived which did not. Neither has a
//! shortest run, below which equal tokens are no evidence of anything.
use std::hash::{Hash, Hasher};
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHasher};

/// A run of items that both lists hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptRun {
    /// Where it starts in the old list.
    pub old: usize,
    /// Where it starts in the new list.
    pub new: usize,
    /// Number of items.
    pub len: usize,
}

impl KeptRun {
    /// The first place behind it in the old list.
    pub fn old_end(&self) -> usize {
        self.old + self.len
    }

    /// The first place behind it in the new list.
    pub fn new_end(&self) -> usize {
        self.new + self.len
    }
}

/// What stands between two kept runs, before the first or behind the last; one side may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// What of the old list is removed.
    pub old: Range<usize>,
    /// What of the new list is inserted.
    pub new: Range<usize>,
}

impl Gap {
    /// Whether nothing is removed and nothing inserted.
    pub fn is_empty(&self) -> bool {
        self.old.is_empty() && self.new.is_empty()
    }
}

/// The difference of two lists.
///
/// Time and memory are linear in the lengths, but for a logarithm over the runs that are matched.
///
/// ```
/// use pleach_tree::diff::{Diff, Gap};
/// let (old, new) = (["sys", "a", "b", "c"], ["sys", "sum", "c", "d"]);
/// let diff = Diff::new(&old, &new, 1);
/// assert_eq!(diff.gaps(), [Gap { old: 1..3, new: 1..2 }, Gap { old: 4..4, new: 3..4 }]);
/// assert_eq!(diff.moved(&old, &new), []);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    kept: Vec<KeptRun>,
    lengths: (usize, usize),
}

impl Diff {
    /// Compares two lists; a run of fewer than `shortest` items counts as kept at the start only.
    ///
    /// A `shortest` of 0 is taken as 1. Kept runs do not cross, and no two follow each other
    /// without a gap.
    pub fn new<T: Eq + Hash>(old: &[T], new: &[T], shortest: usize) -> Self {
        let shortest = shortest.max(1);
        let prefix = common_prefix(old, new);
        let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
        let suffix =
            old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
        let suffix = if suffix < shortest { 0 } else { suffix };
        let (old_middle, new_middle) =
            (&old_rest[..old_rest.len() - suffix], &new_rest[..new_rest.len() - suffix]);
        let mut kept = Vec::new();
        if prefix > 0 {
            kept.push(KeptRun { old: 0, new: 0, len: prefix });
        }
        let anchors = anchors(old_middle, new_middle, shortest);
        for run in grown(old_middle, new_middle, &anchors, shortest) {
            kept.push(KeptRun { old: run.old + prefix, new: run.new + prefix, len: run.len });
        }
        if suffix > 0 {
            let (old, new) = (old.len() - suffix, new.len() - suffix);
            kept.push(KeptRun { old, new, len: suffix });
        }
        Self { kept: joined(kept), lengths: (old.len(), new.len()) }
    }

    /// The kept runs, in the order of both lists.
    pub fn kept(&self) -> &[KeptRun] {
        &self.kept
    }

    /// What stands between the kept runs, in order, empty gaps left out.
    pub fn gaps(&self) -> Vec<Gap> {
        let (mut old, mut new) = (0, 0);
        let mut gaps = Vec::with_capacity(self.kept.len() + 1);
        let end = KeptRun { old: self.lengths.0, new: self.lengths.1, len: 0 };
        for run in self.kept.iter().chain([&end]) {
            gaps.push(Gap { old: old..run.old, new: new..run.new });
            (old, new) = (run.old_end(), run.new_end());
        }
        gaps.retain(|gap| !gap.is_empty());
        gaps
    }

    /// The places of items that are removed and inserted elsewhere, `(old, new)`, each item once,
    /// in the order of the new list.
    ///
    /// `old` and `new` are the lists that were compared.
    pub fn moved<T: Eq + Hash>(&self, old: &[T], new: &[T]) -> Vec<(usize, usize)> {
        moved(&self.gaps(), old, new)
    }
}

/// The places of items that gaps remove and insert elsewhere, as [`Diff::moved`] gives them.
pub fn moved<T: Eq + Hash>(gaps: &[Gap], old: &[T], new: &[T]) -> Vec<(usize, usize)> {
    let mut gone: FxHashMap<&T, Vec<usize>> = FxHashMap::default();
    for place in gaps.iter().rev().flat_map(|gap| gap.old.clone().rev()) {
        gone.entry(&old[place]).or_default().push(place);
    }
    let places = gaps.iter().flat_map(|gap| gap.new.clone());
    places.filter_map(|place| Some((gone.get_mut(&new[place])?.pop()?, place))).collect()
}

/// How many items two lists begin with alike.
pub fn common_prefix<T: Eq>(old: &[T], new: &[T]) -> usize {
    old.iter().zip(new).take_while(|(a, b)| a == b).count()
}

/// Places of runs that each list holds exactly once, in the order of both.
fn anchors<T: Eq + Hash>(old: &[T], new: &[T], run: usize) -> Vec<(usize, usize)> {
    if old.len() < run || new.len() < run {
        return Vec::new();
    }
    let once = |list: &[T]| {
        let mut places: FxHashMap<u64, Option<usize>> = FxHashMap::default();
        for (at, print) in fingerprints(list, run).enumerate() {
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

/// A number for each run of `run` items, the same for equal ones (Karp and Rabin, 1987).
fn fingerprints<T: Hash>(list: &[T], run: usize) -> impl Iterator<Item = u64> {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    let number = |item: &T| {
        let mut hasher = FxHasher::default();
        item.hash(&mut hasher);
        hasher.finish()
    };
    let top = (1..run).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    let mut sum = list[..run - 1]
        .iter()
        .fold(0_u64, |sum, item| sum.wrapping_mul(BASE).wrapping_add(number(item)));
    (run - 1..list.len()).map(move |at| {
        let whole = sum.wrapping_mul(BASE).wrapping_add(number(&list[at]));
        sum = whole.wrapping_sub(number(&list[at + 1 - run]).wrapping_mul(top));
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

/// Runs around the anchors, each as long as the lists agree and no other run begins.
fn grown<T: Eq>(old: &[T], new: &[T], anchors: &[(usize, usize)], shortest: usize) -> Vec<KeptRun> {
    let mut runs: Vec<KeptRun> = Vec::new();
    for &(old_at, new_at) in anchors {
        let (old_floor, new_floor) =
            runs.last().map_or((0, 0), |last| (last.old_end(), last.new_end()));
        if old_at + shortest <= old_floor || new_at + shortest <= new_floor {
            continue;
        }
        let room = old_at.saturating_sub(old_floor).min(new_at.saturating_sub(new_floor));
        let back =
            (0..room).take_while(|&step| old[old_at - 1 - step] == new[new_at - 1 - step]).count();
        let skip = old_floor.saturating_sub(old_at).max(new_floor.saturating_sub(new_at));
        let (old_start, new_start) = (old_at - back + skip, new_at - back + skip);
        let len = common_prefix(&old[old_start..], &new[new_start..]);
        runs.push(KeptRun { old: old_start, new: new_start, len });
    }
    runs.retain(|run| run.len >= shortest);
    runs
}

/// Runs that follow each other without a gap as one.
fn joined(runs: Vec<KeptRun>) -> Vec<KeptRun> {
    let mut out: Vec<KeptRun> = Vec::with_capacity(runs.len());
    for run in runs {
        match out.last_mut() {
            Some(last) if last.old_end() == run.old && last.new_end() == run.new => {
                last.len += run.len;
            }
            _ => out.push(run),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(old: &[u32], new: &[u32], shortest: usize) -> Vec<(usize, usize, usize)> {
        Diff::new(old, new, shortest).kept().iter().map(|run| (run.old, run.new, run.len)).collect()
    }

    #[test]
    fn a_placeholder_leaves_what_stands_around_it() {
        assert_eq!(kept(&[1, 2, 3, 4], &[1, 9, 3, 4, 5], 1), [(0, 0, 1), (2, 2, 2)]);
    }

    #[test]
    fn a_tail_behind_a_summary_is_found_again() {
        assert_eq!(kept(&[1, 2, 3, 4, 5], &[1, 9, 4, 5, 6], 1), [(0, 0, 1), (3, 2, 2)]);
    }

    #[test]
    fn what_stands_twice_is_not_paired_by_chance() {
        assert_eq!(kept(&[1, 7, 2, 7, 3], &[9, 7, 8], 1), []);
    }

    #[test]
    fn runs_that_are_too_short_are_no_survivors() {
        assert_eq!(kept(&[1, 2, 3, 4, 5, 6, 7, 8], &[1, 9, 4, 5, 9, 9], 3), [(0, 0, 1)]);
        assert_eq!(kept(&[1, 2, 3, 4, 5, 6, 7, 8], &[1, 9, 4, 5, 6, 9], 3), [(0, 0, 1), (3, 2, 3)]);
    }

    #[test]
    fn what_stands_elsewhere_is_moved_and_all_else_that_left_is_removed() {
        let (old, new) = ([1, 2, 3, 4, 5], [1, 4, 5, 2, 9]);
        let diff = Diff::new(&old, &new, 1);
        assert_eq!(diff.gaps(), [Gap { old: 1..3, new: 1..1 }, Gap { old: 5..5, new: 3..5 }]);
        assert_eq!(diff.moved(&old, &new), [(1, 3)]);
    }

    #[test]
    fn empty_lists_and_lists_without_anything_in_common_are_one_gap_or_none() {
        assert_eq!(Diff::new::<u32>(&[], &[], 0).gaps(), []);
        assert_eq!(Diff::new(&[1, 2], &[3], 1).gaps(), [Gap { old: 0..2, new: 0..1 }]);
    }

    proptest! {
        #[test]
        fn runs_agree_and_rise_and_gaps_are_the_rest(
            old in prop::collection::vec(0_u32..12, 0..60),
            new in prop::collection::vec(0_u32..12, 0..60),
            shortest in 0_usize..4,
        ) {
            let diff = Diff::new(&old, &new, shortest);
            let (mut old_at, mut new_at) = (0, 0);
            for run in diff.kept() {
                prop_assert!(run.old >= old_at && run.new >= new_at && run.len > 0);
                prop_assert_eq!(&old[run.old..run.old_end()], &new[run.new..run.new_end()]);
                (old_at, new_at) = (run.old_end(), run.new_end());
            }
            let kept: usize = diff.kept().iter().map(|run| run.len).sum();
            let gaps = diff.gaps();
            prop_assert_eq!(kept + gaps.iter().map(|gap| gap.old.len()).sum::<usize>(), old.len());
            prop_assert_eq!(kept + gaps.iter().map(|gap| gap.new.len()).sum::<usize>(), new.len());
            for (from, to) in diff.moved(&old, &new) {
                prop_assert_eq!(old[from], new[to]);
            }
        }

        #[test]
        fn of_lists_without_repetition_all_that_keeps_its_order_is_kept(
            old in prop::collection::btree_set(0_u32..40, 0..40),
            new in prop::collection::btree_set(0_u32..40, 0..40),
        ) {
            let common = old.intersection(&new).count();
            let (old, new): (Vec<u32>, Vec<u32>) =
                (old.into_iter().collect(), new.into_iter().collect());
            let diff = Diff::new(&old, &new, 1);
            prop_assert_eq!(diff.kept().iter().map(|run| run.len).sum::<usize>(), common);
            prop_assert_eq!(diff.moved(&old, &new), []);
        }
    }
}

//! Contract: what the kernels compute for a tree does not depend, to the last bit, on what is
//! packed beside it: other trees before it of the same total length, anything behind it, other rows
//! of the batch. The tile grid is then the same.
use crate::oracle::{Answer, Naive, Part, Random, chain, kernels, star};

/// A tree between two others in one row.
struct Packed {
    problem: Naive,
    offset: usize,
    length: usize,
}

impl Packed {
    /// Packs `tree` behind `before` and in front of `after`, each given by its own ends, with other
    /// numbers in the neighbours.
    fn new(random: &mut Random, tree: &Naive, [before, after]: [Vec<i32>; 2]) -> Self {
        let (offset, length) = (before.len(), tree.time);
        let shifted =
            |ends: &[i32], by: usize| ends.iter().map(|&end| end + by as i32).collect::<Vec<_>>();
        let ends =
            [before, shifted(&tree.ends[0], offset), shifted(&after, offset + length)].concat();
        let mut problem =
            Naive::random(random, [tree.heads_q, tree.heads_kv, tree.head_dim], vec![ends]);
        if let Some(window) = tree.window {
            problem = problem.windowed(window);
        }
        let time = problem.time;
        let parts =
            [(&mut problem.q, &tree.q), (&mut problem.k, &tree.k), (&mut problem.v, &tree.v)];
        for (whole, part) in parts.into_iter().chain([(&mut problem.upstream, &tree.upstream)]) {
            let (row, rows) = (time * tree.head_dim, length * tree.head_dim);
            for (whole, part) in whole.chunks_exact_mut(row).zip(part.chunks_exact(rows)) {
                whole[offset * tree.head_dim..][..rows].copy_from_slice(part);
            }
        }
        Self { problem, offset, length }
    }

    fn tree_bits(&self, answer: &Answer) -> Vec<Vec<u64>> {
        let tokens = self.offset..self.offset + self.length;
        let of_token = |token| Part::ALL.map(|part| answer.bits(part, &self.problem, [0, token]));
        tokens.flat_map(of_token).collect()
    }
}

/// Neighbours of one total length before the tree, and of any length behind it.
fn neighbours(random: &mut Random, offset: usize) -> [[Vec<i32>; 2]; 5] {
    let padding = |length: usize| (0..length as i32).collect::<Vec<_>>();
    [
        [chain(offset), Vec::new()],
        [padding(offset), chain(1)],
        [random.pieces(offset, 9), random.pieces(77, 20)],
        [random.evictions(offset), padding(30)],
        [star(offset / 2, 3, offset), chain(150)],
    ]
}

fn check(tree: &Naive, random: &mut Random) {
    for offset in [1, 10, 63, 64, 100] {
        let packed =
            neighbours(random, offset).map(|neighbours| Packed::new(random, tree, neighbours));
        for runner in kernels() {
            let [first, others @ ..] =
                packed.each_ref().map(|packed| packed.tree_bits(&runner.run(&packed.problem)));
            for (index, other) in others.iter().enumerate() {
                assert!(
                    *other == first,
                    "{}: neighbours {}, tree of {} at {offset}",
                    runner.name(),
                    index + 1,
                    tree.time
                );
            }
        }
    }
}

#[test]
fn neighbours_in_the_row_change_no_bit_of_a_tree() {
    let mut random = Random(1);
    for length in [5, 64, 130] {
        let ends = vec![random.pieces(length, 20)];
        let tree = Naive::random(&mut random, [4, 2, 16], ends);
        check(&tree, &mut random);
    }
}

#[test]
fn neighbours_in_the_row_change_no_bit_of_a_tree_under_a_window() {
    let mut random = Random(2);
    let ends = vec![random.pieces(110, 20)];
    let tree = Naive::random(&mut random, [2, 1, 16], ends).windowed(15);
    check(&tree, &mut random);
}

#[test]
fn a_tree_gives_the_same_bits_in_any_row_of_any_batch() {
    let mut random = Random(3);
    let ends = random.pieces(100, 20);
    let alone = Naive::random(&mut random, [4, 2, 16], vec![ends.clone()]);
    let others = [chain(100), random.pieces(100, 30), (0..100).collect()];
    for place in 0..4 {
        let mut rows = others.to_vec();
        rows.insert(place, ends.clone());
        let mut batch = Naive::random(&mut random, [4, 2, 16], rows);
        let parts = [(&mut batch.q, &alone.q), (&mut batch.k, &alone.k), (&mut batch.v, &alone.v)];
        for (whole, part) in parts.into_iter().chain([(&mut batch.upstream, &alone.upstream)]) {
            whole[place * part.len()..][..part.len()].copy_from_slice(part);
        }
        for runner in kernels() {
            let (expected, found) = (runner.run(&alone), runner.run(&batch));
            for part in Part::ALL {
                let tokens = 0..100;
                let same = |token| {
                    expected.bits(part, &alone, [0, token])
                        == found.bits(part, &batch, [place, token])
                };
                assert!(tokens.into_iter().all(same), "{}: {part:?} in row {place}", runner.name());
            }
        }
    }
}

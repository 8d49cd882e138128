//! Contract: a row that sees nothing gives exact zeros, takes and gives exactly zero gradients, and puts no NaN anywhere.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
mod oracle;

use oracle::{Naive, Random, assert_close, differentiate, targets};
use pleach_kernels::{AttentionConfig, TreeMask, tree_attention};

#[test]
fn padding_gives_exact_zeros_and_zero_gradients() {
    let mut random = Random(1);
    let (time, real) = (12, 7);
    let mut padded = random.tree(real);
    padded.extend(real as i32..time as i32);
    let ends = vec![random.tree(time), padded];
    let problem = Naive::random(&mut random, [4, 2, 8], ends);
    for target in targets() {
        let mask = TreeMask::new(&problem.ends, &target.device).unwrap();
        let found = differentiate(&problem, &target, |[q, k, v]| {
            tree_attention(q, k, v, &mask, &AttentionConfig::for_head_dim(8)).unwrap()
        });
        assert_close("padding", &target, &found, &problem.solve());
        for (part, values, heads) in [("o", &found.o, 4), ("dq", &found.dq, 4), ("dk", &found.dk, 2), ("dv", &found.dv, 2)] {
            for head in heads..2 * heads {
                let rows = &values[(head * time + real) * 8..(head + 1) * time * 8];
                assert!(rows.iter().all(|&x| x == 0.0), "{}: {part} of padding", target.name);
            }
        }
    }
}

#[test]
fn a_batch_of_nothing_but_padding_is_zero_throughout() {
    let mut random = Random(2);
    let problem = Naive::random(&mut random, [2, 1, 4], vec![(0..5).collect()]);
    for target in targets() {
        let mask = TreeMask::new(&problem.ends, &target.device).unwrap();
        let found = differentiate(&problem, &target, |[q, k, v]| {
            tree_attention(q, k, v, &mask, &AttentionConfig::for_head_dim(4)).unwrap()
        });
        for values in [&found.o, &found.dq, &found.dk, &found.dv] {
            assert!(values.iter().all(|&x| x == 0.0), "{}", target.name);
        }
    }
}

#[test]
fn a_key_that_nobody_sees_any_more_does_not_disturb_later_rows() {
    let mut random = Random(3);
    let problem = Naive::random(&mut random, [2, 1, 4], vec![vec![1, 2, 3, 4]]);
    for target in targets() {
        let mask = TreeMask::new(&problem.ends, &target.device).unwrap();
        let found = differentiate(&problem, &target, |[q, k, v]| {
            tree_attention(q, k, v, &mask, &AttentionConfig::for_head_dim(4)).unwrap()
        });
        assert_close("each token alone", &target, &found, &problem.solve());
    }
}

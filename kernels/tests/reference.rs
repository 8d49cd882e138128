//! Contract: the dense reference computes `softmax(q k^T * scale + mask) v` and its gradients in q, k and v as plain float64 loops
//! do, for every device and dtype, length, head grouping, window and kind of interval.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
mod oracle;

use oracle::{Naive, Random, Target, assert_close, differentiate, targets};
use pleach_kernels::{AttentionConfig, Execution, TreeMask, tree_attention};

fn check(context: &str, problem: &Naive, target: &Target) {
    let mask = TreeMask::new(&problem.ends, &target.device).unwrap();
    let mask = match problem.window {
        Some(window) => mask.with_window(&problem.positions, window).unwrap(),
        None => mask,
    };
    let config = AttentionConfig { scale: problem.scale, execution: Execution::Reference };
    let found = differentiate(problem, target, |[q, k, v]| tree_attention(q, k, v, &mask, &config).unwrap());
    assert_close(context, target, &found, &problem.solve());
}

#[test]
fn random_trees_of_every_length_match_the_loops() {
    let mut random = Random(1);
    for time in [1, 2, 3, 15, 16, 17, 31, 61] {
        let ends = vec![random.tree(time)];
        let problem = Naive::random(&mut random, [2, 2, 8], ends);
        for target in targets() {
            check(&format!("length {time}"), &problem, &target);
        }
    }
}

#[test]
fn query_heads_share_key_value_heads_in_groups_of_1_2_3_4_and_8() {
    let mut random = Random(2);
    for group in [1, 2, 3, 4, 8] {
        for heads_kv in [1, 2] {
            let ends = vec![random.tree(13)];
            let problem = Naive::random(&mut random, [group * heads_kv, heads_kv, 4], ends);
            for target in targets() {
                check(&format!("{group} query heads a key head"), &problem, &target);
            }
        }
    }
}

#[test]
fn rows_of_a_batch_have_their_own_trees() {
    let mut random = Random(3);
    let chain = vec![19; 19];
    let mut star = vec![19; 4];
    star.extend(5..=19);
    let ends = vec![random.tree(19), chain, star, random.tree(19)];
    let problem = Naive::random(&mut random, [4, 2, 16], ends);
    for target in targets() {
        check("four trees", &problem, &target);
    }
}

#[test]
fn windows_count_positions_and_not_indices() {
    let mut random = Random(4);
    for window in [1, 2, 5, 100] {
        let ends = vec![random.tree(23), random.tree(23)];
        let mut problem = Naive::random(&mut random, [2, 1, 8], ends);
        problem.window = Some(window);
        problem.positions = vec![(0..23).collect(), (0..23).map(|i| i * 2 / 3).collect()];
        for target in targets() {
            check(&format!("window {window}"), &problem, &target);
        }
    }
}

#[test]
fn intervals_that_do_not_nest_match_the_loops() {
    let mut random = Random(5);
    for _ in 0..4 {
        let ends = vec![random.evictions(29)];
        let problem = Naive::random(&mut random, [2, 2, 8], ends);
        for target in targets() {
            check("evictions in place", &problem, &target);
        }
    }
}

#[test]
fn a_deep_caterpillar_matches_the_loops() {
    let mut random = Random(6);
    let time = 48;
    let ends = (0..time).map(|j| if j % 2 == 0 { time } else { j + 1 }).collect();
    let problem = Naive::random(&mut random, [2, 1, 8], vec![ends]);
    for target in targets() {
        check("caterpillar", &problem, &target);
    }
}

#[test]
fn large_scores_neither_overflow_nor_lose_the_mask() {
    let mut random = Random(7);
    let ends = vec![random.tree(17)];
    let mut problem = Naive::random(&mut random, [2, 2, 8], ends);
    problem.scale = 64.0;
    for target in targets().into_iter().filter(|target| target.dtype == burn::tensor::DType::F64) {
        check("scale 64", &problem, &target);
    }
}

#[test]
fn a_token_outside_the_live_view_changes_not_one_bit_of_a_row() {
    let mut random = Random(8);
    let ends = vec![random.tree(33)];
    let problem = Naive::random(&mut random, [4, 2, 8], ends);
    for target in targets() {
        let mask = TreeMask::new(&problem.ends, &target.device).unwrap();
        let config = AttentionConfig::for_head_dim(8);
        let run =
            |problem: &Naive| differentiate(problem, &target, |[q, k, v]| tree_attention(q, k, v, &mask, &config).unwrap());
        let before = run(&problem);
        let mut mutated = problem.clone();
        let changed = 20;
        for head in 0..2 {
            let start = (head * 33 + changed) * 8;
            mutated.k[start..start + 8].fill(0.5);
            mutated.v[start..start + 8].fill(-0.25);
        }
        let after = run(&mutated);
        for row in (0..33).filter(|&i| !problem.visible(0, i, changed)) {
            for head in 0..4 {
                let range = (head * 33 + row) * 8..(head * 33 + row + 1) * 8;
                assert_eq!(before.o[range.clone()], after.o[range.clone()], "{}: o", target.name);
                assert_eq!(before.dq[range.clone()], after.dq[range], "{}: dq", target.name);
            }
        }
        assert_ne!(before.o, after.o);
    }
}

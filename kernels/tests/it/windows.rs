//! Contract: windowed heads see a key only while `position_i - position_j < window`, counted in the
//! positions of the tree and not in indices, beside the interval rule.
use crate::oracle::{Naive, Random, binary, caterpillar, chain, runners, star};

fn check(context: &str, problem: &Naive) {
    let expected = problem.solve();
    for runner in runners() {
        runner.check(context, problem, &expected);
    }
}

#[test]
fn windows_on_a_chain_count_tokens() {
    let mut random = Random(1);
    for window in [1, 2, 5, 63, 64, 65, 1_000, u32::MAX] {
        let problem = Naive::random(&mut random, [2, 1, 16], vec![chain(193)]).windowed(window);
        check(&format!("window {window}"), &problem);
    }
}

#[test]
fn windows_on_trees_count_depth() {
    let mut random = Random(2);
    for window in [1, 2, 5, 40, 64, 1_000] {
        let ends =
            vec![random.pieces(180, 30), star(70, 11, 180), caterpillar(6, 180), binary(3, 12)];
        let problem = Naive::random(&mut random, [2, 1, 16], ends).windowed(window);
        check(&format!("window {window}"), &problem);
    }
}

#[test]
fn a_leaf_far_down_the_row_is_near_by_position() {
    let mut random = Random(3);
    // By index the last leaf is 150 tokens behind the prompt, by depth right behind it.
    let problem = Naive::random(&mut random, [1, 1, 16], vec![star(40, 10, 200)]).windowed(12);
    assert!(problem.visible(0, 190, 39));
    assert!(!problem.visible(0, 199, 29));
    check("the last leaf sees the end of the prompt", &problem);
}

#[test]
fn positions_need_not_start_at_0_or_grow_by_1() {
    let mut random = Random(4);
    for window in [3, 50, 90] {
        let ends = vec![random.evictions(140), chain(140), random.pieces(140, 20)];
        let mut problem = Naive::random(&mut random, [2, 2, 16], ends);
        problem.window = Some(window);
        problem.positions = vec![
            (0..140).map(|token| 1_000_000 + 2 * token).collect(),
            (0..140).map(|token| token * 2 / 3).collect(),
            (0..140).map(|token| (token * 57) % 139).collect(),
        ];
        check(&format!("window {window}"), &problem);
    }
}

#[test]
fn windows_hold_to_the_last_position_that_int32_counts() {
    let mut random = Random(5);
    for window in [1, i32::MAX as u32, 1 << 31, u32::MAX] {
        let mut problem = Naive::random(&mut random, [1, 1, 16], vec![chain(90)]);
        problem.window = Some(window);
        problem.positions = vec![
            (0..90).map(|token| if token % 3 == 0 { 0 } else { i32::MAX - token / 60 }).collect(),
        ];
        assert_eq!(
            problem.visible(0, 1, 0),
            window > i32::MAX as u32,
            "the farthest two positions"
        );
        check(&format!("window {window}"), &problem);
    }
}

//! Contract: a row that sees nothing gives exact zeros, takes and gives exactly zero gradients, and
//! puts no NaN anywhere, be it alone, in a tile with rows that see something, or in tiles of
//! nothing else.
use crate::oracle::{Naive, Part, Random, Runner, runners};

/// Asserts that a problem is solved right and that all its empty rows and unseen keys are exactly
/// 0.
fn check(context: &str, runner: &Runner, problem: &Naive) {
    runner.check(context, problem, &problem.solve());
    let found = runner.run(problem);
    let mut empty = 0;
    for row in 0..problem.batch {
        for token in 0..problem.time {
            let sees = (0..=token).any(|j| problem.visible(row, token, j));
            let is_seen = (token..problem.time).any(|i| problem.visible(row, i, token));
            let zero = |part| {
                found
                    .bits(part, problem, [row, token])
                    .iter()
                    .all(|&bits| f64::from_bits(bits) == 0.0)
            };
            let name = runner.name();
            assert!(
                sees || Part::OF_QUERIES.into_iter().all(zero),
                "{context}, {name}: row {token} sees nothing"
            );
            assert!(
                is_seen || Part::OF_KEYS.into_iter().all(zero),
                "{context}, {name}: nobody sees key {token}"
            );
            empty += usize::from(!sees);
        }
    }
    assert!(empty > 0, "{context} has no empty row");
}

#[test]
fn padding_gives_exact_zeros_and_zero_gradients() {
    let mut random = Random(1);
    for (time, real) in [(12, 7), (64, 63), (65, 64), (100, 40), (200, 70), (200, 128)] {
        let mut padded = random.pieces(real, 20);
        padded.extend(real as i32..time as i32);
        let ends = vec![random.pieces(time, 20), padded];
        let problem = Naive::random(&mut random, [4, 2, 16], ends);
        for runner in runners() {
            check(&format!("{real} of {time} tokens"), &runner, &problem);
        }
    }
}

#[test]
fn padding_in_front_and_in_the_middle_gives_exact_zeros() {
    let mut random = Random(2);
    let time = 150;
    let front = (0..time).map(|token| if token < 70 { token } else { time }).collect();
    let middle = (0..time)
        .map(|token| {
            if token < 50 {
                50
            } else if token < 130 {
                token
            } else {
                time
            }
        })
        .collect();
    let every_other = (0..time).map(|token| token + token % 2).collect();
    let problem = Naive::random(&mut random, [2, 1, 16], vec![front, middle, every_other]);
    for runner in runners() {
        check("padding between trees", &runner, &problem);
    }
}

#[test]
fn padding_under_a_window_gives_exact_zeros() {
    let mut random = Random(3);
    let mut padded = random.pieces(70, 20);
    padded.extend(70..150);
    let problem = Naive::random(&mut random, [2, 1, 16], vec![padded]).windowed(9);
    for runner in runners() {
        check("padding and a window", &runner, &problem);
    }
}

#[test]
fn a_batch_of_nothing_but_padding_is_zero_throughout() {
    let mut random = Random(4);
    for time in [1, 5, 64, 130] {
        let problem = Naive::random(&mut random, [2, 1, 16], vec![(0..time).collect()]);
        for runner in runners() {
            check("nothing but padding", &runner, &problem);
            let found = runner.run(&problem);
            assert!(
                Part::ALL.into_iter().all(|part| found.part(part).iter().all(|&x| x == 0.0)),
                "{}",
                runner.name()
            );
        }
    }
}

#[test]
fn large_scores_beside_empty_rows_put_no_nan_anywhere() {
    let mut random = Random(5);
    let mut padded = random.pieces(70, 20);
    padded.extend(70..130);
    for scale in [1e-30, 30.0, -30.0] {
        let mut problem = Naive::random(&mut random, [2, 1, 16], vec![padded.clone()]);
        problem.scale = scale;
        for runner in runners() {
            let found = runner.run(&problem);
            for part in Part::ALL {
                assert!(
                    found.part(part).iter().all(|x| x.is_finite()),
                    "{}: {part:?}, scale {scale}",
                    runner.name()
                );
            }
            let row = 100;
            assert!(
                found
                    .bits(Part::O, &problem, [0, row])
                    .iter()
                    .all(|&bits| f64::from_bits(bits) == 0.0)
            );
        }
    }
}

#[test]
fn a_key_that_nobody_sees_any_more_does_not_disturb_later_rows() {
    let mut random = Random(6);
    let problem = Naive::random(&mut random, [2, 1, 16], vec![(1..=70).collect()]);
    let expected = problem.solve();
    for runner in runners() {
        runner.check("each token alone", &problem, &expected);
    }
}

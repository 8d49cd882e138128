//! Contract: what is not a number is not hidden and does not spread. A row that sees a key with NaN
//! in it, or has NaN in its query, is NaN throughout; a row that does not see it keeps every bit of
//! its output, so long as the NaN stands in a query or a key.
//!
//! A NaN among the *values* spreads further, as it does in the reference, where a hidden value is
//! multiplied by an exact 0, which for NaN is NaN: the reference then loses every row of the head,
//! the kernels at most the rows of the tiles that hold a visible pair with it. The same is true of
//! gradients, where every operand is a factor. So tiles bound the damage; only rows that share no
//! live tile with the NaN are promised to keep all their bits.
use crate::oracle::{Naive, Part, Random, kernels, runners};

const TILE: usize = 64;
const DARK: usize = 70;

/// Two chains of 70 and 130 tokens, one head.
fn problem(seed: u64) -> Naive {
    let mut random = Random(seed);
    let ends = (0..200).map(|token| if token < DARK { DARK as i32 } else { 200 }).collect();
    Naive::random(&mut random, [1, 1, 16], vec![ends])
}

fn spoil(x: &mut [f64], token: usize) {
    x[token * 16 + 3] = f64::NAN;
}

#[test]
fn a_nan_among_the_keys_reaches_the_rows_that_see_it_and_no_other() {
    for token in [0, 30, 69, 70, 150, 199] {
        let clean = problem(1);
        let mut spoiled = clean.clone();
        spoil(&mut spoiled.k, token);
        for runner in runners() {
            let (before, after) = (runner.run(&clean), runner.run(&spoiled));
            for row in 0..200 {
                let found = &after.o[row * 16..(row + 1) * 16];
                if clean.visible(0, row, token) {
                    assert!(
                        found.iter().all(|x| x.is_nan()),
                        "{}: row {row} sees key {token}",
                        runner.name()
                    );
                } else {
                    assert_eq!(
                        found,
                        &before.o[row * 16..(row + 1) * 16],
                        "{}: row {row}, key {token}",
                        runner.name()
                    );
                }
            }
        }
    }
}

#[test]
fn a_nan_in_a_query_stays_in_its_row() {
    for token in [0, 69, 70, 130, 199] {
        let clean = problem(2);
        let mut spoiled = clean.clone();
        spoil(&mut spoiled.q, token);
        for runner in runners() {
            let (before, after) = (runner.run(&clean), runner.run(&spoiled));
            for row in 0..200 {
                let entries = row * 16..(row + 1) * 16;
                match row == token {
                    true => assert!(
                        after.o[entries].iter().all(|x| x.is_nan()),
                        "{}: row {row}",
                        runner.name()
                    ),
                    false => assert_eq!(
                        after.o[entries.clone()],
                        before.o[entries],
                        "{}: row {row}",
                        runner.name()
                    ),
                }
            }
        }
    }
}

#[test]
fn a_nan_among_the_values_reaches_the_rows_that_see_it() {
    for token in [0, 69, 150] {
        let clean = problem(3);
        let mut spoiled = clean.clone();
        spoil(&mut spoiled.v, token);
        for runner in runners() {
            let after = runner.run(&spoiled);
            for row in (0..200).filter(|&row| clean.visible(0, row, token)) {
                assert!(
                    after.o[row * 16 + 3].is_nan(),
                    "{}: row {row} sees value {token}",
                    runner.name()
                );
            }
        }
    }
}

#[test]
fn gradients_of_what_sees_a_nan_are_nan() {
    // The second key is another one that row `token` sees.
    for [token, other] in [[30, 0], [150, DARK]] {
        let clean = problem(4);
        for spoil_part in [0, 1, 2, 3] {
            let mut spoiled = clean.clone();
            let part = [&mut spoiled.q, &mut spoiled.k, &mut spoiled.v, &mut spoiled.upstream];
            spoil(part.into_iter().nth(spoil_part).unwrap(), token);
            for runner in runners() {
                let after = runner.run(&spoiled);
                let gradient = &after.dq[token * 16..(token + 1) * 16];
                assert!(
                    gradient.iter().any(|x| x.is_nan()),
                    "{}: dq of token {token}",
                    runner.name()
                );
                let gradient = &after.dk[token * 16..(token + 1) * 16];
                assert!(
                    gradient.iter().any(|x| x.is_nan()),
                    "{}: dk of token {token}",
                    runner.name()
                );
                // With NaN among its scores a row has no weight that is a number, for any key.
                let gradient = &after.dv[other * 16..(other + 1) * 16];
                let spoils_scores = spoil_part < 2;
                assert!(
                    !spoils_scores || gradient.iter().all(|x| x.is_nan()),
                    "{}: dv of token {other}",
                    runner.name()
                );
            }
        }
    }
}

#[test]
fn rows_that_share_no_live_tile_with_a_nan_keep_every_bit() {
    let token = 30;
    let clean = problem(5);
    for spoil_part in [0, 1, 2, 3] {
        let mut spoiled = clean.clone();
        let part = [&mut spoiled.q, &mut spoiled.k, &mut spoiled.v, &mut spoiled.upstream];
        spoil(part.into_iter().nth(spoil_part).unwrap(), token);
        for runner in kernels() {
            let (before, after) = (runner.run(&clean), runner.run(&spoiled));
            // Tokens before 70 fill the first tile and 6 tokens of the second; from the third on no
            // tile pair touches them.
            for row in 2 * TILE..200 {
                for part in Part::OF_QUERIES {
                    let same =
                        before.bits(part, &clean, [0, row]) == after.bits(part, &clean, [0, row]);
                    assert!(same, "{}: {part:?} of row {row}", runner.name());
                }
                for part in Part::OF_KEYS {
                    let same =
                        before.bits(part, &clean, [0, row]) == after.bits(part, &clean, [0, row]);
                    assert!(same, "{}: {part:?} of key {row}", runner.name());
                }
            }
        }
    }
}

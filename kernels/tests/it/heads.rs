//! Contract: heads of any number of features, query heads that share key/value heads in groups of
//! any size, and rows of a batch with trees of their own.
use crate::oracle::{Naive, Random, caterpillar, chain, runners, star};

/// What runs where each head dimension is a compilation.
const COMPILED: [usize; 4] = [3, 16, 64, 80];

#[test]
fn heads_of_1_to_256_features_match_the_loops() {
    let mut random = Random(1);
    for head_dim in [1, 3, 4, 8, 16, 20, 32, 64, 80, 96, 128, 256] {
        let ends = vec![random.pieces(131, 25)];
        let problem = Naive::random(&mut random, [2, 1, head_dim], ends);
        let expected = problem.solve();
        for runner in runners()
            .into_iter()
            .filter(|runner| !runner.compiles() || COMPILED.contains(&head_dim))
        {
            runner.check(&format!("{head_dim} features"), &problem, &expected);
        }
    }
}

#[test]
fn query_heads_share_key_value_heads_in_groups_of_1_2_3_4_and_8() {
    let mut random = Random(2);
    for group in [1, 2, 3, 4, 8] {
        for heads_kv in [1, 2, 3] {
            let ends = vec![random.pieces(71, 15)];
            let problem = Naive::random(&mut random, [group * heads_kv, heads_kv, 16], ends);
            let expected = problem.solve();
            for runner in runners() {
                runner.check(
                    &format!("{group} query heads for each of {heads_kv}"),
                    &problem,
                    &expected,
                );
            }
        }
    }
}

#[test]
fn rows_of_a_batch_have_their_own_trees() {
    let mut random = Random(3);
    let time = 130;
    let mut padded = random.pieces(70, 20);
    padded.extend(70..time as i32);
    let ends = vec![
        random.pieces(time, 30),
        chain(time),
        (0..time as i32).collect(),
        star(20, 9, time),
        padded,
        random.evictions(time),
        caterpillar(5, time),
    ];
    let problem = Naive::random(&mut random, [4, 2, 16], ends);
    let expected = problem.solve();
    for runner in runners() {
        runner.check("seven trees", &problem, &expected);
    }
}

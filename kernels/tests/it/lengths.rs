//! Contract: any number of tokens is right, from one up: less than a tile, a tile, one token more
//! or less, and lengths that no tile divides.
use crate::oracle::{Naive, Random, Runner, chain, runners, targets};
use pleach_kernels::Execution;

/// Tiles have 64 rows and 64 keys.
const LENGTHS: [usize; 15] = [1, 2, 3, 13, 31, 61, 63, 64, 65, 97, 127, 128, 129, 193, 257];

#[test]
fn random_trees_of_every_length_match_the_loops() {
    let mut random = Random(1);
    for time in LENGTHS {
        let ends = vec![random.pieces(time, 1 + time / 5)];
        let problem = Naive::random(&mut random, [4, 2, 16], ends);
        let expected = problem.solve();
        for runner in runners() {
            runner.check(&format!("length {time}"), &problem, &expected);
        }
    }
}

#[test]
fn plain_chains_of_every_length_match_the_loops() {
    let mut random = Random(2);
    for time in LENGTHS {
        let problem = Naive::random(&mut random, [1, 1, 16], vec![chain(time); 2]);
        let expected = problem.solve();
        for runner in runners() {
            runner.check(&format!("chain of {time}"), &problem, &expected);
        }
    }
}

#[test]
fn the_reference_matches_the_loops_on_devices_that_compile_too() {
    let mut random = Random(3);
    for target in targets().into_iter().filter(|target| target.compiles()) {
        let runner = Runner { target, execution: Execution::Reference };
        for time in [1, 13, 65] {
            let ends = vec![random.pieces(time, 1 + time / 5)];
            let problem = Naive::random(&mut random, [4, 2, 16], ends);
            runner.check(&format!("length {time}"), &problem, &problem.solve());
        }
    }
}

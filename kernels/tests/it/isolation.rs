//! Contract: what a row does not see changes nothing in it, to the last bit, output and gradients:
//! neither a sibling nor a cousin at any level of a tree, nor through several layers.
use crate::oracle::{Answer, Naive, Part, Random, Runner, binary, runners, values};
use burn::tensor::Tensor;
use pleach_kernels::tree_attention;

/// Three levels of branches below the root, so that each leaf has a sibling, first cousins and
/// second cousins.
fn family(random: &mut Random, piece: usize, window: Option<u32>) -> Naive {
    let problem = Naive::random(random, [4, 2, 16], vec![binary(3, piece)]);
    match window {
        Some(window) => problem.windowed(window),
        None => problem,
    }
}

/// A token in the trunk of one side, one in its first leaf, one in the last leaf of the other side.
fn changed_tokens(piece: usize) -> [usize; 3] {
    [piece + piece / 2, 3 * piece + piece / 2, 14 * piece + piece / 2]
}

fn assert_isolated(context: &str, problem: &Naive, changed: usize, [before, after]: [&Answer; 2]) {
    let mut differing = 0;
    for token in (0..problem.time).filter(|&token| token != changed) {
        let same =
            |part| before.bits(part, problem, [0, token]) == after.bits(part, problem, [0, token]);
        let (sees, is_seen) =
            (problem.visible(0, token, changed), problem.visible(0, changed, token));
        if !sees {
            assert!(
                Part::OF_QUERIES.into_iter().all(same),
                "{context}: row {token} does not see {changed}"
            );
        }
        // A key that no row sees together with the changed one.
        let together = (0..problem.time)
            .any(|i| problem.visible(0, i, token) && problem.visible(0, i, changed));
        if !together && !is_seen {
            assert!(
                Part::OF_KEYS.into_iter().all(same),
                "{context}: key {token} is never seen with {changed}"
            );
        }
        differing += usize::from(sees && !same(Part::O)) + usize::from(is_seen && !same(Part::Dv));
    }
    assert!(differing > 0, "{context}: the change of {changed} must show where it is visible");
}

#[test]
fn siblings_and_cousins_at_three_levels_are_invisible() {
    let mut random = Random(1);
    for (piece, window) in [(3, None), (5, None), (13, None), (20, None), (13, Some(30))] {
        let problem = family(&mut random, piece, window);
        for changed in changed_tokens(piece) {
            let mut other = problem.clone();
            other.disturb(&mut random, [0, changed]);
            for runner in runners() {
                let (before, after) = (runner.run(&problem), runner.run(&other));
                let context = format!("pieces of {piece}, window {window:?}, {}", runner.name());
                assert_isolated(&context, &problem, changed, [&before, &after]);
            }
        }
    }
}

#[test]
fn tokens_evicted_in_place_are_invisible_to_later_rows() {
    let mut random = Random(2);
    let ends = vec![random.evictions(150)];
    let problem = Naive::random(&mut random, [4, 2, 16], ends);
    for changed in [5, 63, 64, 100] {
        let mut other = problem.clone();
        other.disturb(&mut random, [0, changed]);
        for runner in runners() {
            let (before, after) = (runner.run(&problem), runner.run(&other));
            assert_isolated(&runner.name(), &problem, changed, [&before, &after]);
        }
    }
}

#[test]
fn another_row_of_the_batch_is_invisible() {
    let mut random = Random(3);
    let ends = vec![random.pieces(100, 20), random.pieces(100, 20)];
    let problem = Naive::random(&mut random, [4, 2, 16], ends);
    let mut other = problem.clone();
    (0..100).for_each(|token| other.disturb(&mut random, [1, token]));
    for runner in runners() {
        let (before, after) = (runner.run(&problem), runner.run(&other));
        for part in Part::ALL {
            for token in 0..100 {
                let same = before.bits(part, &problem, [0, token])
                    == after.bits(part, &problem, [0, token]);
                assert!(same, "{}: {part:?} of token {token}", runner.name());
            }
        }
        assert_ne!(before.o, after.o);
    }
}

/// Output and gradient of three layers that share a mask, each with the last one's output as
/// queries, keys and values.
fn three_layers(runner: &Runner, problem: &Naive) -> [Vec<f64>; 2] {
    let mask = runner.mask(problem);
    let x = problem.tensor(&problem.q, problem.heads_q, &runner.target).require_grad();
    let upstream = problem.tensor(&problem.upstream, problem.heads_q, &runner.target);
    let mut hidden: Tensor<4> = x.clone();
    for _ in 0..3 {
        let attend =
            |q, k, v| tree_attention(q, k, v, &mask, &runner.config(problem.scale)).unwrap();
        hidden = hidden.clone() + attend(hidden.clone(), hidden.clone().mul_scalar(2.0), hidden);
    }
    let gradients = hidden.clone().mul(upstream).sum().backward();
    [values(hidden), values(x.grad(&gradients).unwrap())]
}

#[test]
fn cousins_stay_invisible_through_three_layers() {
    let mut random = Random(4);
    for piece in [5, 20] {
        let problem = Naive::random(&mut random, [2, 2, 16], vec![binary(3, piece)]);
        for changed in changed_tokens(piece) {
            let mut other = problem.clone();
            other.disturb(&mut random, [0, changed]);
            for runner in runners() {
                let [before, after] =
                    [&problem, &other].map(|problem| three_layers(&runner, problem));
                let relative = |token: usize| {
                    problem.visible(0, token, changed) || problem.visible(0, changed, token)
                };
                for head in 0..problem.heads_q {
                    for token in (0..problem.time).filter(|&token| !relative(token)) {
                        let start = (head * problem.time + token) * 16;
                        for (before, after) in before.iter().zip(&after) {
                            let [before, after] = [before, after]
                                .map(|x| x[start..start + 16].iter().map(|x| x.to_bits()));
                            assert!(
                                before.eq(after),
                                "{}: token {token} is no relative of {changed}",
                                runner.name()
                            );
                        }
                    }
                }
                assert_ne!(before, after);
            }
        }
    }
}

//! Contract: measured against a float64 run, the error of a kernel is at most twice that of plain
//! operations in the same dtype on the same device, at the worst entry (where two roundings of the
//! largest summand are granted) and in the root mean square: for the output and each gradient
//! apart, at ordinary scores and at scores so large that the softmax is saturated.
use crate::oracle::{Naive, Part, Random, Runner, Target, kernels};
use pleach_kernels::Execution;
use pleach_kernels::problem::NamedProblem;

const TIME: usize = 700;
/// What the usual scale is multiplied by; at 30 a row's weight lies almost wholly on one key.
const SHARPNESS: [f64; 3] = [1.0, 8.0, 30.0];

/// Largest and root mean square error.
#[derive(Debug)]
struct Errors {
    largest: f64,
    rms: f64,
}

impl Errors {
    fn of(found: &[f64], expected: &[f64]) -> Self {
        let differences = || found.iter().zip(expected).map(|(a, b)| (a - b).abs());
        let squares: f64 = differences().map(|x| x * x).sum();
        // NaN is larger than any budget, and `f64::max` would drop it.
        let largest =
            differences().fold(0.0, |max: f64, x| if x > max || x.is_nan() { x } else { max });
        Self { largest, rms: (squares / found.len() as f64).sqrt() }
    }
}

fn problem(named: NamedProblem, seed: u64, sharpness: f64, head_dim: usize) -> Naive {
    let mut random = Random(seed);
    let tree = named.tree(TIME);
    let mut problem = Naive::random(&mut random, [2, 1, head_dim], vec![tree.ends]);
    problem.positions = vec![tree.positions];
    problem.scale *= sharpness;
    problem
}

fn check(context: &str, problem: &Naive, kernel: &Runner) {
    let expected = problem.solve();
    let Target { name, device, dtype } = &kernel.target;
    let target = Target { name: name.clone(), device: device.clone(), dtype: *dtype };
    let plain = Runner { target, execution: Execution::Reference }.run(problem);
    let found = kernel.run(problem);
    for part in Part::ALL {
        // A score's gradient is the difference of two rounded numbers.
        let rounding = 2.0 * f64::from(f32::EPSILON) * problem.largest_summand(part);
        let [plain, found] =
            [&plain, &found].map(|answer| Errors::of(answer.part(part), expected.part(part)));
        let within =
            found.largest <= 2.0 * plain.largest + rounding && found.rms <= 2.0 * plain.rms;
        let figures = format!("{found:?}, plain operations {plain:?}, rounding {rounding:e}");
        assert!(within, "{context} on {}: {part:?} {figures}", kernel.name());
    }
}

fn check_all(named: NamedProblem) {
    for (seed, sharpness) in
        [1, 2, 3].into_iter().flat_map(|seed| SHARPNESS.map(|sharpness| (seed, sharpness)))
    {
        for kernel in kernels().iter().filter(|kernel| kernel.is_single()) {
            let few = [NamedProblem::Fold, NamedProblem::RandomTree].contains(&named) && seed == 1;
            if kernel.compiles() && !few {
                continue;
            }
            let head_dim = if kernel.compiles() { 16 } else { 64 };
            let problem = problem(named, seed, sharpness, head_dim);
            check(&format!("{named}, seed {seed}, scores x {sharpness}"), &problem, kernel);
        }
    }
}

#[test]
fn within_budget_on_causal() {
    check_all(NamedProblem::Causal);
}

#[test]
fn within_budget_on_fold() {
    check_all(NamedProblem::Fold);
}

#[test]
fn within_budget_on_cleared_results() {
    check_all(NamedProblem::ClearedResults);
}

#[test]
fn within_budget_on_groups() {
    check_all(NamedProblem::GroupLongPrompt);
    check_all(NamedProblem::GroupLongAnswers);
}

#[test]
fn within_budget_on_caterpillar() {
    check_all(NamedProblem::Caterpillar);
}

#[test]
fn within_budget_on_random_tree() {
    check_all(NamedProblem::RandomTree);
}

#[test]
fn within_budget_under_windows_and_in_other_heads() {
    for (window, head_dim) in
        [(Some(50), 20), (Some(300), 128), (None, 8), (None, 128), (None, 256)]
    {
        let mut problem = problem(NamedProblem::RandomTree, 4, 1.0, head_dim);
        problem.window = window;
        for kernel in kernels().iter().filter(|kernel| kernel.is_single() && !kernel.compiles()) {
            check(&format!("window {window:?}, {head_dim} features"), &problem, kernel);
        }
    }
}

#[test]
fn float64_is_right_where_the_softmax_is_saturated() {
    for (named, scale) in [
        (NamedProblem::Fold, 30.0),
        (NamedProblem::RandomTree, 30.0),
        (NamedProblem::RandomTree, -64.0),
    ] {
        let problem = problem(named, 6, scale, 16);
        let expected = problem.solve();
        for kernel in kernels().iter().filter(|kernel| !kernel.is_single()) {
            kernel.check(&format!("{named}, scores x {scale}"), &problem, &expected);
        }
    }
}

/// Scores that are all about 1,500; softmax does not change when a number is added to all scores.
fn far_from_zero() -> Naive {
    let mut problem = problem(NamedProblem::Fold, 5, 1.0, 16);
    problem.k = problem
        .k
        .iter()
        .enumerate()
        .map(|(i, x)| if i % 16 == 0 { 20.0 } else { x / 16.0 })
        .collect();
    problem.q = problem
        .q
        .iter()
        .enumerate()
        .map(|(i, x)| if i % 16 == 0 { 300.0 } else { x / 16.0 })
        .collect();
    problem
}

#[test]
fn equal_scores_far_from_zero_weigh_the_same() {
    let problem = far_from_zero();
    let expected = problem.solve();
    for kernel in kernels() {
        let found = kernel.run(&problem);
        // A score of 1,500 is rounded to multiples of epsilon x 1,024, and its exponential inherits
        // that as a relative error.
        let epsilon = if kernel.is_single() { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let error = Errors::of(&found.o, &expected.o).largest;
        assert!(error <= 8.0 * 1_024.0 * epsilon, "{}: {error:e}", kernel.name());
    }
}

#[test]
fn low_scores_give_finite_gradients_up_to_a_last_row_inside_a_tile() {
    let mut problem = far_from_zero();
    problem.q.iter_mut().for_each(|x| *x = -*x);
    assert!(
        !problem.time.is_multiple_of(64) && problem.visible(0, problem.time - 1, 63),
        "the first keys are seen to the end"
    );
    let expected = problem.solve();
    for kernel in kernels() {
        let found = kernel.run(&problem);
        let epsilon = if kernel.is_single() { f64::from(f32::EPSILON) } else { f64::EPSILON };
        for part in Part::ALL {
            let error = Errors::of(found.part(part), expected.part(part)).largest;
            // As above, relative to what is summed: weights are almost equal, so that a row's add
            // up to 1 and a key's to below 16.
            let sum = if Part::OF_KEYS.contains(&part) { 16.0 } else { 1.0 };
            let budget = 8.0 * 1_024.0 * epsilon * problem.largest_summand(part) * sum;
            assert!(error <= budget, "{}: {part:?} {error:e}, budget {budget:e}", kernel.name());
        }
    }
}

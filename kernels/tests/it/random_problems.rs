//! Contract: whatever is drawn together (lengths, heads, features, batches, kinds of interval,
//! padding, windows, scales), the answer is that of the loops.
use crate::oracle::{Naive, Random, caterpillar, kernels, star};

fn ends(random: &mut Random, time: usize) -> Vec<i32> {
    let real = if random.below(3) == 0 { 1 + random.below(time) } else { time };
    let mut ends = match random.below(6) {
        0 => random.evictions(real),
        1 => random.tree(real),
        2 => star(1 + random.below(real), 1 + random.below(20), real),
        3 => caterpillar(1 + random.below(40), real),
        _ => {
            let longest = 1 + random.below(real);
            random.pieces(real, longest)
        }
    };
    ends.extend(real as i32..time as i32);
    ends
}

fn draw(random: &mut Random, head_dim: usize, longest: usize) -> Naive {
    let time = 1 + random.below(longest);
    let batch = 1 + random.below(3);
    let ends = (0..batch).map(|_| ends(random, time)).collect();
    let heads_kv = 1 + random.below(3);
    let heads_q = heads_kv * [1, 1, 2, 3][random.below(4)];
    let mut problem = Naive::random(random, [heads_q, heads_kv, head_dim], ends);
    problem.scale *= [1.0, 1.0, -1.0, 3.0][random.below(4)];
    match random.below(3) {
        0 => {
            let window = 1 + random.below(time);
            problem.windowed(window as u32)
        }
        _ => problem,
    }
}

#[test]
fn random_problems_match_the_loops_on_cpu_devices() {
    let mut random = Random(1);
    let kernels: Vec<_> = kernels().into_iter().filter(|kernel| !kernel.compiles()).collect();
    for case in 0..200 {
        let head_dim = 1 + random.below(40);
        let problem = draw(&mut random, head_dim, 300);
        let expected = problem.solve();
        for kernel in &kernels {
            kernel.check(&format!("case {case}"), &problem, &expected);
        }
    }
}

#[test]
fn random_problems_match_the_loops_on_wgpu() {
    let mut random = Random(2);
    for kernel in kernels().into_iter().filter(|kernel| kernel.compiles()) {
        for case in 0..40 {
            let problem = draw(&mut random, 16, 300);
            kernel.check(&format!("case {case}"), &problem, &problem.solve());
        }
    }
}

#[test]
fn long_rows_match_the_loops() {
    let mut random = Random(3);
    for longest in [100, 900] {
        let ends = vec![random.pieces(1_500, longest)];
        let problem = Naive::random(&mut random, [2, 1, 16], ends);
        let expected = problem.solve();
        for kernel in kernels() {
            kernel.check(&format!("pieces of up to {longest}"), &problem, &expected);
        }
    }
}

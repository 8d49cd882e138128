//! Contract: burn's gradient checkpointing changes no bit: what it recomputes in front of attention
//! and behind it is what was there.
use crate::oracle::{Naive, Random, Runner, Target, runners, values};
use burn::tensor::Tensor;
use pleach_kernels::tree_attention;

/// Two layers of attention with operations around them that checkpointing drops and computes again.
fn gradients(runner: &Runner, problem: &Naive) -> [Vec<f64>; 4] {
    let mask = runner.mask(problem);
    let [q, k, v, upstream] = problem.tensors(&runner.target);
    let mut hidden = q.clone();
    for _ in 0..2 {
        let query = hidden.clone().mul_scalar(1.25).tanh();
        let (key, value) = (
            k.clone().exp().mul(k.clone()),
            v.clone().swap_dims(1, 2).mul_scalar(-0.5).swap_dims(1, 2),
        );
        let o = tree_attention(query, key, value, &mask, &runner.config(problem.scale)).unwrap();
        hidden = hidden + o.clone().exp().mul(o);
    }
    let gradients = hidden.clone().mul(upstream).sum().backward();
    let gradient = |x: &Tensor<4>| values(x.grad(&gradients).unwrap());
    [gradient(&q), gradient(&k), gradient(&v), values(hidden)]
}

fn checkpointed(runner: &Runner) -> Runner {
    let device = runner.target.device.clone().gradient_checkpointing();
    assert_ne!(
        device.gradient_checkpointing_strategy(),
        runner.target.device.gradient_checkpointing_strategy()
    );
    let target = Target { name: runner.target.name.clone(), device, dtype: runner.target.dtype };
    Runner { target, execution: runner.execution }
}

#[test]
fn checkpointed_gradients_are_equal_to_the_last_bit() {
    let mut random = Random(1);
    let ends = vec![random.pieces(140, 30), random.evictions(140)];
    let problem = Naive::random(&mut random, [4, 2, 16], ends);
    for runner in runners() {
        let [plain, again] =
            [gradients(&runner, &problem), gradients(&checkpointed(&runner), &problem)];
        for (part, (plain, again)) in
            ["dq", "dk", "dv", "output"].iter().zip(plain.iter().zip(&again))
        {
            assert!(
                plain.iter().all(|x| x.is_finite()) && plain.iter().any(|&x| x != 0.0),
                "{}: {part}",
                runner.name()
            );
            let same = plain.iter().zip(again).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{}: {part}", runner.name());
        }
    }
}

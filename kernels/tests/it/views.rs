//! Contract: tensors need not lie in order in memory: transposed, narrowed, broadcast and reversed
//! views give the values of a copy in order, and gradients to the tensors that they view.
use crate::oracle::{Answer, Naive, Random, Runner, assert_close, runners, values};
use burn::tensor::{Tensor, TensorData};
use pleach_kernels::tree_attention;

const HEADS: [usize; 3] = [4, 2, 16];

fn problem(seed: u64) -> Naive {
    let mut random = Random(seed);
    let ends = vec![random.pieces(75, 15), random.pieces(75, 30)];
    Naive::random(&mut random, HEADS, ends)
}

/// How a tensor `[batch, heads, time, head_dim]` is stored, and how it is seen again.
struct View {
    name: &'static str,
    store: fn(Tensor<4>) -> Tensor<4>,
    view: fn(Tensor<4>) -> Tensor<4>,
}

/// A larger tensor of ones around the given one.
fn framed(x: Tensor<4>) -> Tensor<4> {
    let [b, h, t, d] = x.dims();
    let frame = Tensor::ones([b + 1, h + 2, t + 3, d + 5], (&x.device(), x.dtype()));
    frame.slice_assign([1..b + 1, 1..h + 1, 2..t + 2, 4..d + 4], x)
}

const VIEWS: [View; 6] = [
    View { name: "heads behind time", store: |x| x.swap_dims(1, 2), view: |x| x.swap_dims(1, 2) },
    View {
        name: "features before time",
        store: |x| x.swap_dims(2, 3),
        view: |x| x.swap_dims(2, 3),
    },
    View {
        name: "batch last",
        store: |x| x.permute([3, 1, 2, 0]),
        view: |x| x.permute([3, 1, 2, 0]),
    },
    View {
        name: "the middle of a larger tensor",
        store: framed,
        view: |x| {
            let [b, h, t, d] = x.dims();
            x.slice([1..b, 1..h - 1, 2..t - 1, 4..d - 1])
        },
    },
    View { name: "time reversed", store: |x| x.flip([2]), view: |x| x.flip([2]) },
    View {
        name: "features and heads reversed",
        store: |x| x.flip([1, 3]),
        view: |x| x.flip([1, 3]),
    },
];

impl View {
    /// A tensor of its own that lies in memory as it is stored: a lazy view of a view would undo
    /// itself.
    fn stored(&self, x: Tensor<4>) -> Tensor<4> {
        let options = (&x.device(), x.dtype());
        Tensor::from_data((self.store)(x).into_data(), options)
    }
}

/// The answer with q, k, v and the upstream gradient stored and viewed as `views` say; its
/// gradients are those of the stored tensors, seen the same way.
fn run(runner: &Runner, problem: &Naive, views: [&View; 4]) -> Answer {
    let mut constants = problem.constants(&runner.target).into_iter().zip(views);
    let [q, k, v, upstream] =
        std::array::from_fn(|_| constants.next().map(|(x, view)| view.stored(x)).unwrap());
    let leaves = [q, k, v].map(Tensor::require_grad);
    let [q, k, v] = std::array::from_fn(|part| (views[part].view)(leaves[part].clone()));
    let (mask, config) = (runner.mask(problem), runner.config(problem.scale));
    let o = tree_attention(q, k, v, &mask, &config).unwrap();
    let gradients = o.clone().mul((views[3].view)(upstream)).sum().backward();
    let [dq, dk, dv] = std::array::from_fn(|part| {
        values((views[part].view)(leaves[part].grad(&gradients).unwrap()))
    });
    Answer { o: values(o), dq, dk, dv }
}

#[test]
fn views_give_the_bits_of_copies_in_order() {
    let problem = problem(1);
    for runner in runners() {
        let expected = runner.run(&problem);
        for view in &VIEWS {
            let found = run(&runner, &problem, [view; 4]);
            // Dense products of burn may sum views in another order.
            let context = format!("{}, {}", view.name, runner.name());
            match runner.execution {
                pleach_kernels::Execution::Reference => {
                    assert_close(&context, &runner.target, &found, &expected)
                }
                _ => found.assert_same_bits(&context, &expected),
            }
        }
    }
}

#[test]
fn q_k_and_v_may_be_stored_each_in_its_own_way() {
    let problem = problem(2);
    let expected = problem.solve();
    for runner in runners() {
        for first in 0..VIEWS.len() {
            let views = [0, 1, 3, 4].map(|step| &VIEWS[(first + step) % VIEWS.len()]);
            let names = views.map(|view| view.name).join(", ");
            assert_close(
                &format!("{names}, {:?}", runner.execution),
                &runner.target,
                &run(&runner, &problem, views),
                &expected,
            );
        }
    }
}

#[test]
fn a_gradient_that_comes_in_transposed_is_read_right() {
    let problem = problem(6);
    let expected = problem.solve();
    for runner in runners() {
        let [q, k, v, upstream] = problem.tensors(&runner.target);
        let config = runner.config(problem.scale);
        let o = tree_attention(q.clone(), k.clone(), v.clone(), &runner.mask(&problem), &config)
            .unwrap();
        let gradients = o.clone().swap_dims(1, 3).mul(upstream.swap_dims(1, 3)).sum().backward();
        let gradient = |x: &Tensor<4>| values(x.grad(&gradients).unwrap());
        let found = Answer { dq: gradient(&q), dk: gradient(&k), dv: gradient(&v), o: values(o) };
        assert_close(&runner.name(), &runner.target, &found, &expected);
    }
}

#[test]
fn slices_of_one_fused_projection_give_its_gradient() {
    let mut problem = problem(3);
    problem.heads_kv = problem.heads_q;
    problem.k = Random(31).values(problem.q.len());
    problem.v = Random(32).values(problem.q.len());
    let expected = problem.solve();
    let [b, h, t, d] = [problem.batch, problem.heads_q, problem.time, problem.head_dim];
    for runner in runners() {
        let parts =
            [&problem.q, &problem.k, &problem.v].map(|x| problem.tensor(x, h, &runner.target));
        let rows = parts.map(|x| x.swap_dims(1, 2).reshape([b, t, h * d]));
        let fused = Tensor::cat(rows.to_vec(), 2).require_grad();
        let split = |part: usize, x: Tensor<3>| {
            x.narrow(2, part * h * d, h * d).reshape([b, t, h, d]).swap_dims(1, 2)
        };
        let [q, k, v] = [0, 1, 2].map(|part| split(part, fused.clone()));
        let o =
            tree_attention(q, k, v, &runner.mask(&problem), &runner.config(problem.scale)).unwrap();
        let upstream = problem.tensor(&problem.upstream, h, &runner.target);
        let gradients = o.clone().mul(upstream).sum().backward();
        let [dq, dk, dv] =
            [0, 1, 2].map(|part| values(split(part, fused.grad(&gradients).unwrap())));
        assert_close(
            &runner.name(),
            &runner.target,
            &Answer { o: values(o), dq, dk, dv },
            &expected,
        );
    }
}

#[test]
fn broadcast_keys_and_values_gather_the_gradients_of_every_place() {
    let mut problem = problem(4);
    let row = problem.time * problem.head_dim;
    for x in [&mut problem.k, &mut problem.v] {
        let first = x[..row].to_vec();
        x.chunks_exact_mut(row).for_each(|head| head.copy_from_slice(&first));
    }
    let expected = problem.solve();
    let summed =
        |x: &[f64]| (0..row).map(|i| x.iter().skip(i).step_by(row).sum()).collect::<Vec<f64>>();
    let expected = Answer { dk: summed(&expected.dk), dv: summed(&expected.dv), ..expected };
    let shape = [1, 1, problem.time, problem.head_dim];
    for runner in runners() {
        let target = &runner.target;
        let leaf = |x: &[f64]| {
            Tensor::<4>::from_data(
                TensorData::new(x[..row].to_vec(), shape),
                (&target.device, target.dtype),
            )
            .require_grad()
        };
        let (k, v) = (leaf(&problem.k), leaf(&problem.v));
        let [q, wide, _, upstream] = problem.tensors(target);
        let [k_wide, v_wide] = [&k, &v].map(|x| x.clone().expand(wide.dims()));
        let o = tree_attention(
            q.clone(),
            k_wide,
            v_wide,
            &runner.mask(&problem),
            &runner.config(problem.scale),
        )
        .unwrap();
        let gradients = o.clone().mul(upstream).sum().backward();
        let gradient = |x: &Tensor<4>| values(x.grad(&gradients).unwrap());
        let found = Answer { dq: gradient(&q), dk: gradient(&k), dv: gradient(&v), o: values(o) };
        assert_close(&runner.name(), target, &found, &expected);
    }
}

#[test]
fn a_plain_sum_sends_one_number_back_to_every_place() {
    let mut problem = problem(5);
    problem.upstream.fill(1.0);
    let expected = problem.solve();
    for runner in runners() {
        let [q, k, v, _] = problem.tensors(&runner.target);
        let inputs = [q.clone(), k.clone(), v.clone()];
        let [a, b, c] = inputs;
        let o =
            tree_attention(a, b, c, &runner.mask(&problem), &runner.config(problem.scale)).unwrap();
        let gradients = o.clone().sum().backward();
        let gradient = |x: &Tensor<4>| values(x.grad(&gradients).unwrap());
        let found = Answer { dq: gradient(&q), dk: gradient(&k), dv: gradient(&v), o: values(o) };
        assert_close(&runner.name(), &runner.target, &found, &expected);
    }
}

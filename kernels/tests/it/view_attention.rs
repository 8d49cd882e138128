//! Contract: view attention scores row i and key j as if q were rotated to i's index and k to j's
//! index in the view of row i, and sees exactly the keys of the view.
use crate::oracle::{Naive, Random, assert_close, differentiate, targets, values};
use pleach_kernels::{KernelError, Rotary, TreeMask, ViewMask, tree_attention, view_attention};

const FREQUENCIES: [f64; 4] = [1.0, 0.3, 0.05, 0.01];

/// Views of a tape that loses tokens 1 and 2 before row 5, where token 0 comes to stand behind
/// token 3 at row 7, and where row 4 sees token 6, inserted before it later on.
fn views() -> Vec<Vec<u32>> {
    vec![
        vec![0],
        vec![0, 1],
        vec![0, 1, 2],
        vec![0, 1, 2, 3],
        vec![0, 1, 6, 3, 4],
        vec![0, 3, 4, 5],
        vec![0, 3, 4, 5, 6],
        vec![3, 0, 4, 5, 6, 7],
    ]
}

/// Scores by explicit relative angles, one (row, key) pair at a time.
fn expected(problem: &Naive, views: &[Vec<u32>]) -> Vec<f64> {
    let (time, d) = (problem.time, problem.head_dim);
    let at = |x: &[f64], head: usize, token: usize| x[(head * time + token) * d..][..d].to_vec();
    let mut out = Vec::new();
    for head in 0..problem.heads_q {
        let group = head / (problem.heads_q / problem.heads_kv);
        for (i, view) in views.iter().enumerate() {
            let q = at(&problem.q, head, i);
            let scores = view.iter().enumerate().map(|(position, &j)| {
                let k = at(&problem.k, group, j as usize);
                let distance = (view.len() - 1 - position) as f64;
                let pairs = FREQUENCIES.iter().enumerate().map(|(f, frequency)| {
                    let (sin, cos) = (distance * frequency).sin_cos();
                    let (q1, q2, k1, k2) = (q[f], q[f + d / 2], k[f], k[f + d / 2]);
                    cos * (q1 * k1 + q2 * k2) + sin * (q1 * k2 - q2 * k1)
                });
                problem.scale * pairs.sum::<f64>()
            });
            let weights: Vec<f64> = scores.map(f64::exp).collect();
            let sum: f64 = weights.iter().sum();
            let mut o = vec![0.0; d];
            for (weight, &j) in weights.iter().zip(view) {
                let v = at(&problem.v, group, j as usize);
                o.iter_mut().zip(v).for_each(|(o, v)| *o += weight / sum * v);
            }
            out.extend(o);
        }
    }
    out
}

#[test]
fn row_wise_positions_match_explicit_relative_angles() {
    let mut random = Random(1);
    let problem = Naive::random(&mut random, [4, 2, 8], vec![vec![8; 8]]);
    let expected = expected(&problem, &views());
    for target in targets() {
        let mask = ViewMask::new(&views(), &target.device).unwrap();
        let [q, k, v, _] = problem.tensors(&target);
        let found = values(view_attention(q, k, v, &mask, &FREQUENCIES, problem.scale).unwrap());
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                (found - expected).abs() <= target.tolerance(),
                "{}: {found} {expected}",
                target.name
            );
        }
    }
}

#[test]
fn views_of_all_keys_so_far_are_plain_causal_attention_with_its_gradient() {
    let mut random = Random(2);
    let problem = Naive::random(&mut random, [4, 2, 8], vec![vec![9; 9]]);
    let views: Vec<Vec<u32>> = (0..9).map(|i| (0..=i).collect()).collect();
    for target in targets() {
        let mask = ViewMask::new(&views, &target.device).unwrap();
        let tree = TreeMask::new(&problem.ends, &target.device).unwrap();
        let rotary =
            Rotary::new(&problem.positions, &FREQUENCIES, target.dtype, &target.device).unwrap();
        let config = pleach_kernels::AttentionConfig::for_head_dim(8);
        let found = differentiate(&problem, &target, |[q, k, v]| {
            view_attention(q, k, v, &mask, &FREQUENCIES, problem.scale).unwrap()
        });
        let expected = differentiate(&problem, &target, |[q, k, v]| {
            let (q, k) = (rotary.rotate(q).unwrap(), rotary.rotate(k).unwrap());
            tree_attention(q, k, v, &tree, &config).unwrap()
        });
        assert_close("causal views", &target, &found, &expected);
    }
}

#[test]
fn views_that_cannot_be_are_refused() {
    let Some(target) = targets().into_iter().next() else { return };
    let error = |views: &[Vec<u32>]| ViewMask::new(views, &target.device).unwrap_err();
    assert_eq!(error(&[]), KernelError::EmptyMask);
    let invalid = |row, entry, key| KernelError::InvalidView { row, entry, key };
    assert_eq!(error(&[vec![0], vec![]]), invalid(1, 0, 1));
    assert_eq!(error(&[vec![0], vec![0]]), invalid(1, 0, 0));
    assert_eq!(error(&[vec![0], vec![1, 0]]), invalid(1, 0, 1));
    assert_eq!(error(&[vec![0], vec![2, 1]]), invalid(1, 0, 2));
    assert_eq!(error(&[vec![0], vec![0, 1], vec![0, 0, 2]]), invalid(2, 1, 0));
}

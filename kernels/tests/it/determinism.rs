//! Contract: a result depends on nothing but its problem: two runs agree to the last bit, whatever
//! the number of threads, and query heads that are equal give equal bits wherever they stand in
//! their group.
use crate::oracle::{Naive, Random, chain, kernels, runners};

fn problems() -> Vec<Naive> {
    let mut random = Random(1);
    let trees = vec![random.pieces(700, 60), random.pieces(700, 200)];
    let evicted = vec![random.evictions(333)];
    vec![
        Naive::random(&mut random, [6, 2, 16], trees.clone()),
        Naive::random(&mut random, [2, 1, 16], trees).windowed(90),
        Naive::random(&mut random, [3, 3, 16], vec![chain(450)]),
        Naive::random(&mut random, [8, 1, 16], evicted),
    ]
}

#[test]
fn two_runs_agree_to_the_last_bit() {
    for problem in problems() {
        for runner in kernels() {
            let first = runner.run(&problem);
            for _ in 0..2 {
                runner.run(&problem).assert_same_bits(&runner.name(), &first);
            }
        }
    }
}

#[test]
fn one_thread_and_many_agree_to_the_last_bit() {
    for problem in problems() {
        for runner in kernels().into_iter().filter(|runner| !runner.compiles()) {
            let with = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| runner.run(&problem))
            };
            let first = with(1);
            for threads in [2, 3, 5, 16] {
                with(threads)
                    .assert_same_bits(&format!("{threads} threads, {}", runner.name()), &first);
            }
        }
    }
}

#[test]
fn equal_heads_of_a_group_give_equal_bits() {
    let mut random = Random(2);
    let ends = vec![random.pieces(150, 30)];
    let (heads, head_len) = (4, 150 * 16);
    let mut problem = Naive::random(&mut random, [heads, 1, 16], ends);
    for values in [&mut problem.q, &mut problem.upstream] {
        let first = values[..head_len].to_vec();
        values.chunks_exact_mut(head_len).for_each(|head| head.copy_from_slice(&first));
    }
    for runner in runners() {
        let found = runner.run(&problem);
        for values in [&found.o, &found.dq] {
            let mut heads = values.chunks_exact(head_len);
            let first = heads.next().unwrap();
            assert!(heads.all(|head| head == first), "{}", runner.name());
        }
    }
}

//! Contract: nothing of one tree is left when the next one comes: the same kernels serve any number
//! of trees of any shape and length, and a mask means the same however often it was cloned,
//! windowed, planned or dropped and made again.
use crate::oracle::{Naive, Random, caterpillar, chain, kernels, runners};

#[test]
fn fifty_different_trees_one_after_another_are_all_right() {
    let mut random = Random(1);
    let lengths = (0..50).map(|tree| 1 + (tree * 37) % 150);
    let problems: Vec<_> = lengths
        .map(|time| {
            let ends = vec![random.pieces(time, 1 + time / 4), random.evictions(time)];
            Naive::random(&mut random, [2, 1, 16], ends)
        })
        .collect();
    let answers: Vec<_> = problems.iter().map(Naive::solve).collect();
    for runner in runners() {
        for (tree, (problem, expected)) in problems.iter().zip(&answers).enumerate() {
            runner.check(&format!("tree {tree}"), problem, expected);
        }
    }
}

#[test]
fn trees_a_b_a_again_give_the_same_bits() {
    let mut random = Random(2);
    let mut problem = |time: usize, longest: usize| {
        let ends = vec![random.pieces(time, longest)];
        Naive::random(&mut random, [4, 2, 16], ends)
    };
    let (a, b) = (problem(150, 20), problem(150, 70));
    for runner in runners() {
        let masks = [runner.mask(&a), runner.mask(&b)];
        let first = runner.run_under(&a, &masks[0]);
        let other = runner.run_under(&b, &masks[1]);
        let again = runner.run_under(&a, &masks[0]);
        again.assert_same_bits(&format!("the same mask, {}", runner.name()), &first);
        runner.run(&a).assert_same_bits(&format!("a new mask, {}", runner.name()), &first);
        assert_ne!(first, other);
    }
}

#[test]
fn a_mask_means_the_same_after_it_was_planned_again() {
    let mut random = Random(3);
    // Tiles that are full without the window and are not with it: a plan that was kept would show.
    let ends = vec![random.pieces(200, 20), caterpillar(9, 200), chain(200)];
    let problem = Naive::random(&mut random, [2, 1, 16], ends);
    let (narrow, wide) = (problem.clone().windowed(7), problem.clone().windowed(60));
    let (expected, expected_narrow, expected_wide) =
        (problem.solve(), narrow.solve(), wide.solve());
    for runner in kernels() {
        let mask = runner.mask(&problem);
        let first = runner.run_under(&problem, &mask);
        runner.check("before", &problem, &expected);
        let narrow_mask = mask.with_window(&narrow.positions, 7).unwrap();
        let wide_mask = narrow_mask.with_window(&wide.positions, 60).unwrap();
        let narrow_first = runner.run_under(&narrow, &narrow_mask);
        let wide_first = runner.run_under(&wide, &wide_mask);
        runner.check("a window of 7", &narrow, &expected_narrow);
        runner.check("a window of 60", &wide, &expected_wide);
        let name = runner.name();
        runner
            .run(&narrow)
            .assert_same_bits(&format!("the narrow mask made apart, {name}"), &narrow_first);
        runner
            .run(&wide)
            .assert_same_bits(&format!("the wide mask made apart, {name}"), &wide_first);
        let clone = mask.clone();
        runner.run_under(&problem, &clone).assert_same_bits(&format!("a clone, {name}"), &first);
        drop((mask, narrow_mask, wide_mask));
        runner
            .run_under(&problem, &clone)
            .assert_same_bits(&format!("a clone that is left, {name}"), &first);
        drop(clone);
        runner.run(&problem).assert_same_bits(&format!("made again, {name}"), &first);
    }
}

#[test]
fn one_mask_serves_layers_of_other_heads() {
    let mut random = Random(4);
    let ends = vec![random.pieces(100, 20)];
    let problems: Vec<_> = [[4, 2, 16], [2, 2, 16], [6, 1, 16]]
        .map(|sizes| Naive::random(&mut random, sizes, ends.clone()))
        .into();
    for runner in runners() {
        let mask = runner.mask(&problems[0]);
        for problem in &problems {
            let name = runner.name();
            runner
                .run_under(problem, &mask)
                .assert_same_bits(&format!("one mask, {name}"), &runner.run(problem));
            runner.check("one mask", problem, &problem.solve());
        }
    }
}

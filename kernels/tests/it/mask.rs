//! Contract: the dense mask is the interval rule in burn's polarity, and a mask that cannot be is
//! refused before any launch.
use crate::oracle::targets;
use pleach_kernels::{KernelError, TreeMask, dense_mask};

fn rows(mask: &TreeMask) -> Vec<String> {
    let time = mask.dims()[1];
    let masked = dense_mask(mask).into_data();
    let masked: Vec<bool> = masked.iter::<bool>().collect();
    let line = |row: &[bool]| row.iter().map(|&masked| if masked { '.' } else { '#' }).collect();
    masked.chunks(time).map(line).collect()
}

#[test]
fn two_branches_of_one_prompt_cannot_see_each_other() {
    for target in targets() {
        let mask = TreeMask::new(&[[5, 5, 4, 4, 5], [5, 2, 3, 3, 4]], &target.device).unwrap();
        assert_eq!(dense_mask(&mask).dims(), [2, 1, 5, 5]);
        let first = ["#....", "##...", "###..", "####.", "##..#"];
        let padded = ["#....", "##...", "#.#..", "#....", "#...."];
        assert_eq!(rows(&mask), [first, padded].concat(), "{}", target.name);
    }
}

#[test]
fn a_window_hides_what_lies_too_far_back_by_position() {
    for target in targets() {
        let mask = TreeMask::new(&[[5, 5, 3, 5, 5]], &target.device).unwrap();
        let windowed = mask.with_window(&[[0, 1, 2, 2, 3]], 2).unwrap();
        assert_eq!(windowed.window(), Some(2));
        assert_eq!(windowed.rows().row(0).unwrap().window.unwrap().positions, [0, 1, 2, 2, 3]);
        assert_eq!(rows(&windowed), ["#....", "##...", ".##..", ".#.#.", "...##"]);
        assert_eq!(rows(&mask), ["#....", "##...", "###..", "##.#.", "##.##"]);
    }
}

#[test]
fn the_host_keeps_the_ends_for_schedules() {
    for target in targets() {
        let mask = TreeMask::new(&[[2, 2], [1, 1]], &target.device).unwrap();
        assert_eq!(mask.dims(), [2, 2]);
        assert_eq!(mask.rows().row(1).unwrap().ends, [1, 1]);
        assert_eq!(mask.rows().row(2), None);
        let ends: Vec<i64> = mask.ends_bt().into_data().iter::<i64>().collect();
        assert_eq!(ends, [2, 2, 1, 1]);
    }
}

#[test]
fn shorter_rows_are_padded_with_tokens_that_see_nothing_and_nobody_sees() {
    for target in targets() {
        let mask = TreeMask::new(&[vec![4, 2, 4, 4], vec![2, 2]], &target.device).unwrap();
        assert_eq!((mask.dims(), mask.rows().lengths()), ([2, 4], &[4, 2][..]));
        let [full, short] = [["#...", "##..", "#.#.", "#.##"], ["#...", "##..", "....", "...."]];
        assert_eq!(rows(&mask), [full, short].concat(), "{}", target.name);
        let windowed = mask.with_window(&[vec![0, 1, 1, 2], vec![0, 1]], 1).unwrap();
        assert_eq!(rows(&windowed)[4..], ["#...", ".#..", "....", "...."]);
        // A window counts in positions of the rows as they were given.
        assert_eq!(
            mask.with_window(&[[0, 1, 1, 2], [0, 1, 0, 0]], 1).unwrap_err(),
            KernelError::RowLength { array: "positions", row: 1, expected: 2, found: 4 }
        );
    }
}

#[test]
fn masks_that_cannot_be_are_refused() {
    let Some(target) = targets().into_iter().next() else { return };
    let error = |ends: &[Vec<i32>]| TreeMask::new(ends, &target.device).unwrap_err();
    assert_eq!(error(&[]), KernelError::EmptyMask);
    assert_eq!(error(&[vec![]]), KernelError::EmptyRow { row: 0 });
    assert_eq!(error(&[vec![1], vec![]]), KernelError::EmptyRow { row: 1 });
    assert_eq!(error(&[vec![2, 0]]), KernelError::EndBeforeToken { row: 0, token: 1, end: 0 });
    assert_eq!(error(&[vec![-1]]), KernelError::EndBeforeToken { row: 0, token: 0, end: -1 });
    assert_eq!(
        error(&[vec![2, 2], vec![3, 2]]),
        KernelError::EndBeyondRow { row: 1, token: 0, end: 3, time: 2 }
    );
    assert_eq!(
        error(&[vec![2, 2], vec![2]]),
        KernelError::EndBeyondRow { row: 1, token: 0, end: 2, time: 1 }
    );
    let mask = TreeMask::new(&[[2, 2]], &target.device).unwrap();
    assert_eq!(mask.with_window(&[[0, 1]], 0).unwrap_err(), KernelError::EmptyWindow);
    assert_eq!(
        mask.with_window(&[[0]], 1).unwrap_err(),
        KernelError::RowLength { array: "positions", row: 0, expected: 2, found: 1 }
    );
    assert_eq!(
        mask.with_window(&[[0, -3]], 1).unwrap_err(),
        KernelError::NegativePosition { array: "positions", row: 0, token: 1, position: -3 }
    );
    assert_eq!(
        mask.with_window(&[[0, 1], [0, 1]], 1).unwrap_err(),
        KernelError::Rows { array: "positions", expected: 1, found: 2 }
    );
}

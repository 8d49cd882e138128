//! Contract: the tiles of a schedule cover exactly the visible pairs of the mask, from both sides,
//! for any intervals (nested or not), windows, paddings and tile sizes; a full tile is visible
//! throughout, and no tile is listed without a visible pair unless a bound over its keys cannot
//! tell.

use pleach_kernels::{
    KernelError,
    problem::NamedProblem,
    schedule::{IntervalRows, Schedule, TileLists, TileSize},
};
use proptest::prelude::*;

/// A batch row as owned arrays.
#[derive(Debug, Clone)]
struct Row {
    ends: Vec<i32>,
    positions: Vec<i32>,
}

fn rows_of(rows: &[Row], window: Option<u32>) -> IntervalRows {
    let ends: Vec<_> = rows.iter().map(|row| &row.ends).collect();
    let positions: Vec<_> = rows.iter().map(|row| &row.positions).collect();
    let plain = IntervalRows::new(&ends).unwrap();
    window.map_or(plain.clone(), |window| plain.with_window(&positions, window).unwrap())
}

/// Whether each tile pair is listed, and as full: `[batch][query tile][key tile]`.
fn listed(
    schedule: &Schedule,
    lists: &TileLists,
    from_queries: bool,
) -> Vec<Vec<Vec<Option<bool>>>> {
    let (queries, keys) = (schedule.query_tiles(), schedule.key_tiles());
    let mut table = vec![vec![vec![None; keys]; queries]; schedule.batch()];
    for (batch, table) in table.iter_mut().enumerate() {
        let side = if from_queries { queries } else { keys };
        for near in 0..side {
            let mut last = None;
            for (far, full) in lists.live(batch * side + near) {
                assert!(last.is_none_or(|last| last < far), "ascending and once each");
                last = Some(far);
                let (query, key) = if from_queries { (near, far) } else { (far, near) };
                table[query][key] = Some(full);
            }
        }
    }
    table
}

fn check(rows: &[Row], window: Option<u32>, tile: TileSize) {
    let rows = rows_of(rows, window);
    let schedule = Schedule::plan(&rows, tile).unwrap();
    let table = listed(&schedule, schedule.by_query(), true);
    assert_eq!(table, listed(&schedule, schedule.by_key(), false), "both sides say the same");
    let mut needed = 0;
    for (row, table) in rows.rows().zip(&table) {
        let time = row.ends.len();
        for (query, table) in table.iter().enumerate() {
            for (key, entry) in table.iter().enumerate() {
                let queries = query * tile.rows..time.min((query + 1) * tile.rows);
                let keys = key * tile.keys..time.min((key + 1) * tile.keys);
                let (width, all) = (keys.len(), queries.len() * keys.len());
                let visible = queries
                    .flat_map(|i| keys.clone().map(move |j| (i, j)))
                    .filter(|&(i, j)| row.sees(i, j))
                    .count();
                needed += visible as u64;
                match entry {
                    None => assert_eq!(visible, 0, "tile {query}, {key} is not listed"),
                    Some(true) => assert_eq!(
                        (visible, width),
                        (all, tile.keys),
                        "tile {query}, {key} is listed as full"
                    ),
                    Some(false) => {
                        let whole = visible == all && width == tile.keys;
                        assert!(
                            !whole,
                            "tile {query}, {key} is visible throughout and not listed as full"
                        );
                        let tight = window.is_none() && tile.rows == tile.keys;
                        assert!(!tight || visible > 0, "tile {query}, {key} is listed for nothing");
                    }
                }
            }
        }
    }
    assert_eq!(schedule.stats(&rows).needed_pairs, needed);
}

fn row(time: usize) -> impl Strategy<Value = Row> {
    let token = (0..=3u8, 0..=time, 0..=time as i32);
    proptest::collection::vec(token, time).prop_map(move |draws| {
        let end = |(at, (kind, end, _)): (usize, &(u8, usize, i32))| match kind {
            0 => time,
            1 => at,
            _ => at + end % (time - at + 1),
        };
        let ends = draws.iter().enumerate().map(end).map(|end| end as i32).collect();
        Row { ends, positions: draws.iter().map(|draw| draw.2).collect() }
    })
}

/// Rows of up to 39 tokens that random intervals cover, mostly without nesting.
fn batch() -> impl Strategy<Value = Vec<Row>> {
    proptest::collection::vec((1usize..40).prop_flat_map(row), 1..4)
}

proptest! {
    #[test]
    fn random_intervals_are_covered_exactly(rows in batch(), r in 1usize..9, k in 1usize..9, w in proptest::option::of(1u32..20)) {
        check(&rows, w, TileSize { rows: r, keys: k });
        check(&rows, w, TileSize { rows: r, keys: r });
    }
}

#[test]
fn named_problems_are_covered_exactly_whatever_the_length() {
    for problem in NamedProblem::ALL {
        for time in [1, 2, 63, 64, 65, 257, 512] {
            let tree = problem.tree(time);
            assert_eq!((tree.ends.len(), tree.positions.len()), (time, time), "{problem}");
            let rows = [Row { ends: tree.ends, positions: tree.positions }];
            for window in [None, Some(1), Some(100)] {
                check(&rows, window, TileSize { rows: 32, keys: 16 });
                check(&rows, window, TileSize { rows: 64, keys: 64 });
            }
        }
    }
}

#[test]
fn folds_cost_little_more_than_what_is_visible() {
    let tree = NamedProblem::Fold.tree(8192);
    let rows = IntervalRows::new(&[tree.ends]).unwrap();
    let stats = Schedule::plan(&rows, TileSize { rows: 64, keys: 64 }).unwrap().stats(&rows);
    assert!(stats.block_overhead() < 1.03, "{stats:?}");
    assert_eq!(stats.dense_pairs, 8192 * 8192);
}

#[test]
fn a_chain_under_a_window_lists_as_many_tiles_as_the_window_holds() {
    let (time, side) = (1 << 14, 64);
    let chain = Row { ends: vec![time; time as usize], positions: (0..time).collect() };
    let schedule =
        Schedule::plan(&rows_of(&[chain], Some(128)), TileSize { rows: side, keys: side }).unwrap();
    let lists = schedule.by_query();
    let listed: usize = (0..lists.len()).map(|list| lists.live(list).count()).sum();
    assert!(listed <= 3 * time as usize / side);
}

#[test]
fn tiles_without_sides_are_refused() {
    let rows = IntervalRows::new(&[[1]]).unwrap();
    for (rows_of, keys) in [(0, 4), (4, 0)] {
        let refused = Schedule::plan(&rows, TileSize { rows: rows_of, keys }).unwrap_err();
        assert_eq!(refused, KernelError::EmptyTile);
    }
}

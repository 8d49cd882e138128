//! Contract: the rule `j <= i < ends[j]` holds pair by pair wherever intervals begin and end: on
//! the edges of tiles of 64 and beside them, nested or not, disjoint or overlapping, seen by one
//! row or by none.
use crate::oracle::{Naive, Random, caterpillar, chain, runners, star};

fn check(context: &str, random: &mut Random, ends: Vec<i32>) {
    let problem = Naive::random(random, [2, 1, 16], vec![ends]);
    let expected = problem.solve();
    for runner in runners() {
        runner.check(context, &problem, &expected);
    }
}

#[test]
fn ends_on_before_and_after_tile_edges() {
    let mut random = Random(1);
    let time = 193;
    for edge in [64, 128, 192] {
        for end in [edge - 1, edge, edge + 1] {
            let ends = (0..time).map(|token| if token < 10 { end } else { time }).collect();
            check(&format!("ten keys end at {end}"), &mut random, ends);
            let ends = (0..time).map(|token| if token < end { end } else { time }).collect();
            check(&format!("a tree of {end} beside another"), &mut random, ends);
        }
    }
}

#[test]
fn starts_on_before_and_after_tile_edges() {
    let mut random = Random(2);
    let time = 193;
    for start in [63, 64, 65, 127, 128, 129] {
        let leaf = |token: i32| token >= start && token < start + 64;
        let ends = (0..time).map(|token| if leaf(token) { start + 64 } else { time }).collect();
        check(&format!("a leaf of a tile's length from {start}"), &mut random, ends);
    }
}

#[test]
fn a_plain_chain_a_star_and_caterpillars() {
    let mut random = Random(3);
    check("chain", &mut random, chain(200));
    check("star of short leaves", &mut random, star(70, 6, 200));
    check("star of single tokens", &mut random, star(100, 1, 200));
    check("star of leaves as long as a tile", &mut random, star(64, 64, 256));
    for step in [1, 7, 32, 64] {
        check(&format!("caterpillar in steps of {step}"), &mut random, caterpillar(step, 200));
    }
}

#[test]
fn overlapping_ranges_of_one_query_tile() {
    let mut random = Random(4);
    let time = 150;
    // Each key of the first tile is visible until another row of the second one, in an order that
    // does not nest.
    let ends =
        (0..time).map(|token| if token < 64 { 64 + (token * 29) % 64 + 1 } else { time }).collect();
    check("ranges that overlap", &mut random, ends);
    let ends = (0..time).map(|token| (token + 20).min(time)).collect();
    check("ranges that slide", &mut random, ends);
}

#[test]
fn rows_in_the_middle_that_see_nothing() {
    let mut random = Random(5);
    let time = 200;
    for (from, to) in [(64, 128), (60, 130), (70, 71), (100, 200)] {
        let dark = |token: i32| token >= from && token < to;
        let ends = (0..time)
            .map(|token| {
                if token < from {
                    from
                } else if dark(token) {
                    token
                } else {
                    time
                }
            })
            .collect();
        check(&format!("rows {from} to {to} see nothing"), &mut random, ends);
    }
}

#[test]
fn keys_and_values_under_disjoint_ranges_gather_their_own_gradients() {
    let mut random = Random(6);
    let mut ends = Vec::new();
    for length in [5, 59, 64, 65, 1, 30] {
        let end = ends.len() as i32 + length;
        ends.resize(end as usize, end);
    }
    check("six documents", &mut random, ends);
    // Neighbouring keys that no row sees together: each only its own token, or its own and the
    // next.
    check("each token alone", &mut random, (1..=150).collect());
    check("pairs", &mut random, (0..150).map(|token| token / 2 * 2 + 2).collect());
}

#[test]
fn intervals_that_do_not_nest_match_the_loops() {
    let mut random = Random(7);
    for time in [29, 64, 130, 200] {
        let ends = random.evictions(time);
        check(&format!("{time} tokens evicted in place"), &mut random, ends);
    }
    // Blocks of 16 leave the cache oldest first, as an engine of limited memory evicts them.
    let ends = (0..200).map(|token| (token / 16 * 16 + 80).min(200)).collect();
    check("blocks evicted in order", &mut random, ends);
}

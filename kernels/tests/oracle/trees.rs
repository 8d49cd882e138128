//! Interval ends of trees whose shape is known.

/// One path: plain causal attention.
pub(crate) fn chain(time: usize) -> Vec<i32> {
    vec![time as i32; time]
}

/// A prompt that all see, then leaves that see it and themselves.
pub(crate) fn star(prompt: usize, leaf: usize, time: usize) -> Vec<i32> {
    let end_of = |token: usize| (prompt + (token - prompt + 1).next_multiple_of(leaf)).min(time);
    (0..time).map(|token| if token < prompt { time } else { end_of(token) } as i32).collect()
}

/// A trunk in steps, with a leaf as long as a step behind each: the deepest tree.
pub(crate) fn caterpillar(step: usize, time: usize) -> Vec<i32> {
    let end_of = |token: usize| {
        if (token / step).is_multiple_of(2) {
            time
        } else {
            (token + 1).next_multiple_of(step).min(time)
        }
    };
    (0..time).map(|token| end_of(token) as i32).collect()
}

/// A piece with two children, and so on: `levels` generations below the root, every piece of
/// `piece` tokens.
pub(crate) fn binary(levels: u32, piece: usize) -> Vec<i32> {
    let mut ends = Vec::new();
    grow(&mut ends, levels, piece);
    ends
}

fn grow(ends: &mut Vec<i32>, levels: u32, piece: usize) {
    let start = ends.len();
    ends.resize(start + piece, 0);
    if levels > 0 {
        grow(ends, levels - 1, piece);
        grow(ends, levels - 1, piece);
    }
    let end = ends.len() as i32;
    ends[start..start + piece].fill(end);
}

/// Depth of each token in a tree: the tokens before it that it sees.
pub(crate) fn depths(ends: &[i32]) -> Vec<i32> {
    (0..ends.len())
        .map(|token| ends[..token].iter().filter(|&&end| end > token as i32).count() as i32)
        .collect()
}

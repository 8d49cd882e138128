use anyhow::Result;
use pleach_kernels::{problem::NamedProblem, schedule::IntervalRow};
use serde::Serialize;

use crate::clock::{Spread, WarmedUp, sample, warm_up};
use crate::floor::Product;
use crate::inputs::{Inputs, Pass, Way, too_large, unavailable};
use crate::setup::Setup;

/// Seconds that the samples of one dense way may take, warm-up apart, before there are fewer of
/// them.
const DENSE_S: f64 = 15.0;

/// The fewest samples of a way that takes long.
const FEWEST: usize = 2;

/// One way, one pass, one problem.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AttentionRow {
    pub(crate) problem: NamedProblem,
    pub(crate) tokens: usize,
    /// Visible (row, key) pairs of one head.
    pub(crate) pairs: u64,
    pub(crate) way: Way,
    /// Tokens that the way runs over: others than `tokens` for a path with as many pairs.
    pub(crate) way_tokens: usize,
    pub(crate) pass: Pass,
    pub(crate) time_s: Option<f64>,
    pub(crate) least_s: Option<f64>,
    pub(crate) greatest_s: Option<f64>,
    pub(crate) repeats: usize,
    /// Flops of the visible pairs over the rate of the product, in the same rounds.
    pub(crate) floor_s: Option<f64>,
    /// Median over the rounds of the floor's time over the measured time.
    pub(crate) rate: Option<f64>,
    /// Time with backward less the time without; in rows with backward.
    pub(crate) backward_difference_s: Option<f64>,
    /// Most memory beyond inputs and outputs.
    pub(crate) peak_bytes: Option<u64>,
    /// Why there is no time.
    pub(crate) skipped: Option<String>,
}

/// One way with what was measured of it.
struct Lane<'a> {
    way: Way,
    inputs: &'a Inputs,
    flops: f64,
    way_tokens: usize,
    state: State,
}

enum State {
    Runs { warm: WarmedUp, repeats: usize, seconds: Vec<f64>, floors: Vec<f64> },
    Skipped(String),
}

/// Both passes of all ways on one problem.
pub(crate) fn measure(
    setup: &Setup,
    product: &Product<'_>,
    problem: NamedProblem,
    tokens: usize,
) -> Result<Vec<AttentionRow>> {
    let forward = measure_pass(setup, product, (problem, tokens), Pass::Forward)?;
    let mut rows = forward;
    for mut row in measure_pass(setup, product, (problem, tokens), Pass::ForwardBackward)? {
        let before =
            rows.iter().find(|before| before.way == row.way && before.pass == Pass::Forward);
        let forward_s = before.and_then(|before| before.time_s);
        row.backward_difference_s = row.time_s.zip(forward_s).map(|(both, forward)| both - forward);
        rows.push(row);
    }
    Ok(rows)
}

fn measure_pass(
    setup: &Setup,
    product: &Product<'_>,
    (problem, tokens): (NamedProblem, usize),
    pass: Pass,
) -> Result<Vec<AttentionRow>> {
    let ends = problem.tree(tokens).ends;
    let pairs = IntervalRow { ends: &ends, window: None }.interval_pairs();
    let path = causal_tokens(pairs);
    let own = Inputs::new(setup, &ends, pass)?;
    let plain = Inputs::new(setup, &vec![path as i32; path], pass)?;
    let mut lanes = Vec::new();
    for way in Way::ALL {
        let (inputs, way_tokens, way_pairs) = match way {
            Way::CausalEqualPairs => (&plain, path, path as u64 * (path as u64 + 1) / 2),
            _ => (&own, tokens, pairs),
        };
        let flops = pass.flops(setup.heads, setup.head_dim, way_pairs);
        let state = match skipped(setup, (way, pass), (problem, tokens)) {
            Some(reason) => State::Skipped(reason),
            None => State::start(setup, way, inputs)?,
        };
        lanes.push(Lane { way, inputs, flops, way_tokens, state });
    }
    let rounds = lanes.iter().map(|lane| lane.state.repeats()).max().unwrap_or(0);
    for round in 0..rounds {
        for lane in lanes.iter_mut().filter(|lane| round < lane.state.repeats()) {
            lane.round(setup, product)?;
        }
    }
    Ok(lanes.into_iter().map(|lane| lane.row(problem, tokens, pairs, pass)).collect())
}

fn skipped(
    setup: &Setup,
    (way, pass): (Way, Pass),
    (problem, tokens): (NamedProblem, usize),
) -> Option<String> {
    match (way, problem) {
        (Way::CausalEqualPairs, NamedProblem::Causal) => {
            Some("tree attention is that on this problem".to_owned())
        }
        _ => too_large(setup, way, pass, tokens),
    }
}

impl State {
    fn start(setup: &Setup, way: Way, inputs: &Inputs) -> Result<Self> {
        let warm = match warm_up(&setup.device, || inputs.run(way)) {
            Ok(warm) => warm,
            Err(error) => match unavailable(&error).filter(|_| way.is_dense()) {
                Some(reason) => return Ok(Self::Skipped(reason)),
                None => return Err(error),
            },
        };
        let affordable = (DENSE_S / warm.run_s).ceil().max(1.0) as usize;
        let repeats = match way.is_dense() {
            true => setup.repeats.min(affordable.max(FEWEST)),
            false => setup.repeats,
        };
        Ok(Self::Runs { warm, repeats, seconds: Vec::new(), floors: Vec::new() })
    }

    fn repeats(&self) -> usize {
        match self {
            Self::Runs { repeats, .. } => *repeats,
            Self::Skipped(_) => 0,
        }
    }
}

impl Lane<'_> {
    /// The product, then the way: the speed of a machine changes while it runs.
    fn round(&mut self, setup: &Setup, product: &Product<'_>) -> Result<()> {
        if let State::Runs { warm, seconds, floors, .. } = &mut self.state {
            floors.push(self.flops / product.rate()?);
            seconds.push(sample(&setup.device, warm.inner, || self.inputs.run(self.way))?);
        }
        Ok(())
    }

    fn row(self, problem: NamedProblem, tokens: usize, pairs: u64, pass: Pass) -> AttentionRow {
        let (seconds, floors, skipped) = match self.state {
            State::Runs { seconds, floors, .. } => (seconds, floors, None),
            State::Skipped(reason) => (Vec::new(), Vec::new(), Some(reason)),
        };
        let rates: Vec<f64> =
            floors.iter().zip(&seconds).map(|(floor, time)| floor / time).collect();
        let time = Spread::of(&seconds);
        AttentionRow {
            problem,
            tokens,
            pairs,
            way: self.way,
            way_tokens: self.way_tokens,
            pass,
            time_s: time.map(|time| time.median),
            least_s: time.map(|time| time.least),
            greatest_s: time.map(|time| time.greatest),
            repeats: seconds.len(),
            floor_s: Spread::of(&floors).map(|floor| floor.median),
            rate: Spread::of(&rates).map(|rate| rate.median),
            backward_difference_s: None,
            peak_bytes: None,
            skipped,
        }
    }
}

/// The length of the path whose pairs are nearest to so many.
fn causal_tokens(pairs: u64) -> usize {
    let below = (((8.0 * pairs as f64 + 1.0).sqrt() - 1.0) / 2.0).floor().max(1.0) as u64;
    let of = |tokens: u64| tokens * (tokens + 1) / 2;
    let nearest =
        if of(below + 1).abs_diff(pairs) < of(below).abs_diff(pairs) { below + 1 } else { below };
    nearest as usize
}

#[cfg(test)]
mod tests {
    use super::causal_tokens;

    #[test]
    fn the_path_of_equal_pairs_is_the_nearest_one() {
        assert_eq!(causal_tokens(100 * 101 / 2), 100);
        // A tie, 2 between 1 and 3, goes to the shorter path.
        assert_eq!([1, 2, 3, 4, 5, 6].map(causal_tokens), [1, 1, 2, 2, 3, 3]);
    }
}

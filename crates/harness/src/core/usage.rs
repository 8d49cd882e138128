//! The size of every reconstructed request against what the API counted.
use std::sync::Arc;

use indexmap::IndexMap;
use pleach_tree::GenerationId;
use serde::Serialize;

/// A call whose input the API counted.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) generation: GenerationId,
    pub(crate) thread: Arc<str>,
    /// The stretch between compactions that it belongs to.
    pub(crate) era: usize,
    /// Whether the system prompt and the tools are in its context, so that nothing is left that
    /// every request holds.
    pub(crate) whole: bool,
    pub(crate) context_bytes: u64,
    pub(crate) context_segments: u64,
    pub(crate) tokens: u64,
}

impl Counted {
    /// Size of the context, what wraps its segments included.
    fn size(&self) -> f64 {
        self.context_bytes as f64 + WRAPPING * self.context_segments as f64
    }
}

/// Reconstructed requests against recorded usage.
///
/// What a log does not hold (the system prompt, tool schemas, some reminders, files
/// attached again after a compaction) is in every request all the same. Between two compactions it
/// hardly changes, so it shows as the intercept of recorded tokens over the reconstructed size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageCheck {
    /// One fit for each stretch between compactions, in the order in which they begin.
    pub eras: Vec<EraUsage>,
}

/// The calls between two compactions of a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EraUsage {
    /// The thread of its first call.
    pub thread: String,
    /// Tokens per byte of text.
    pub tokens_per_byte: f64,
    /// Tokens of every request that the log does not hold.
    pub hidden_tokens: f64,
    /// Its calls, in order.
    pub calls: Vec<CallUsage>,
}

/// One call against its recorded usage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallUsage {
    /// The call.
    pub generation: GenerationId,
    /// Bytes of text in its reconstructed context.
    pub context_bytes: u64,
    /// Segments in its reconstructed context.
    pub context_segments: u64,
    /// Input tokens that the API counted, cached ones included.
    pub recorded_tokens: u64,
    /// Tokens that the fit expects.
    pub expected_tokens: f64,
    /// Whether the two differ by more than the other calls of the stretch do, so that something is
    /// missing or too much.
    pub deviates: bool,
}

/// Bytes that a segment's role marks, and the markup of calls and results, come to; with 150 the
/// calls of a session lie on one line.
const WRAPPING: f64 = 150.0;

/// Calls from which on a stretch can tell which of them stands out.
const ENOUGH: usize = 4;

/// Tokens per byte where a session has too few calls to tell.
const USUAL_TOKENS_PER_BYTE: f64 = 0.3;

/// Share of the recorded tokens, and number of them, below which no difference counts.
const TOLERANCE: (f64, f64) = (0.05, 500.0);

impl UsageCheck {
    /// Fits every stretch between compactions.
    pub(crate) fn of(calls: &[Counted]) -> Self {
        let mut grouped: IndexMap<usize, Vec<&Counted>> = IndexMap::new();
        for call in calls {
            grouped.entry(call.era).or_default().push(call);
        }
        let slopes = grouped.values().flat_map(|era| slopes(era)).collect();
        let shared = median(slopes).unwrap_or(USUAL_TOKENS_PER_BYTE);
        Self { eras: grouped.values().map(|era| fit(era, shared)).collect() }
    }
}

/// The fit of one stretch; `shared` is the slope where its own calls do not tell.
fn fit(era: &[&Counted], shared: f64) -> EraUsage {
    let thread = era.first().map_or_else(String::new, |call| call.thread.to_string());
    let whole = era.iter().all(|call| call.whole);
    let slope = match whole {
        true => median(era.iter().map(|call| call.tokens as f64 / call.size()).collect()),
        false => median(slopes(era)),
    };
    let slope = slope.unwrap_or(shared);
    let rest = |call: &Counted| call.tokens as f64 - slope * call.size();
    let hidden = median(era.iter().copied().map(rest).collect()).filter(|_| !whole);
    let hidden = hidden.unwrap_or_default();
    let spread =
        median(era.iter().map(|call| (rest(call) - hidden).abs()).collect()).unwrap_or_default();
    let calls = era.iter().map(|call| {
        let expected = hidden + slope * call.size();
        let difference = (call.tokens as f64 - expected).abs();
        CallUsage {
            generation: call.generation,
            context_bytes: call.context_bytes,
            context_segments: call.context_segments,
            recorded_tokens: call.tokens,
            expected_tokens: expected,
            // Six spreads are four standard deviations of a normal distribution.
            deviates: era.len() >= ENOUGH
                && difference > 6.0 * spread
                && difference > TOLERANCE.1.max(TOLERANCE.0 * call.tokens as f64),
        }
    });
    EraUsage { thread, tokens_per_byte: slope, hidden_tokens: hidden, calls: calls.collect() }
}

/// The slopes between pairs of calls that differ enough to tell; their median is the estimate of
/// Theil and Sen.
fn slopes(era: &[&Counted]) -> Vec<f64> {
    let step = era.len().div_ceil(400);
    let sample: Vec<&Counted> = era.iter().copied().step_by(step.max(1)).collect();
    let largest = era.iter().map(|call| call.size()).fold(0.0, f64::max);
    let mut slopes = Vec::new();
    for (at, a) in sample.iter().enumerate() {
        for b in &sample[at + 1..] {
            let (dx, dy) = (b.size() - a.size(), b.tokens as f64 - a.tokens as f64);
            if dx.abs() * 20.0 > largest && dy / dx > 0.0 {
                slopes.push(dy / dx);
            }
        }
    }
    slopes
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    let (_, value, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*value)
}

//! The size of every reconstructed request against what the API counted.
use std::ops::Range;
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
    /// Whether it sampled reasoning that is recorded in other words, while later requests hold it
    /// as it was.
    pub(crate) reasons: bool,
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
    /// Tokens of every request that the log does not hold; never more than a request has.
    pub hidden_tokens: f64,
    /// Its calls, in order.
    pub calls: Vec<CallUsage>,
    /// Where what the log does not hold changed for good, in order.
    pub jumps: Vec<UsageJump>,
}

/// A call from which on every request has more or fewer tokens than the log accounts for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageJump {
    /// The first of these calls.
    pub generation: GenerationId,
    /// How many tokens more each has than those before; negative where it has fewer.
    pub tokens: f64,
    /// What most likely happened.
    pub cause: JumpCause,
}

/// What most likely changed the size of requests without a trace in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JumpCause {
    /// Reasoning of the call before, recorded as a summary, is sent back in full.
    Reasoning,
    /// Such reasoning is no longer sent back.
    ReasoningDropped,
    /// Something is sent that the log does not hold.
    Missing,
    /// Something that the log holds is not sent.
    NotSent,
}

impl std::fmt::Display for JumpCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Reasoning => {
                "most likely reasoning of the call before, which is recorded as a summary and sent in full"
            }
            Self::ReasoningDropped => "most likely reasoning that is no longer sent",
            Self::Missing => "most likely something that the file does not hold",
            Self::NotSent => "most likely something that the file holds and no request shows",
        })
    }
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
    let mut slope = slope.unwrap_or(shared);
    let mut levels = Levels::of(era, slope);
    if levels.starts.len() > 1 && !whole {
        // Pairs of calls on both sides of a jump say nothing of the slope.
        let within = levels.ranges().flat_map(|range| slopes(&era[range])).collect();
        slope = median(within).unwrap_or(slope);
        levels = Levels::of(era, slope);
    }
    let hidden = if whole { 0.0 } else { levels.hidden.first().copied().unwrap_or_default() };
    let least = era.iter().map(|call| call.tokens).min().unwrap_or_default();
    let offs = era.iter().enumerate().map(|(at, call)| (levels.rest(call) - levels.at(at)).abs());
    let spread = median(offs.collect()).unwrap_or_default();
    let calls = era.iter().enumerate().map(|(at, call)| {
        // The first call behind a jump is not what those before it let expect.
        let jumps = at > 0 && levels.starts.contains(&at);
        let expected = levels.at(if jumps { at - 1 } else { at }) + slope * call.size();
        let difference = (call.tokens as f64 - expected).abs();
        CallUsage {
            generation: call.generation,
            context_bytes: call.context_bytes,
            context_segments: call.context_segments,
            recorded_tokens: call.tokens,
            expected_tokens: expected,
            // Six spreads are four standard deviations of a normal distribution.
            deviates: jumps
                || era.len() >= ENOUGH && difference > 6.0 * spread && difference > tolerance(call),
        }
    });
    EraUsage {
        thread,
        tokens_per_byte: slope,
        hidden_tokens: hidden.clamp(0.0, least as f64),
        calls: calls.collect(),
        jumps: levels.jumps(era),
    }
}

/// Below which no difference of a call counts.
fn tolerance(call: &Counted) -> f64 {
    TOLERANCE.1.max(TOLERANCE.0 * call.tokens as f64)
}

/// Runs of calls of a stretch whose unrecorded part stays the same.
#[derive(Debug)]
struct Levels {
    slope: f64,
    /// Where each begins.
    starts: Vec<usize>,
    /// The tokens of each that are not recorded.
    hidden: Vec<f64>,
    calls: usize,
}

impl Levels {
    /// How many calls before one say what it should be like.
    const RECENT: usize = 3;

    /// A level ends where two calls in a row differ from those before, in the same way.
    fn of(era: &[&Counted], slope: f64) -> Self {
        let mut levels = Self { slope, starts: vec![0], hidden: Vec::new(), calls: era.len() };
        let rests: Vec<f64> = era.iter().map(|call| levels.rest(call)).collect();
        let steps = rests.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        let step = median(steps).unwrap_or_default();
        let limit = |at: usize| tolerance(era[at]).max(6.0 * step);
        for at in 1..era.len().saturating_sub(1).max(1) {
            let start = levels.starts.last().copied().unwrap_or_default();
            let recent = &rests[start.max(at.saturating_sub(Self::RECENT))..at];
            let Some(before) = median(recent.to_vec()) else { continue };
            let away = |at: usize| rests[at] - before;
            let leaves = era.len() >= ENOUGH
                && away(at).abs() > limit(at)
                && away(at + 1).abs() > limit(at + 1)
                && (away(at + 1) - away(at)).abs() <= limit(at + 1);
            if leaves {
                levels.starts.push(at);
            }
        }
        levels.hidden = levels
            .ranges()
            .map(|range| median(rests[range].to_vec()).unwrap_or_default())
            .collect();
        levels
    }

    /// Tokens of a call that its reconstructed size does not account for.
    fn rest(&self, call: &Counted) -> f64 {
        call.tokens as f64 - self.slope * call.size()
    }

    fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let ends = self.starts.iter().skip(1).copied().chain([self.calls]);
        self.starts.iter().copied().zip(ends).map(|(start, end)| start..end)
    }

    /// The unrecorded tokens of the level of a call.
    fn at(&self, call: usize) -> f64 {
        let level = self.starts.partition_point(|&start| start <= call);
        self.hidden.get(level.saturating_sub(1)).copied().unwrap_or_default()
    }

    fn jumps(&self, era: &[&Counted]) -> Vec<UsageJump> {
        let mut reasoned = false;
        let mut jumps = Vec::new();
        for &at in self.starts.iter().skip(1) {
            let tokens = self.at(at) - self.at(at - 1);
            let cause = match tokens > 0.0 {
                true if era[at - 1].reasons => JumpCause::Reasoning,
                true => JumpCause::Missing,
                false if reasoned => JumpCause::ReasoningDropped,
                false => JumpCause::NotSent,
            };
            reasoned |= cause == JumpCause::Reasoning;
            jumps.push(UsageJump { generation: era[at].generation, tokens, cause });
        }
        jumps
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The fit of calls in one stretch, each with the bytes of its context, the tokens that the API
    /// counted, and whether it reasoned.
    fn fitted(calls: &[(u64, u64, bool)]) -> EraUsage {
        let counted: Vec<Counted> = calls
            .iter()
            .zip(0..)
            .map(|(&(context_bytes, tokens, reasons), id)| Counted {
                generation: GenerationId(id),
                thread: "main".into(),
                era: 0,
                whole: false,
                reasons,
                context_bytes,
                context_segments: 0,
                tokens,
            })
            .collect();
        UsageCheck::of(&counted).eras.remove(0)
    }

    /// Calls of a quarter of a token a byte, over what is hidden at each.
    fn calls(hidden: &[u64]) -> Vec<(u64, u64, bool)> {
        let call = |(at, &hidden): (u64, &u64)| (4_000 * at, hidden + 1_000 * at, false);
        (1..).zip(hidden).map(call).collect()
    }

    #[test]
    fn what_is_hidden_is_what_the_first_calls_have_and_a_jump_is_named_with_its_cause() {
        for (before, behind) in [(3, 13), (8, 8)] {
            let hidden = [vec![20_000; before], vec![45_000; behind]].concat();
            let mut all = calls(&hidden);
            all[before - 1].2 = true;
            let era = fitted(&all);
            assert!((era.hidden_tokens - 20_000.0).abs() < 1.0, "{}", era.hidden_tokens);
            let [jump] = era.jumps.as_slice() else { panic!("{:?}", era.jumps) };
            assert_eq!(jump.generation, GenerationId(before as u32));
            assert_eq!((jump.tokens.round(), jump.cause), (25_000.0, JumpCause::Reasoning));
            let deviating = era.calls.iter().filter(|call| call.deviates);
            assert_eq!(
                deviating.map(|call| call.generation.0).collect::<Vec<_>>(),
                [before as u32],
                "only the first call behind it is not as expected"
            );
        }
    }

    #[test]
    fn a_jump_without_reasoning_is_text_that_is_missing_and_one_back_is_text_that_is_not_sent() {
        let hidden = [vec![20_000; 5], vec![30_000; 5], vec![10_000; 5]].concat();
        let causes = |all: &[(u64, u64, bool)]| -> Vec<JumpCause> {
            fitted(all).jumps.iter().map(|jump| jump.cause).collect()
        };
        let mut all = calls(&hidden);
        assert_eq!(causes(&all), [JumpCause::Missing, JumpCause::NotSent]);
        all[4].2 = true;
        assert_eq!(causes(&all), [JumpCause::Reasoning, JumpCause::ReasoningDropped]);
    }

    #[test]
    fn one_call_that_differs_is_no_jump_and_hidden_context_is_never_more_than_a_request() {
        let mut hidden = vec![20_000; 9];
        hidden[4] = 40_000;
        let era = fitted(&calls(&hidden));
        assert_eq!((era.jumps.len(), era.hidden_tokens.round()), (0, 20_000.0));
        assert!(era.calls[4].deviates);
        let era = fitted(&[(4_000, 900, false), (8_000, 50_000, false)]);
        assert!((0.0..=900.0).contains(&era.hidden_tokens), "{}", era.hidden_tokens);
    }
}

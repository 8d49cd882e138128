use super::lambda::{LambdaConfig, LengthReading};
use crate::error::{ObjectiveError, TrainError};
use burn::config::Config;

/// Along which timeline advantages are estimated.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum Timing {
    /// All optimised tokens of the rollout, one after the other: exact in reward and value terms.
    Concatenated,
    /// Each segment by itself, the reward at the end of each: credits what is early too much. To be
    /// compared with.
    SegmentLocal,
    /// The same, scaled by `(gamma lambda)^(optimised tokens after the segment)` (CompactionRL,
    /// arXiv 2607.05378): exact in the reward term and, in all but the last segment, not in the
    /// value terms. To be compared with, under one lambda for all segments: with a lambda by
    /// segment the power of one is not what the timeline multiplies by.
    Corrected,
}

/// Generalised advantage estimation (arXiv 1506.02438).
#[derive(Config, Debug, Copy, PartialEq)]
pub struct GaeConfig {
    /// Discount of a token.
    #[config(default = 1.0)]
    pub gamma: f64,
    /// How far it looks ahead; 0.97 is what the published comparison of timings was computed with,
    /// not a paper's recommendation.
    #[config(default = "LambdaConfig::Fixed(0.97)")]
    pub lambda: LambdaConfig,
    /// Along which timeline.
    #[config(default = "Timing::Concatenated")]
    pub timing: Timing,
}

/// Advantages of the optimised tokens of one rollout, and what they came from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GaeOutput {
    /// Advantage of each token.
    pub advantages: Vec<f64>,
    /// What a critic should have said at each token: advantage + value.
    pub returns: Vec<f64>,
    /// The lambda of each segment, to be logged.
    pub lambdas: Vec<f64>,
    /// Optimised tokens after each segment, to be logged.
    pub after: Vec<usize>,
}

/// The advantages of one rollout with one reward at its end.
///
/// `values` are a critic's at the optimised tokens in order, the value before each token; `bounds`
/// are the first tokens of the segments and the number of tokens: `[0, 6, 11, 18]` for three. A
/// rollout without tokens is `&[]` and `&[0]`, and has no advantages; segments without tokens are
/// allowed.
///
/// With a lambda by segment, a token looks ahead by that of the segment it stands in.
///
/// # Errors
/// A gamma outside 0 to 1, as [`LambdaConfig::of_segments`], bounds that do not tile the tokens, a
/// reward or a value that is not finite or so large that sums of them are not; the correction under
/// a lambda by segment.
pub fn gae(
    config: &GaeConfig,
    values: &[f64],
    reward: f64,
    bounds: &[usize],
) -> Result<GaeOutput, TrainError> {
    let &GaeConfig { gamma, lambda, timing } = config;
    if !(0.0..=1.0).contains(&gamma) {
        let expected = "a number from 0 to 1";
        return Err(ObjectiveError::Setting {
            setting: "the discount of advantage estimation",
            value: gamma,
            expected,
        }
        .into());
    }
    let tiles =
        bounds.first() == Some(&0) && bounds.last() == Some(&values.len()) && bounds.is_sorted();
    if !tiles {
        let tokens = values.len();
        let what = format!(
            "bounds {bounds:?} do not tile {tokens} tokens: start at 0, never fall, end at the number of tokens"
        );
        return Err(TrainError::Unsupported { what });
    }
    if let Some(&value) = values.iter().chain([&reward]).find(|value| !value.is_finite()) {
        let expected = "finite numbers";
        return Err(ObjectiveError::Setting {
            setting: "a value or reward of advantage estimation",
            value,
            expected,
        }
        .into());
    }
    let by_segment =
        matches!(lambda, LambdaConfig::LengthAdaptive { length: LengthReading::Segment, .. });
    if timing == Timing::Corrected && by_segment {
        let what = "the correction of segment-local advantages needs one lambda: read the length of the rollout, or give one";
        return Err(TrainError::Unsupported { what: what.to_owned() });
    }
    let segments: Vec<&[f64]> =
        bounds.windows(2).map(|bound| &values[bound[0]..bound[1]]).collect();
    let lambdas =
        lambda.of_segments(&segments.iter().map(|segment| segment.len()).collect::<Vec<_>>())?;
    let after: Vec<usize> = bounds.iter().skip(1).map(|end| values.len() - end).collect();
    let mut advantages = vec![0.0; values.len()];
    let mut ahead = Ahead { value: 0.0, advantage: 0.0 };
    let mut due = reward;
    for (index, segment) in segments.iter().enumerate().rev() {
        let factor = gamma * lambdas[index];
        if timing != Timing::Concatenated {
            (ahead, due) = (Ahead { value: 0.0, advantage: 0.0 }, reward);
        }
        let scale = match timing {
            Timing::Corrected => factor.powf(after[index] as f64),
            Timing::Concatenated | Timing::SegmentLocal => 1.0,
        };
        for (offset, &value) in segment.iter().enumerate().rev() {
            let error = std::mem::take(&mut due) + gamma * ahead.value - value;
            ahead = Ahead { value, advantage: error + factor * ahead.advantage };
            advantages[bounds[index] + offset] = scale * ahead.advantage;
        }
    }
    let returns: Vec<f64> =
        advantages.iter().zip(values).map(|(advantage, value)| advantage + value).collect();
    if !advantages.iter().chain(&returns).all(|value| value.is_finite()) {
        return Err(ObjectiveError::Overflow { what: "the advantages of a rollout" }.into());
    }
    Ok(GaeOutput { advantages, returns, lambdas, after })
}

/// What is known of the token ahead.
struct Ahead {
    value: f64,
    advantage: f64,
}

use crate::error::{ObjectiveError, TrainError};
use burn::config::Config;

/// What a reward is compared with.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// The mean over the rollouts of the group (SUPO, arXiv 2510.06727, equation 3; ReSum-GRPO,
    /// arXiv 2509.13313).
    RolloutGroup,
    /// The mean over the other rollouts of the group.
    LeaveOneOut,
    /// The mean over the segments of all rollouts of the group, so that a rollout counts as often
    /// as it was cut: biased, to be compared with.
    TrajectoryGroup,
}

/// What the difference to the baseline is divided by.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum Scale {
    /// The population deviation of what the baseline is a mean of.
    Deviation,
    /// Nothing (Dr. GRPO, arXiv 2503.20783).
    One,
}

/// What becomes of a rollout that hit its cap on steps or compactions without an answer.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum Overlong {
    /// It contributes no gradient and counts in its group's statistics (SUPO).
    Mask,
    /// It contributes no gradient and its group's statistics are those of the others.
    Exclude,
    /// It is trained like any other.
    Keep,
}

/// How rewards become advantages.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub struct AdvantageConfig {
    /// What a reward is compared with.
    #[config(default = "Baseline::RolloutGroup")]
    pub baseline: Baseline,
    /// What the difference is divided by.
    #[config(default = "Scale::Deviation")]
    pub scale: Scale,
    /// What becomes of overlong rollouts.
    #[config(default = "Overlong::Mask")]
    pub overlong: Overlong,
}

/// How a rollout ended, and in how many segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RolloutOutcome {
    /// Which group it belongs to.
    pub group: usize,
    /// Its reward.
    pub reward: f64,
    /// Segments that it was cut into; only [`Baseline::TrajectoryGroup`] asks.
    pub segments: usize,
    /// Whether it hit a cap without an answer.
    pub overlong: bool,
}

/// The advantage of a rollout, the same for each of its tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RolloutAdvantage {
    /// The advantage.
    pub advantage: f64,
    /// Whether the rollout contributes a gradient; where not, its terms are to have weight 0.
    pub trained: bool,
}

/// The advantages of rollouts, in their order, each within its group.
///
/// How often a rollout was cut changes nothing, under any baseline but the trajectory group's. A
/// group may be a remainder: its statistics are those of the rollouts there are. The advantage is
/// exactly 0 where there is nothing to compare: in a group of one, where all rewards are equal, and
/// for the only rollout that is not excluded; nothing is divided by an epsilon.
///
/// # Errors
/// A reward that is not finite, or so large that sums or squares of rewards are not; under the
/// trajectory group a rollout without segments.
pub fn group_advantages(
    config: &AdvantageConfig,
    rollouts: &[RolloutOutcome],
) -> Result<Vec<RolloutAdvantage>, TrainError> {
    if let Some((rollout, outcome)) =
        rollouts.iter().enumerate().find(|(_, outcome)| !outcome.reward.is_finite())
    {
        return Err(ObjectiveError::Reward { rollout, reward: outcome.reward }.into());
    }
    if config.baseline == Baseline::TrajectoryGroup
        && let Some(rollout) = rollouts.iter().position(|outcome| outcome.segments == 0)
    {
        let what = format!(
            "rollout {rollout} has 0 segments: the trajectory group counts rollouts by their segments; use the rollout group"
        );
        return Err(TrainError::Unsupported { what });
    }
    let counted =
        |outcome: &RolloutOutcome| !(outcome.overlong && config.overlong == Overlong::Exclude);
    let of = |(index, outcome): (usize, &RolloutOutcome)| {
        let group = || {
            rollouts
                .iter()
                .enumerate()
                .filter(|(_, other)| other.group == outcome.group && counted(other))
        };
        let advantage = match config.baseline {
            _ if !counted(outcome) => 0.0,
            Baseline::LeaveOneOut => {
                let others: Vec<f64> = group()
                    .filter(|(other, _)| *other != index)
                    .map(|(_, other)| other.reward)
                    .collect();
                let all: Vec<f64> = group().map(|(_, other)| other.reward).collect();
                compare(outcome.reward, &others, &all, config.scale)
            }
            Baseline::RolloutGroup => {
                let all: Vec<f64> = group().map(|(_, other)| other.reward).collect();
                compare(outcome.reward, &all, &all, config.scale)
            }
            Baseline::TrajectoryGroup => {
                let each = group()
                    .flat_map(|(_, other)| std::iter::repeat_n(other.reward, other.segments));
                let all: Vec<f64> = each.collect();
                compare(outcome.reward, &all, &all, config.scale)
            }
        };
        match advantage.is_finite() {
            true => Ok(RolloutAdvantage {
                advantage,
                trained: !outcome.overlong || config.overlong == Overlong::Keep,
            }),
            false => Err(ObjectiveError::Overflow { what: "the advantages of a group" }.into()),
        }
    };
    rollouts.iter().enumerate().map(of).collect()
}

/// The difference of a reward from the mean of `baseline`, in deviations of `spread`; 0 where there
/// is nothing to compare, NaN where the deviation overflows.
fn compare(reward: f64, baseline: &[f64], spread: &[f64], scale: Scale) -> f64 {
    if baseline.is_empty() || spread.iter().all(|other| *other == reward) {
        return 0.0;
    }
    let difference = reward - mean(baseline);
    let deviation = match scale {
        Scale::One => 1.0,
        Scale::Deviation => {
            let centre = mean(spread);
            mean(&spread.iter().map(|value| (value - centre).powi(2)).collect::<Vec<_>>()).sqrt()
        }
    };
    if !deviation.is_finite() {
        return f64::NAN;
    }
    if deviation == 0.0 { 0.0 } else { difference / deviation }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

use super::policy_gradient::{ClipConfig, PolicyGradientConfig};
use crate::advantage::{
    AdvantageConfig, Baseline, GaeConfig, LambdaConfig, LengthReading, Overlong, Scale, Timing,
};

/// A number of a preset and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// What it is, by the field that holds it.
    pub what: &'static str,
    /// Its value.
    pub value: f64,
    /// Who says so.
    pub source: &'static str,
}

/// How a paper computes advantages and its policy gradient: data, to be read, changed and used like
/// any configuration.
///
/// Every number that a preset holds stands in [`numbers`](Self::numbers) with its source. Where a
/// paper's own number is not known here, the library's default stands there and says so.
#[derive(Debug, Clone)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The paper.
    pub paper: &'static str,
    /// Advantages between rollouts; none where a critic gives them.
    pub advantage: Option<AdvantageConfig>,
    /// Generalised advantage estimation, where there is a critic.
    pub gae: Option<GaeConfig>,
    /// The policy gradient.
    pub policy: PolicyGradientConfig,
    /// Rollouts of a group, where the paper fixes it.
    pub group_size: Option<usize>,
    /// Every number, with its source.
    pub numbers: &'static [Number],
}

const DEFAULT: &str = "chosen here, the clips of DAPO (arXiv 2503.14476), since the paper's own number is not recorded here";
const DAPO: &str = "arXiv 2503.14476";
const NO_DISCOUNT: &str =
    "chosen here: one reward at the end of a rollout is worth the same wherever a token stands";
const COMPACTION_RL: &str = "arXiv 2607.05378";

/// The clips that a preset holds because it holds some.
const DEFAULT_CLIPS: [Number; 2] = [
    Number { what: "policy.clip.low", value: 0.20, source: DEFAULT },
    Number { what: "policy.clip.high", value: 0.28, source: DEFAULT },
];

impl Preset {
    /// All presets.
    pub fn all() -> [Self; 5] {
        [
            Self::supo(),
            Self::resum_grpo(),
            Self::compaction_rl(),
            Self::auto_compact(),
            Self::dapo(),
        ]
    }

    /// SUPO, arXiv 2510.06727: the advantage of a rollout in its group (equation 3), the same for
    /// each of its segments; rollouts that hit a cap without an answer contribute no gradient.
    pub fn supo() -> Self {
        Self {
            name: "supo",
            paper: "arXiv 2510.06727",
            advantage: Some(group(Overlong::Mask)),
            gae: None,
            policy: policy(0.20, 0.28),
            group_size: None,
            numbers: &DEFAULT_CLIPS,
        }
    }

    /// ReSum-GRPO, arXiv 2509.13313: as SUPO between rollouts. The summariser is no policy, so its
    /// tokens are no loss terms. That overlong rollouts are trained is chosen here: an overlong
    /// mask is told of SUPO only.
    pub fn resum_grpo() -> Self {
        Self {
            name: "resum_grpo",
            paper: "arXiv 2509.13313",
            advantage: Some(group(Overlong::Keep)),
            ..Self::supo()
        }
    }

    /// CompactionRL, arXiv 2607.05378: PPO with a critic and groups of one, lambda by length.
    ///
    /// The paper estimates advantages segment by segment and corrects them; here the tree keeps the
    /// whole timeline, so the preset estimates over it, which is exact where the correction is not.
    /// [`Timing::Corrected`] is the paper's. Which length lambda reads is open; here it is the
    /// whole rollout's.
    pub fn compaction_rl() -> Self {
        let lambda = LambdaConfig::LengthAdaptive { alpha: 1.5, length: LengthReading::Rollout };
        Self {
            name: "compaction_rl",
            paper: COMPACTION_RL,
            advantage: None,
            gae: Some(GaeConfig { gamma: 1.0, lambda, timing: Timing::Concatenated }),
            policy: policy(0.20, 0.28),
            group_size: Some(1),
            numbers: &[
                Number { what: "gae.gamma", value: 1.0, source: NO_DISCOUNT },
                Number { what: "gae.lambda.alpha", value: 1.5, source: COMPACTION_RL },
                Number { what: "group_size", value: 1.0, source: COMPACTION_RL },
                Number { what: "policy.clip.low", value: 0.20, source: DEFAULT },
                Number { what: "policy.clip.high", value: 0.28, source: DEFAULT },
            ],
        }
    }

    /// AutoCompact, project page autocompact.github.io: the rollout's advantage on the `compact()`
    /// decision, the summary and what follows alike, which is what happens to every sampled token
    /// here. That overlong rollouts are trained is chosen here.
    pub fn auto_compact() -> Self {
        Self {
            name: "auto_compact",
            paper: "autocompact.github.io",
            advantage: Some(group(Overlong::Keep)),
            ..Self::supo()
        }
    }

    /// DAPO, arXiv 2503.14476: a clip that is higher above than below, a token-level mean, no KL to
    /// a reference, no gradient from truncated answers (its overlong filtering). Its dynamic
    /// sampling and its soft penalty of length are the sampler's and the reward's, and not here.
    pub fn dapo() -> Self {
        Self {
            name: "dapo",
            paper: "arXiv 2503.14476",
            advantage: Some(group(Overlong::Mask)),
            gae: None,
            policy: policy(0.20, 0.28),
            group_size: None,
            numbers: &[
                Number { what: "policy.clip.low", value: 0.20, source: DAPO },
                Number { what: "policy.clip.high", value: 0.28, source: DAPO },
            ],
        }
    }
}

fn group(overlong: Overlong) -> AdvantageConfig {
    AdvantageConfig { baseline: Baseline::RolloutGroup, scale: Scale::Deviation, overlong }
}

fn policy(low: f64, high: f64) -> PolicyGradientConfig {
    PolicyGradientConfig::new().with_clip(ClipConfig::new().with_low(low).with_high(high))
}

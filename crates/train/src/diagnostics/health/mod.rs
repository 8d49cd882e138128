//! What to look at in each step of training on compacted rollouts, as plain numbers and, with the
//! feature `metrics`, as metrics of burn's trainer.
mod clipping;
#[cfg(feature = "metrics")]
mod metrics;
mod rollouts;

pub use clipping::{ClipDistance, clip_fractions};
#[cfg(feature = "metrics")]
pub use metrics::{HealthInput, HealthMetric};
pub use rollouts::{Count, RolloutHealth};

use crate::{diagnostics::GapSummary, objective::SdccCertificate};
use serde::Serialize;

/// One number of [`Health`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HealthFigure {
    /// Mean of |log p of the trainer - recorded log p|, nats.
    LogProbabilityGap,
    /// Loss terms over sampled tokens.
    Coverage,
    /// Largest KL at a diverging term, nats.
    ResidualKl,
    /// Largest total variation at a diverging term.
    TotalVariation,
    /// Pinsker's bound of it.
    TotalVariationBound,
    /// Terms whose gradient clipping took away, over all.
    ClipFraction,
    /// Mean number of segments that a rollout was cut into.
    SegmentsPerRollout,
    /// Largest number of segments of a rollout.
    MostSegments,
    /// Mean number of evictions of a rollout.
    EvictionsPerRollout,
    /// Mean fraction of a context that an eviction took out.
    EvictedFraction,
    /// Mean number of tokens that a rollout went through.
    EffectiveLength,
    /// Tokens of all views over tokens that are computed.
    TokenReuse,
    /// Attention pairs that are computed over those that are needed.
    PairOverhead,
}

impl HealthFigure {
    /// All figures.
    pub const ALL: [Self; 13] = [
        Self::LogProbabilityGap,
        Self::Coverage,
        Self::ResidualKl,
        Self::TotalVariation,
        Self::TotalVariationBound,
        Self::ClipFraction,
        Self::SegmentsPerRollout,
        Self::MostSegments,
        Self::EvictionsPerRollout,
        Self::EvictedFraction,
        Self::EffectiveLength,
        Self::TokenReuse,
        Self::PairOverhead,
    ];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogProbabilityGap => "log-probability gap",
            Self::Coverage => "coverage",
            Self::ResidualKl => "largest residual KL",
            Self::TotalVariation => "largest total variation",
            Self::TotalVariationBound => "total variation bound",
            Self::ClipFraction => "clip fraction",
            Self::SegmentsPerRollout => "segments per rollout",
            Self::MostSegments => "most segments",
            Self::EvictionsPerRollout => "evictions per rollout",
            Self::EvictedFraction => "evicted fraction",
            Self::EffectiveLength => "effective length",
            Self::TokenReuse => "token reuse",
            Self::PairOverhead => "pair overhead",
        }
    }

    /// Its unit, where it has one.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Self::LogProbabilityGap | Self::ResidualKl => Some("nats"),
            Self::EffectiveLength => Some("tokens"),
            _ => None,
        }
    }
}

/// The health of one step: what is known of it, and nothing where a part was not measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Health {
    /// What the rollouts are like.
    pub rollouts: Option<RolloutHealth>,
    /// How far the trainer's log-probabilities are from the recorded ones.
    pub gap: Option<GapSummary>,
    /// How consistent `compressed` is with the live views, by junction.
    pub certificate: Option<SdccCertificate>,
    /// How much was clipped, by distance from the last eviction.
    pub clipping: Vec<ClipDistance>,
}

impl Health {
    /// One figure, where its part was measured.
    pub fn figure(&self, figure: HealthFigure) -> Option<f64> {
        let rollouts = self.rollouts.as_ref();
        let certificate = self.certificate.as_ref().map(|certificate| &certificate.all);
        match figure {
            HealthFigure::LogProbabilityGap => self.gap.map(|gap| gap.mean),
            HealthFigure::Coverage => rollouts.map(|rollouts| rollouts.coverage),
            HealthFigure::ResidualKl => certificate.map(|all| all.kl_max),
            HealthFigure::TotalVariation => certificate.map(|all| all.total_variation_max),
            HealthFigure::TotalVariationBound => certificate.map(|all| all.pinsker_max),
            HealthFigure::ClipFraction => clipping::total(&self.clipping),
            HealthFigure::SegmentsPerRollout => rollouts.map(|rollouts| rollouts.segments.mean),
            HealthFigure::MostSegments => rollouts.map(|rollouts| rollouts.segments.max as f64),
            HealthFigure::EvictionsPerRollout => rollouts.map(|rollouts| rollouts.evictions.mean),
            HealthFigure::EvictedFraction => {
                rollouts.and_then(|rollouts| rollouts.evicted_fraction)
            }
            HealthFigure::EffectiveLength => {
                rollouts.map(|rollouts| rollouts.effective_length.mean)
            }
            HealthFigure::TokenReuse => rollouts.and_then(|rollouts| rollouts.token_reuse),
            HealthFigure::PairOverhead => rollouts.and_then(|rollouts| rollouts.pair_overhead),
        }
    }
}

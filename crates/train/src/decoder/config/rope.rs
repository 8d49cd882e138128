use super::keys::Keys;
use crate::error::TrainError;
use std::f64::consts::TAU;

/// How rotary frequencies are stretched for longer contexts than were trained first.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// All frequencies divided by a factor (arXiv 2306.15595).
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// YaRN (arXiv 2309.00071): features that turn often keep their frequency, those that turn
    /// seldom have it divided, with a ramp between, and queries and keys are scaled.
    Yarn {
        /// Divisor of the low frequencies.
        factor: f64,
        /// What rotated queries and keys are multiplied by.
        attention_factor: f64,
        /// Turns within the original context above which a frequency is kept.
        beta_fast: f64,
        /// Turns within the original context below which a frequency is divided.
        beta_slow: f64,
        /// Context length, in tokens, of the first training.
        original_context: f64,
        /// Whether the ends of the ramp are whole features.
        truncate: bool,
    },
    /// As in Llama 3.1: low frequencies divided by a factor, high ones kept, a ramp between.
    Llama3 {
        /// Divisor of the low frequencies.
        factor: f64,
        /// Wavelengths above `original_context / low_freq_factor` are low.
        low_freq_factor: f64,
        /// Wavelengths below `original_context / high_freq_factor` are high.
        high_freq_factor: f64,
        /// Context length, in tokens, of the first training.
        original_context: f64,
    },
}

impl RopeScaling {
    /// Stretches the frequency of a pair of features, in radians per token, of heads of `head_dim`
    /// features and base `theta`. Formulas: Hugging Face transformers, `modeling_rope_utils`.
    pub(super) fn apply(self, pair: usize, head_dim: usize, theta: f64) -> f64 {
        let frequency = theta.powf(-((2 * pair) as f64) / head_dim as f64);
        let (factor, low_freq_factor, high_freq_factor, original_context) = match self {
            Self::None => return frequency,
            Self::Linear { factor } => return frequency / factor,
            Self::Yarn { .. } => return self.yarn(pair, head_dim, theta, frequency),
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                (factor, low_freq_factor, high_freq_factor, original_context)
            }
        };
        let wavelength = TAU / frequency;
        if wavelength < original_context / high_freq_factor {
            return frequency;
        }
        if wavelength > original_context / low_freq_factor {
            return frequency / factor;
        }
        let ramp = (original_context / wavelength - low_freq_factor)
            / (high_freq_factor - low_freq_factor);
        (1.0 - ramp) * frequency / factor + ramp * frequency
    }

    fn yarn(self, pair: usize, head_dim: usize, theta: f64, frequency: f64) -> f64 {
        let Self::Yarn { factor, beta_fast, beta_slow, original_context, truncate, .. } = self
        else {
            return frequency;
        };
        let features = head_dim as f64;
        // The feature that turns so often within the original context.
        let turning =
            |turns: f64| features * (original_context / (turns * TAU)).ln() / (2.0 * theta.ln());
        let (low, high) = (turning(beta_fast), turning(beta_slow));
        let (low, high) = if truncate { (low.floor(), high.ceil()) } else { (low, high) };
        let (low, high) = (low.max(0.0), high.min(features - 1.0));
        let high = if low == high { high + 0.001 } else { high };
        let divided = ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
        frequency / factor * divided + frequency * (1.0 - divided)
    }

    /// What rotated queries and keys are multiplied by.
    pub(super) fn attention_factor(self) -> f64 {
        match self {
            Self::Yarn { attention_factor, .. } => attention_factor,
            _ => 1.0,
        }
    }

    pub(super) fn validate(self) -> Result<(), TrainError> {
        let positive =
            |values: &[f64]| values.iter().all(|value| value.is_finite() && *value > 0.0);
        let (factor, low_freq_factor, high_freq_factor, original_context) = match self {
            Self::None => return Ok(()),
            Self::Linear { factor } if positive(&[factor]) => return Ok(()),
            Self::Yarn {
                factor, attention_factor, beta_fast, beta_slow, original_context, ..
            } if positive(&[factor, attention_factor, beta_fast, beta_slow, original_context])
                && beta_fast > beta_slow =>
            {
                return Ok(());
            }
            Self::Linear { .. } | Self::Yarn { .. } => {
                return Err(TrainError::Config {
                    problem: "rope scaling needs positive numbers, and beta_fast above beta_slow"
                        .to_owned(),
                });
            }
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                (factor, low_freq_factor, high_freq_factor, original_context)
            }
        };
        let positive = [factor, low_freq_factor, high_freq_factor, original_context]
            .iter()
            .all(|value| value.is_finite() && *value > 0.0);
        if positive && high_freq_factor > low_freq_factor {
            return Ok(());
        }
        Err(TrainError::Config {
            problem: "llama3 rope scaling needs positive numbers and high_freq_factor above low_freq_factor".to_owned(),
        })
    }
}

/// Base and scaling of the rotary frequencies, from the old keys (`rope_theta`, `rope_scaling`) or
/// the new `rope_parameters`.
pub(super) fn parse(keys: &mut Keys<'_>) -> Result<(f64, RopeScaling), TrainError> {
    let theta = keys.number("rope_theta")?;
    let old = keys.object("rope_scaling")?;
    let new = keys.object("rope_parameters")?;
    if old.is_some() && new.is_some() {
        return Err(
            keys.problem("rope_scaling", "stands beside `rope_parameters`: keep one of them")
        );
    }
    let Some(mut nested) = new.or(old) else {
        return Ok((theta.unwrap_or(10_000.0), RopeScaling::None));
    };
    let nested_theta = nested.number("rope_theta")?;
    if let (Some(outer), Some(inner)) = (theta, nested_theta)
        && outer != inner
    {
        return Err(nested.problem(
            "rope_theta",
            &format!("is {inner} but rope_theta is {outer}: make them agree"),
        ));
    }
    let theta = nested_theta.or(theta).unwrap_or(10_000.0);
    let context = keys.number("max_position_embeddings")?;
    let scaling = parse_scaling(&mut nested, context)?;
    nested.only("partial_rotary_factor", &[serde_json::json!(1.0), serde_json::json!(1)])?;
    nested.finish()?;
    Ok((theta, scaling))
}

fn parse_scaling(nested: &mut Keys<'_>, context: Option<f64>) -> Result<RopeScaling, TrainError> {
    let old_name = nested.string("type")?;
    let new_name = nested.string("rope_type")?;
    if let (Some(old), Some(new)) = (&old_name, &new_name)
        && old != new
    {
        return Err(nested
            .problem("type", &format!("is `{old}` but rope_type is `{new}`: make them agree")));
    }
    match new_name.or(old_name).as_deref() {
        None | Some("default") => Ok(RopeScaling::None),
        Some("llama3") => Ok(RopeScaling::Llama3 {
            factor: nested.required_number("factor")?,
            low_freq_factor: nested.required_number("low_freq_factor")?,
            high_freq_factor: nested.required_number("high_freq_factor")?,
            original_context: nested.required_number("original_max_position_embeddings")?,
        }),
        Some("linear") => Ok(RopeScaling::Linear { factor: nested.required_number("factor")? }),
        Some("yarn") => parse_yarn(nested, context),
        Some(other) => Err(nested.problem(
            "rope_type",
            &format!(
                "`{other}` is not supported: only `default`, `linear`, `yarn` and `llama3` are"
            ),
        )),
    }
}

/// YaRN with the attention factor that follows from the rest where it is not given.
fn parse_yarn(nested: &mut Keys<'_>, context: Option<f64>) -> Result<RopeScaling, TrainError> {
    let factor = nested.required_number("factor")?;
    let given = nested.number("attention_factor")?;
    let scales = (nested.number("mscale")?, nested.number("mscale_all_dim")?);
    let scale = |of: f64| if factor <= 1.0 { 1.0 } else { 0.1 * of * factor.ln() + 1.0 };
    let attention_factor = given.unwrap_or(match scales {
        (Some(one), Some(all)) if one != 0.0 && all != 0.0 => scale(one) / scale(all),
        _ => scale(1.0),
    });
    let original = nested.number("original_max_position_embeddings")?;
    let original_context = match original.or(context) {
        Some(context) => context,
        None => nested.required_number("original_max_position_embeddings")?,
    };
    Ok(RopeScaling::Yarn {
        factor,
        attention_factor,
        beta_fast: nested.number("beta_fast")?.unwrap_or(32.0),
        beta_slow: nested.number("beta_slow")?.unwrap_or(1.0),
        original_context,
        truncate: nested.flag("truncate")?.unwrap_or(true),
    })
}

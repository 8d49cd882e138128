use super::keys::Keys;
use crate::error::TrainError;
use std::f64::consts::TAU;

/// How rotary frequencies are stretched for longer contexts than were trained first.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Not at all.
    None,
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
    /// Stretches one frequency in radians per token. Formula: Hugging Face transformers,
    /// `_compute_llama3_parameters`.
    pub(super) fn apply(self, frequency: f64) -> f64 {
        let Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } = self
        else {
            return frequency;
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

    pub(super) fn validate(self) -> Result<(), TrainError> {
        let Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } = self
        else {
            return Ok(());
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
    let scaling = parse_scaling(&mut nested)?;
    nested.only("partial_rotary_factor", &[serde_json::json!(1.0), serde_json::json!(1)])?;
    nested.finish()?;
    Ok((theta, scaling))
}

fn parse_scaling(nested: &mut Keys<'_>) -> Result<RopeScaling, TrainError> {
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
        Some(other) => Err(nested.problem(
            "rope_type",
            &format!("`{other}` is not supported: only `default` and `llama3` are"),
        )),
    }
}

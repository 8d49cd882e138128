use std::time::Instant;

use anyhow::{Result, anyhow};
use burn::tensor::Device;

/// The least time of a sample; runs that are shorter are repeated within one.
const SAMPLE_S: f64 = 0.02;

/// Waits until the device has done everything it was given.
pub(crate) fn sync(device: &Device) -> Result<()> {
    device.sync().map_err(|error| anyhow!("the device failed: {error}"))
}

/// Mean time of `inner` runs, the device synchronised around each; what a run leaves behind is
/// dropped with the clock stopped.
pub(crate) fn sample<T>(
    device: &Device,
    inner: usize,
    mut run: impl FnMut() -> Result<T>,
) -> Result<f64> {
    sync(device)?;
    let mut seconds = 0.0;
    for _ in 0..inner {
        let start = Instant::now();
        let left = run()?;
        sync(device)?;
        seconds += start.elapsed().as_secs_f64();
        drop(left);
    }
    Ok(seconds / inner as f64)
}

/// How many runs make a sample, found by running twice: the first run compiles, plans and fills
/// caches.
pub(crate) fn warm_up<T>(device: &Device, mut run: impl FnMut() -> Result<T>) -> Result<WarmedUp> {
    let first = sample(device, 1, &mut run)?;
    let run_s = if first < 2.0 { sample(device, 1, &mut run)? } else { first };
    Ok(WarmedUp { run_s, inner: (SAMPLE_S / run_s.max(1e-9)).ceil().clamp(1.0, 1000.0) as usize })
}

/// What a warm-up found out.
#[derive(Clone, Copy)]
pub(crate) struct WarmedUp {
    /// Seconds of a run, roughly.
    pub(crate) run_s: f64,
    /// Runs of a sample.
    pub(crate) inner: usize,
}

/// Median and range of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    /// `None` of no samples.
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let (&least, &greatest) = (sorted.first()?, sorted.last()?);
        let median = match sorted.len() % 2 {
            0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        };
        Some(Self { median, least, greatest })
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        let odd = Spread::of(&[3.0, 1.0, 2.0]);
        assert_eq!(odd, Some(Spread { median: 2.0, least: 1.0, greatest: 3.0 }));
        assert_eq!(Spread::of(&[4.0, 1.0, 3.0, 2.0]).map(|spread| spread.median), Some(2.5));
        assert_eq!(Spread::of(&[]), None);
    }
}

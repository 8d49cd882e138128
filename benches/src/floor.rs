use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::Result;
use burn::tensor::{Distribution, Tensor};

use crate::clock::{WarmedUp, sample, warm_up};
use crate::setup::Setup;

/// How long a sample stands for the speed of the machine.
const FRESH: Duration = Duration::from_millis(300);

/// A product of square matrices on the device: the fastest that arithmetic gets there by burn's own
/// means.
pub(crate) struct Product<'a> {
    setup: &'a Setup,
    a: Tensor<2>,
    b: Tensor<2>,
    warm: WarmedUp,
    latest: Cell<Option<(Instant, f64)>>,
}

impl<'a> Product<'a> {
    /// Makes the matrices and multiplies them once or twice, untimed.
    pub(crate) fn new(setup: &'a Setup) -> Result<Self> {
        let matrix = || {
            let shape = [setup.product, setup.product];
            Tensor::<2>::random(
                shape,
                Distribution::Uniform(-1.0, 1.0),
                (&setup.device, setup.dtype.burn()),
            )
        };
        let (a, b) = (matrix(), matrix());
        let warm = warm_up(&setup.device, || Ok(a.clone().matmul(b.clone())))?;
        Ok(Self { setup, a, b, warm, latest: Cell::new(None) })
    }

    /// Flops per second, by a sample of now or of a moment ago.
    pub(crate) fn rate(&self) -> Result<f64> {
        if let Some((_, rate)) = self.latest.get().filter(|(taken, _)| taken.elapsed() < FRESH) {
            return Ok(rate);
        }
        let run = || Ok(self.a.clone().matmul(self.b.clone()));
        let rate = 2.0 * (self.setup.product as f64).powi(3)
            / sample(&self.setup.device, self.warm.inner, run)?;
        self.latest.set(Some((Instant::now(), rate)));
        Ok(rate)
    }
}

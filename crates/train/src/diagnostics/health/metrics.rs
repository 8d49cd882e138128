use super::{Health, HealthFigure};
use burn::tensor::TensorReadError;
use burn_train::metric::{
    Metric, MetricAttributes, MetricMetadata, MetricName, Numeric, NumericAttributes, NumericEntry,
    SerializedEntry,
    state::{FormatOptions, NumericMetricState},
};
use std::sync::Arc;

/// What a [`HealthMetric`] reads: the health of a step, and how many rollouts it is of.
#[derive(Debug, Clone)]
pub struct HealthInput {
    /// The figures.
    pub health: Health,
    /// Rollouts of the step, by which means over steps are weighted.
    pub rollouts: usize,
}

/// One figure of [`Health`] as a metric of burn's trainer; a step that did not measure it, or that
/// is of no rollouts, changes nothing.
///
/// Over several steps every figure is a mean, those that are the largest of a step among them.
#[derive(Clone)]
pub struct HealthMetric {
    figure: HealthFigure,
    name: MetricName,
    state: NumericMetricState,
    known: bool,
}

impl HealthMetric {
    /// The metric of a figure.
    pub fn new(figure: HealthFigure) -> Self {
        Self {
            figure,
            name: Arc::new(figure.name().to_owned()),
            state: NumericMetricState::default(),
            known: false,
        }
    }

    /// One metric for every figure.
    pub fn all() -> Vec<Self> {
        HealthFigure::ALL.into_iter().map(Self::new).collect()
    }

    fn format(&self) -> FormatOptions {
        let options = FormatOptions::new(self.name()).precision(4);
        match self.figure.unit() {
            Some(unit) => options.unit(unit),
            None => options,
        }
    }
}

impl Metric for HealthMetric {
    type Input = HealthInput;

    fn name(&self) -> MetricName {
        Arc::clone(&self.name)
    }

    fn attributes(&self) -> MetricAttributes {
        let higher_is_better =
            matches!(self.figure, HealthFigure::Coverage | HealthFigure::TokenReuse);
        NumericAttributes { unit: self.figure.unit().map(str::to_owned), higher_is_better }.into()
    }

    fn update(
        &mut self,
        input: &HealthInput,
        _metadata: &MetricMetadata,
    ) -> Result<SerializedEntry, TensorReadError> {
        let Some(value) = input.health.figure(self.figure).filter(|_| input.rollouts > 0) else {
            return Ok(SerializedEntry::not_available(self.figure.unit()));
        };
        self.known = true;
        self.state.update(value, input.rollouts);
        Ok(self.state.compute_update(self.format()))
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        match self.known {
            true => Ok(self.state.compute_final(self.format())),
            false => Ok(SerializedEntry::not_available(self.figure.unit())),
        }
    }

    fn clear(&mut self) {
        self.state.reset();
        self.known = false;
    }
}

impl Numeric for HealthMetric {
    fn value(&self) -> Option<NumericEntry> {
        self.known.then(|| self.state.current_value())
    }

    fn running_value(&self) -> Option<NumericEntry> {
        self.known.then(|| self.state.running_value())
    }

    fn final_value(&self) -> NumericEntry {
        self.state.final_value()
    }
}

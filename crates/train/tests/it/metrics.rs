//! Contract: every health figure is a metric of burn's trainer under its own name; a step that did
//! not measure a figure does not count.

use burn::data::dataloader::Progress;
use burn_train::metric::{Metric, MetricMetadata, Numeric, NumericEntry};
use pleach_train::diagnostics::{ClipDistance, Health, HealthFigure, HealthInput, HealthMetric};
use std::collections::HashSet;

fn step(terms: usize, clipped: usize, rollouts: usize) -> HealthInput {
    let clipping = vec![ClipDistance { from: None, to: None, terms, clipped }];
    HealthInput { health: Health { clipping, ..Health::default() }, rollouts }
}

fn metadata() -> MetricMetadata {
    let progress = Progress { items_processed: 1, items_total: 1, unit: None };
    MetricMetadata { progress, iteration: None, lr: None }
}

fn number(entry: NumericEntry) -> f64 {
    entry.current()
}

#[test]
fn every_figure_has_a_metric_of_its_own_name() {
    let names: HashSet<String> =
        HealthMetric::all().iter().map(|metric| metric.name().to_string()).collect();
    assert_eq!(names.len(), HealthFigure::ALL.len());
}

#[test]
fn a_metric_is_the_mean_over_rollouts_of_the_steps_that_measured_it() {
    let mut metric = HealthMetric::new(HealthFigure::ClipFraction);
    assert!(metric.value().is_none());
    assert!(
        metric
            .update(&HealthInput { health: Health::default(), rollouts: 5 }, &metadata())
            .unwrap()
            .is_not_available()
    );
    metric.update(&step(4, 1, 1), &metadata()).unwrap();
    metric.update(&step(4, 3, 3), &metadata()).unwrap();
    assert!(
        metric.update(&step(4, 4, 0), &metadata()).unwrap().is_not_available(),
        "a step of no rollouts weighs nothing"
    );
    assert_eq!(number(metric.value().unwrap()), 0.75);
    assert_eq!(number(metric.running_value().unwrap()), (0.25 + 3.0 * 0.75) / 4.0);
    metric.compute().unwrap();
    assert_eq!(number(metric.final_value()), 0.625);
    metric.clear();
    assert!(metric.value().is_none());
    assert!(metric.compute().unwrap().is_not_available());
}

#[test]
fn a_metric_of_nothing_but_empty_steps_has_no_value() {
    let mut metric = HealthMetric::new(HealthFigure::ClipFraction);
    metric.update(&step(4, 4, 0), &metadata()).unwrap();
    assert!(metric.value().is_none() && metric.compute().unwrap().is_not_available());
}

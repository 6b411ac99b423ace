//! Metrics in the text format of Prometheus.
//!
//! Names follow prometheus.io/docs/practices/naming: base units, and `_total` for counters. Source of the
//! text format: prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4.

use prometheus::TextEncoder;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType, Quantile, Summary};

use crate::http::Answer;

/// The prefix of each name.
const PREFIX: &str = "apportion_gateway_";

/// The type of a metric.
pub type Kind = MetricType;
/// A value that rises and falls.
pub const GAUGE: Kind = MetricType::GAUGE;
/// A value that only grows.
pub const COUNTER: Kind = MetricType::COUNTER;

/// Labels and a value.
pub type Sample<'a> = (Vec<(&'static str, &'a str)>, f64);

/// Metrics that become text.
#[derive(Debug, Default)]
pub struct Metrics(Vec<MetricFamily>);

impl Metrics {
    /// Adds a metric, unless it has no samples. `name` is without the prefix `apportion_gateway_`.
    pub fn add<'a>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        samples: impl IntoIterator<Item = Sample<'a>>,
    ) {
        let metrics = samples.into_iter().map(|(labels, value)| metric(kind, &labels, value)).collect();
        self.push(name, kind, help, metrics);
    }

    /// Like [`add`](Self::add), for a counter.
    pub fn counter<'a>(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = Sample<'a>>) {
        self.add(name, COUNTER, help, samples);
    }

    /// Like [`add`](Self::add), for a gauge.
    pub fn gauge<'a>(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = Sample<'a>>) {
        self.add(name, GAUGE, help, samples);
    }

    /// Adds a summary: recent quantiles, each a rank and its value; count and sum since the start, as
    /// counters must not decrease.
    pub fn summary(
        &mut self,
        name: &str,
        help: &str,
        quantiles: impl IntoIterator<Item = (f64, f64)>,
        (count, sum): (u64, f64),
    ) {
        let quantile = |(share, value)| {
            let mut quantile = Quantile::default();
            quantile.set_quantile(share);
            quantile.set_value(value);
            quantile
        };
        let mut summary = Summary::default();
        summary.set_quantile(quantiles.into_iter().map(quantile).collect());
        summary.set_sample_count(count);
        summary.set_sample_sum(sum);
        let mut metric = Metric::default();
        metric.set_summary(summary);
        self.push(name, MetricType::SUMMARY, help, vec![metric]);
    }

    fn push(&mut self, name: &str, kind: Kind, help: &str, metrics: Vec<Metric>) {
        if metrics.is_empty() {
            return;
        }
        let mut family = MetricFamily::default();
        family.set_name(format!("{PREFIX}{name}"));
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        family.set_metric(metrics);
        self.0.push(family);
    }

    /// The metrics as text.
    #[must_use]
    pub fn text(&self) -> String {
        TextEncoder::new().encode_to_string(&self.0).unwrap_or_default()
    }

    /// An answer with this text.
    #[must_use]
    pub fn answer(text: String) -> Answer {
        Answer { status: 200, kind: "text/plain; version=0.0.4; charset=utf-8", policy: None, body: text }
    }
}

fn metric(kind: Kind, labels: &[(&str, &str)], value: f64) -> Metric {
    let label = |(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    let mut metric = Metric::from_label(labels.iter().map(label).collect());
    if kind == COUNTER {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
    }
    metric
}

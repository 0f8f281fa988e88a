//! The metrics of the conventions for generative AI: histograms that are added up between two exports.

use std::{collections::HashMap, hash::BuildHasher as _, time::Duration};

use cog_run::events::{CallReport, RunReport};
use foldhash::fast::RandomState;

use crate::{
    mapping::{self, Redact, SpanKind, masked},
    names,
};

/// The buckets of durations, in seconds.
const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The buckets of numbers of tokens: powers of four.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The metrics of runs and calls.
#[derive(Debug)]
pub(crate) struct Instruments {
    duration: Histogram,
    first_chunk: Histogram,
    tokens: Histogram,
    workflow: Histogram,
}

impl Instruments {
    pub(crate) fn new() -> Self {
        Self {
            duration: Histogram::of_seconds(
                "gen_ai.client.operation.duration",
                "The duration of calls to models.",
            ),
            first_chunk: Histogram::of_seconds(
                "gen_ai.client.operation.time_to_first_chunk",
                "The time from a call to the first part of its reply.",
            ),
            tokens: Histogram::new(
                "gen_ai.client.token.usage",
                "The tokens of calls to models.",
                "{token}",
                TOKENS,
            ),
            workflow: Histogram::of_seconds("gen_ai.workflow.duration", "The duration of runs."),
        }
    }

    /// Counts a span that has ended. `redact` masks the keys in the labels.
    pub(crate) fn record(&mut self, kind: SpanKind<'_>, duration: Duration, redact: &Redact) {
        match kind {
            SpanKind::Run(run) => self.run(run, duration.as_secs_f64()),
            SpanKind::Call(call) => self.call(call, duration.as_secs_f64(), redact),
            SpanKind::Tool(_) => {}
        }
    }

    /// Returns every metric.
    pub(crate) fn all(&self) -> [&Histogram; 4] {
        [&self.duration, &self.first_chunk, &self.tokens, &self.workflow]
    }

    /// Starts to count again.
    pub(crate) fn clear(&mut self) {
        for histogram in [&mut self.duration, &mut self.first_chunk, &mut self.tokens, &mut self.workflow] {
            histogram.clear();
        }
    }

    fn run(&mut self, run: &RunReport<'_>, seconds: f64) {
        let name = (names::WORKFLOW, run.module.manifest.name.as_str());
        match mapping::run_error(run) {
            Some(error) => self.workflow.add(&[name, (names::ERROR_TYPE, error)], seconds),
            None => self.workflow.add(&[name], seconds),
        }
    }

    fn call(&mut self, call: &CallReport<'_>, seconds: f64, redact: &Redact) {
        // A client chooses the first name, and the vendor the second one.
        let model = masked(redact, call.model);
        let response_model = masked(redact, call.response_model.unwrap_or(call.model));
        let labels = [
            (names::OPERATION, mapping::operation(call)),
            (names::PROVIDER, names::provider(call.provider)),
            (names::REQUEST_MODEL, &*model),
            (names::RESPONSE_MODEL, &*response_model),
        ];
        match mapping::call_error(call) {
            Some(error) => {
                let [operation, provider, model, response] = labels;
                self.duration
                    .add(&[operation, provider, model, response, (names::ERROR_TYPE, error)], seconds);
            }
            None => self.duration.add(&labels, seconds),
        }
        if let Some(time) = call.first_token {
            self.first_chunk.add(&labels, time.as_secs_f64());
        }
        if let Some(usage) = call.usage {
            self.token(&labels, "input", usage.input_tokens);
            self.token(&labels, "output", usage.output_tokens);
        }
    }

    /// Counts tokens. A later version of the conventions replaces this histogram with counters.
    fn token(&mut self, labels: &[(&'static str, &str); 4], kind: &'static str, tokens: u64) {
        let [operation, provider, model, response] = *labels;
        self.tokens.add(&[operation, provider, model, response, (names::TOKEN_TYPE, kind)], tokens as f64);
    }
}

// A histogram.

/// The maximum number of series of one metric. Further ones are added up as one, as the SDKs of OpenTelemetry do.
const MAX_SERIES: usize = 2_000;

/// The labels of a series.
pub(crate) type Labels<'a> = [(&'static str, &'a str)];

/// A metric whose values are counted in buckets.
#[derive(Debug)]
pub(crate) struct Histogram {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) unit: &'static str,
    /// The upper bounds of the buckets, without the last.
    pub(crate) bounds: &'static [f64],
    /// By the hash of its labels, under a key of this process.
    series: HashMap<u64, Series, RandomState>,
    hasher: RandomState,
}

/// The values with the same labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) labels: Vec<(&'static str, String)>,
    /// The number of values in each bucket.
    pub(crate) buckets: Vec<u64>,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Histogram {
    fn of_seconds(name: &'static str, description: &'static str) -> Self {
        Self::new(name, description, "s", SECONDS)
    }

    pub(crate) fn new(
        name: &'static str,
        description: &'static str,
        unit: &'static str,
        bounds: &'static [f64],
    ) -> Self {
        Self { name, description, unit, bounds, series: HashMap::default(), hasher: RandomState::default() }
    }

    /// Adds a value to the series with these labels.
    pub(crate) fn add(&mut self, labels: &Labels<'_>, value: f64) {
        let key = self.hasher.hash_one(labels);
        if let Some(series) = self.series.get_mut(&key) {
            return series.add(self.bounds, value);
        }
        // Clients choose the names of models, so the series must be bounded.
        let overflow: &Labels<'_> = &[(names::OVERFLOW, "true")];
        let has_room = self.series.len() < MAX_SERIES - 1;
        let (key, labels) = if has_room { (key, labels) } else { (self.hasher.hash_one(overflow), overflow) };
        let bounds = self.bounds;
        let series = self.series.entry(key).or_insert_with(|| Series::new(labels, bounds.len() + 1));
        series.add(bounds, value);
    }

    /// Returns every series.
    pub(crate) fn series(&self) -> impl Iterator<Item = &Series> {
        self.series.values()
    }

    /// Starts to count again.
    pub(crate) fn clear(&mut self) {
        self.series.clear();
    }
}

impl Series {
    fn new(labels: &Labels<'_>, buckets: usize) -> Self {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let buckets = vec![0; buckets];
        Self { labels, buckets, sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    fn add(&mut self, bounds: &[f64], value: f64) {
        let bucket = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Returns the number of values.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram() -> Histogram {
        Histogram::new("h", "", "s", &[1.0, 2.0])
    }

    #[test]
    fn values_are_counted_up_to_and_with_their_bound() {
        let mut histogram = histogram();
        for value in [0.5, 1.0, 1.5, 2.0, 9.0] {
            histogram.add(&[("a", "x")], value);
        }
        histogram.add(&[("a", "y")], 1.0);
        let mut series: Vec<_> = histogram.series().cloned().collect();
        series.sort_by(|a, b| a.labels.cmp(&b.labels));
        assert_eq!(series[0].buckets, [2, 2, 1]);
        assert_eq!((series[0].sum, series[0].min, series[0].max), (14.0, 0.5, 9.0));
        assert_eq!((series[1].count(), &series[1].labels[0].1[..]), (1, "y"));
        histogram.clear();
        assert_eq!(histogram.series().count(), 0);
    }

    #[test]
    fn labels_without_end_are_one_series() {
        let mut histogram = histogram();
        for label in 0..5_000 {
            histogram.add(&[("model", &label.to_string())], 1.0);
        }
        assert_eq!(histogram.series().count(), MAX_SERIES);
        assert_eq!(histogram.series().map(Series::count).sum::<u64>(), 5_000);
        let others = histogram.series().find(|series| series.labels[0].0 == names::OVERFLOW).unwrap();
        assert_eq!(others.count(), 5_000 - MAX_SERIES as u64 + 1);
    }
}

//! Histograms that are added up between two exports.

use std::{collections::HashMap, hash::BuildHasher as _};

use foldhash::fast::RandomState;

use crate::names;

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
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { labels, buckets: vec![0; buckets], sum: 0.0, min, max }
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

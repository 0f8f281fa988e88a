//! Metrics as messages.

use super::{Fields, add_resource, add_scope};
use crate::{
    attributes::Attributes as _,
    instruments::Instruments,
    metrics::{Histogram, Series},
    names,
    protobuf::Message,
    settings::Temporality,
};

/// What was not delivered, as a metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dropped {
    pub(crate) spans: u64,
    pub(crate) exports: u64,
}

/// The time that data points are about, in nanoseconds, and what they count.
#[derive(Clone, Copy)]
struct Points {
    start: u64,
    end: u64,
    temporality: u64,
}

/// Returns the request that exports the metrics; none if there are no values.
pub(crate) fn metrics(
    resource: &[(String, String)],
    instruments: &Instruments,
    dropped: Dropped,
    (start, end): (u64, u64),
    temporality: Temporality,
) -> Option<Vec<u8>> {
    let all = instruments.all();
    let is_empty = all.iter().all(|histogram| histogram.series().next().is_none());
    if is_empty && dropped.spans == 0 && dropped.exports == 0 {
        return None;
    }
    let temporality = if temporality == Temporality::Delta { 1 } else { 2 };
    let points = Points { start, end, temporality };
    let mut request = Message::with_capacity(4_096);
    request.message(1, |of_resource| {
        add_resource(of_resource, resource);
        of_resource.message(2, |of_scope| {
            add_scope(of_scope);
            for histogram in all.into_iter().filter(|histogram| histogram.series().next().is_some()) {
                of_scope.message(2, |metric| add_histogram(metric, histogram, points));
            }
            of_scope.message(2, |metric| add_dropped(metric, dropped, points));
            of_scope.text(3, names::SCHEMA_URL);
        });
    });
    Some(request.into_bytes())
}

fn add_histogram(metric: &mut Message, histogram: &Histogram, points: Points) {
    metric.text(1, histogram.name);
    metric.text(2, histogram.description);
    metric.text(3, histogram.unit);
    metric.message(9, |data| {
        for series in histogram.series() {
            data.message(1, |point| add_point(point, series, histogram.bounds, points));
        }
        data.integer(2, points.temporality);
    });
}

fn add_point(point: &mut Message, series: &Series, bounds: &[f64], points: Points) {
    point.fixed64(2, points.start);
    point.fixed64(3, points.end);
    point.fixed64(4, series.count());
    point.double(5, series.sum);
    point.packed(6, series.buckets.iter().copied());
    point.packed(7, bounds.iter().map(|bound| bound.to_bits()));
    let mut fields = Fields { message: point, field: 9 };
    for (name, value) in &series.labels {
        match *name {
            names::OVERFLOW => fields.flag(name, true),
            name => fields.text(name, value),
        }
    }
    point.double(11, series.min);
    point.double(12, series.max);
}

/// Writes a counter of lost spans and exports.
fn add_dropped(metric: &mut Message, dropped: Dropped, points: Points) {
    metric.text(1, "cog.telemetry.dropped");
    metric.text(2, "What was not delivered, because the queue was full or the collector did not accept it.");
    metric.text(3, "{item}");
    metric.message(7, |sum| {
        for (signal, count) in [("spans", dropped.spans), ("metric exports", dropped.exports)] {
            sum.message(1, |point| {
                point.fixed64(2, points.start);
                point.fixed64(3, points.end);
                point.fixed64(6, count);
                Fields { message: point, field: 7 }.text(names::SIGNAL, signal);
            });
        }
        sum.integer(2, points.temporality);
        sum.integer(3, 1);
    });
}

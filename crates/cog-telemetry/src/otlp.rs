//! The messages of OTLP: spans and metrics as protobuf (opentelemetry-proto 1.x, stable).

use std::time::{SystemTime, UNIX_EPOCH};

use cog_run::events::{Span, SpanContext};

use crate::{
    mapping::{self, Evaluation, Recorded, SpanKind},
    metrics::{Histogram, Instruments, Series},
    names::{self, Attributes},
    protobuf::{Field, Message, find},
    settings::Temporality,
};

/// The kind of a span within the program.
const INTERNAL: u64 = 1;
/// The kind of a span that calls another program.
const CLIENT: u64 = 3;
/// The status of a span that failed.
const STATUS_ERROR: u64 = 2;
/// Where the flags of a span say whether its parent is in another program.
const HAS_IS_REMOTE: u32 = 0x100;

/// Writes a span as a field of the message that contains the spans.
pub(crate) fn span(span: &Span<'_>, kind: SpanKind<'_>, recorded: &Recorded<'_>, spans: &mut Message) {
    spans.message(2, |message| add_fields(span, kind, recorded, message));
}

fn add_fields(span: &Span<'_>, kind: SpanKind<'_>, recorded: &Recorded<'_>, message: &mut Message) {
    let SpanContext { trace_id, span_id, is_sampled, state } = span.context;
    message.bytes(1, trace_id);
    message.bytes(2, span_id);
    if let Some(state) = state {
        message.text(3, state);
    }
    if let Some(parent) = span.parent {
        message.bytes(4, &parent.span_id);
    }
    message.text(5, &recorded.name(&kind.name()));
    message.integer(6, if matches!(kind, SpanKind::Call(_)) { CLIENT } else { INTERNAL });
    let ended = nanoseconds(span.started + span.duration);
    message.fixed64(7, nanoseconds(span.started));
    message.fixed64(8, ended);
    kind.attributes(recorded, &mut Fields { message, field: 9 });
    let run = if let SpanKind::Run(run) = kind { Some(run) } else { None };
    if let Some(evaluation) = run.and_then(|run| mapping::evaluation(run, recorded)) {
        add_evaluation(&evaluation, recorded, ended, message);
    }
    if kind.error_type().is_some() {
        message.message(15, |status| {
            if let Some(text) = recorded.message(run.and_then(|run| run.message)) {
                status.text(2, &text);
            }
            status.integer(3, STATUS_ERROR);
        });
    }
    message.fixed32(16, u32::from(*is_sampled) | HAS_IS_REMOTE);
}

/// Writes the confidence of an answer as an event of its span.
fn add_evaluation(evaluation: &Evaluation<'_>, recorded: &Recorded<'_>, time: u64, message: &mut Message) {
    message.message(11, |event| {
        event.fixed64(1, time);
        event.text(2, names::EVALUATION);
        let mut fields = Fields { message: event, field: 3 };
        fields.text(names::EVALUATION_NAME, "confidence");
        fields.number(names::EVALUATION_VALUE, evaluation.value);
        fields.optional(names::EVALUATION_LABEL, evaluation.label);
        if let Some(text) = evaluation.explanation {
            fields.text(names::EVALUATION_EXPLANATION, &recorded.explanation(text));
        }
    });
}

/// Returns the request that exports the spans of these fields.
pub(crate) fn traces(resource: &[(String, String)], spans: &[u8]) -> Vec<u8> {
    let mut request = Message::with_capacity(spans.len() + 1_024);
    request.message(1, |of_resource| {
        add_resource(of_resource, resource);
        of_resource.message(2, |of_scope| {
            add_scope(of_scope);
            of_scope.encoded(spans);
            of_scope.text(3, names::SCHEMA_URL);
        });
    });
    request.into_bytes()
}

fn add_resource(message: &mut Message, attributes: &[(String, String)]) {
    message.message(1, |resource| {
        let mut fields = Fields { message: resource, field: 1 };
        attributes.iter().for_each(|(key, value)| fields.text(key, value));
    });
}

fn add_scope(message: &mut Message) {
    message.message(1, |scope| {
        scope.text(1, "cog");
        scope.text(2, env!("CARGO_PKG_VERSION"));
    });
}

/// Writes attributes as a repeated field of a message.
struct Fields<'a> {
    message: &'a mut Message,
    field: u32,
}

impl Fields<'_> {
    fn add(&mut self, key: &str, value: impl FnOnce(&mut Message)) {
        self.message.message(self.field, |pair| {
            pair.text(1, key);
            pair.message(2, value);
        });
    }
}

impl Attributes for Fields<'_> {
    fn text(&mut self, key: &str, value: &str) {
        self.add(key, |any| any.text(1, value));
    }

    fn texts<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>) {
        self.add(key, |any| {
            any.message(5, |list| values.for_each(|value| list.message(1, |any| any.text(1, value))));
        });
    }

    fn integer(&mut self, key: &str, value: i64) {
        self.add(key, |any| any.integer(3, value.cast_unsigned()));
    }

    fn number(&mut self, key: &str, value: f64) {
        self.add(key, |any| any.double(4, value));
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.add(key, |any| any.integer(2, u64::from(value)));
    }
}

// Metrics as messages.

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

// What a collector answers, and the time.

/// Returns the number of entries that a collector rejected, in its response to an export.
pub(crate) fn rejected(response: &[u8]) -> u64 {
    let Some(Field::Bytes(partial)) = find(response, 1) else { return 0 };
    match find(partial, 1) {
        Some(Field::Integer(count)) => count,
        _ => 0,
    }
}

/// Returns the current Unix time in nanoseconds.
#[expect(clippy::disallowed_methods, reason = "data points have the time at which they are read")]
pub(crate) fn now() -> u64 {
    nanoseconds(SystemTime::now())
}

/// Returns a time as Unix time in nanoseconds.
pub(crate) fn nanoseconds(time: SystemTime) -> u64 {
    let time = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

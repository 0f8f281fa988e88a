//! OpenTelemetry of runs: spans and metrics of the conventions for generative AI, sent over OTLP/HTTP (docs/telemetry.md).
//!
//! * [`TelemetrySettings`] reads the standard variables, `OTEL_EXPORTER_OTLP_ENDPOINT` and others;
//! * [`Telemetry`] is a listener of a runtime: [`RuntimeBuilder::events`](cog_run::RuntimeBuilder::events);
//! * `mapping` decides the names and attributes of a span, and `metrics` the same of metrics;
//! * `otlp` writes both as the protobuf messages of OTLP, and `exporter` sends them.
//!
//! A run only writes its spans into a bounded queue. A thread sends them in batches. What does not fit is counted, and a collector
//! that is slow or gone never holds up a run.

mod exporter;
mod mapping;
mod metrics;
mod names;
mod otlp;
mod protobuf;
mod settings;
mod shared;
mod telemetry;

pub use self::{
    mapping::Redact,
    settings::{Endpoint, Found, Sampler, TelemetrySettings, Temporality},
    shared::DroppedTelemetry,
    telemetry::Telemetry,
};

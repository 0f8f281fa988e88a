//! The listener that exports what it learns of runs.

use std::{
    cell::Cell,
    fmt,
    sync::{Arc, Condvar, Mutex, Once, atomic::AtomicU64},
    time::Duration,
};

use cog_run::events::{CallReport, Needs, RunEvents, RunReport, Span, SpanContext, ToolReport};
use tokio::sync::Notify;

use crate::{
    exporter,
    mapping::{Recorded, Redact, SpanKind},
    metrics::Instruments,
    otlp,
    protobuf::Message,
    settings::TelemetrySettings,
    shared::{DroppedTelemetry, Queue, Shared, State, lock},
};

/// The maximum bytes that a thread keeps for its next span.
const MAX_KEPT: usize = 16 << 10;

thread_local! {
    /// Where this thread writes a span before the queue is locked.
    static SPAN: Cell<Message> = Cell::default();
}

/// Exports the spans and metrics of runs. Dropping it exports what is left, within [`Telemetry::CLOSE_TIMEOUT`].
pub struct Telemetry(Arc<Shared>);

impl Telemetry {
    /// The maximum time that the end of a program waits for a collector.
    pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

    /// Creates the export. Its thread starts with the first span. `redact` masks the keys in what is exported.
    pub fn new(settings: TelemetrySettings, redact: Redact) -> Self {
        Self(Arc::new(Shared {
            redact,
            queue: Mutex::new(Queue::new(settings.max_queue, settings.batch)),
            instruments: Mutex::new(Instruments::new()),
            counting_since: Mutex::new(otlp::now()),
            wake: Notify::new(),
            in_flight: AtomicU64::new(0),
            dropped_spans: AtomicU64::new(0),
            dropped_exports: AtomicU64::new(0),
            reason: Mutex::new(None),
            started: Once::new(),
            state: Mutex::new(State::Idle),
            changed: Condvar::new(),
            settings,
        }))
    }

    /// Returns the listener for a runtime.
    #[must_use]
    pub fn events(&self) -> Arc<dyn RunEvents> {
        Arc::new(Handle(Arc::clone(&self.0)))
    }

    /// Exports what is left, and waits for it, at most for this time. Later spans are dropped. Returns what was not delivered.
    pub fn close(&self, timeout: Duration) -> DroppedTelemetry {
        self.0.close(timeout)
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.0.close(Self::CLOSE_TIMEOUT);
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Telemetry").field(&self.0.settings).finish()
    }
}

/// The listener of a runtime.
struct Handle(Arc<Shared>);

impl RunEvents for Handle {
    fn needs(&self) -> Needs {
        Needs { spans: true, content: self.0.settings.records_content, ..Needs::default() }
    }

    fn samples(&self, parent: Option<&SpanContext>, trace_id: [u8; 16]) -> bool {
        let settings = &self.0.settings;
        settings.traces.is_some() && settings.sampler.is_sampled(parent, trace_id)
    }

    fn run_ended(&self, run: &RunReport<'_>) {
        self.0.ended(run.span, SpanKind::Run(run));
    }

    fn call_ended(&self, call: &CallReport<'_>) {
        self.0.ended(call.span, SpanKind::Call(call));
    }

    fn tool_ended(&self, tool: &ToolReport<'_>) {
        self.0.ended(tool.span, SpanKind::Tool(tool));
    }
}

impl Shared {
    /// Counts a span, and adds it to the queue if its trace is recorded.
    fn ended(self: &Arc<Self>, span: Option<Span<'_>>, kind: SpanKind<'_>) {
        let Some(span) = span else { return };
        // Not in `new`: a command without runs would start a thread for nothing.
        self.started.call_once(|| exporter::start(self));
        if self.settings.metrics.is_some() {
            lock(&self.instruments).record(kind, span.duration, &self.redact);
        }
        if self.settings.traces.is_none() || !span.context.is_sampled {
            return;
        }
        let TelemetrySettings { records_content, value_limit, .. } = self.settings;
        let recorded = Recorded { redact: &self.redact, is_on: records_content, limit: value_limit };
        // A thread that ends has nothing to write into any more.
        let mut message = SPAN.try_with(Cell::take).unwrap_or_default();
        otlp::span(&span, kind, &recorded, &mut message);
        self.push(message.as_bytes());
        if message.capacity() <= MAX_KEPT {
            message.clear();
            let _ = SPAN.try_with(|kept| kept.set(message));
        }
    }
}

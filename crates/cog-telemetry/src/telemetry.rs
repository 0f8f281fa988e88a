//! The tracer that exports what it receives.

use std::{
    cell::Cell,
    fmt,
    sync::{Arc, Condvar, Mutex, Once, atomic::AtomicU64},
    time::Duration,
};

use cog_run::spans::{Span, SpanContext, Tracer};
use tokio::sync::Notify;

use crate::{
    clock,
    content::{Recorded, Redact},
    exporter,
    instruments::Instruments,
    otlp,
    protobuf::Message,
    queue::Queue,
    settings::TelemetrySettings,
    shared::{Shared, State, Undelivered, lock},
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

    /// Creates the tracer. Its thread starts with the first span. `redact` masks the keys in content.
    pub fn new(settings: TelemetrySettings, redact: Redact) -> Self {
        let mut seed = [0; 8];
        // Without it, the identifiers begin with the time.
        let seed = getrandom::fill(&mut seed).map_or_else(|_| clock::now(), |()| u64::from_ne_bytes(seed));
        let redact = settings.records_content.then_some(redact);
        Self(Arc::new(Shared {
            redact,
            ids: Mutex::new(fastrand::Rng::with_seed(seed)),
            queue: Mutex::new(Queue::new(settings.max_queue, settings.batch)),
            instruments: Mutex::new(Instruments::new()),
            counting_since: Mutex::new(clock::now()),
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

    /// Returns the tracer for a runtime.
    #[must_use]
    pub fn tracer(&self) -> Arc<dyn Tracer> {
        Arc::new(Handle(Arc::clone(&self.0)))
    }

    /// Exports what is left, and waits for it, at most for this time. Later spans are dropped. Returns what was not delivered.
    pub fn close(&self, timeout: Duration) -> Undelivered {
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

/// The tracer of a runtime.
struct Handle(Arc<Shared>);

impl Tracer for Handle {
    fn start(&self, parent: Option<&SpanContext>) -> SpanContext {
        let shared = &self.0;
        let mut ids = lock(&shared.ids);
        let trace_id = match parent {
            Some(parent) => parent.trace_id,
            None => ids.u128(1..).to_be_bytes(),
        };
        let span_id = ids.u64(1..).to_be_bytes();
        drop(ids);
        let traces = shared.settings.traces.is_some();
        let is_sampled = traces && shared.settings.sampler.is_sampled(parent, trace_id);
        SpanContext { trace_id, span_id, is_sampled, state: parent.and_then(|parent| parent.state.clone()) }
    }

    fn records_content(&self) -> bool {
        self.0.redact.is_some()
    }

    fn ended(&self, span: &Span<'_>) {
        let shared = &self.0;
        shared.started.call_once(|| exporter::start(shared));
        if shared.settings.metrics.is_some() {
            lock(&shared.instruments).record(span);
        }
        if span.context.is_sampled {
            let recorded = Recorded { redact: shared.redact.as_ref(), limit: shared.settings.value_limit };
            // A thread that ends has nothing to write into any more.
            let mut message = SPAN.try_with(Cell::take).unwrap_or_default();
            otlp::span(span, &recorded, &mut message);
            shared.push(message.as_bytes());
            if message.capacity() <= MAX_KEPT {
                message.clear();
                let _ = SPAN.try_with(|kept| kept.set(message));
            }
        }
    }
}

//! A span that has not ended.

use std::{sync::Arc, time::SystemTime};

use tokio::time::Instant;

use super::{Span, SpanContext, Tracer, Work};
use crate::{RunOptions, clock};

/// Where the spans of a run belong.
#[derive(Clone)]
pub(crate) struct SpanScope {
    tracer: Arc<dyn Tracer>,
    /// The span of the run.
    parent: Option<SpanContext>,
}

impl SpanScope {
    /// Returns the scope of a run; none without a tracer.
    pub(crate) fn new(tracer: Option<&Arc<dyn Tracer>>, options: &RunOptions) -> Option<Self> {
        let tracer = Arc::clone(tracer?);
        Some(Self { tracer, parent: options.parent_span.clone() })
    }

    /// Starts a span of the run.
    pub(super) fn open(&self) -> OpenSpan {
        OpenSpan::start(&self.tracer, self.parent.as_ref())
    }
}

/// A span that has started.
pub(crate) struct OpenSpan {
    tracer: Arc<dyn Tracer>,
    pub(super) context: SpanContext,
    parent: Option<SpanContext>,
    at: SystemTime,
    pub(super) started: Instant,
}

impl OpenSpan {
    pub(super) fn start(tracer: &Arc<dyn Tracer>, parent: Option<&SpanContext>) -> Self {
        let (at, started) = (clock::now(), Instant::now());
        let context = tracer.start(parent);
        Self { tracer: Arc::clone(tracer), context, parent: parent.cloned(), at, started }
    }

    pub(super) fn records_content(&self) -> bool {
        self.tracer.records_content()
    }

    pub(super) fn end(&self, work: Work<'_>) {
        self.tracer.ended(&Span {
            context: &self.context,
            parent: self.parent.as_ref(),
            started: self.at,
            duration: self.started.elapsed(),
            work,
        });
    }
}

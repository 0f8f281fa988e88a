//! Reports the ends of runs.

use std::sync::Arc;

use cog_json::Value;
use cog_module::Module;
use cog_spec::{Chunk, ErrorBody, Usage};

use super::{Ended, Observer, RunOutcome};
use crate::spans::{OpenRun, RunEnd};

/// Reports a run that was refused before the provider was called.
pub(crate) fn refused(error: &ErrorBody, module: &Module, observer: &dyn Observer) {
    observer.ended(&Ended {
        module: &module.manifest.name,
        outcome: RunOutcome::Failed(&error.code),
        usage: None,
        attempts: 0,
        repairs: 0,
        fallbacks: &[],
    });
}

/// Reports the end of one run to the observer and the tracer.
pub(crate) struct RunObserver {
    module: Arc<Module>,
    observer: Option<Arc<dyn Observer>>,
    span: Option<OpenRun>,
    /// The last meta before the final event (ruling R42). A failure has no other.
    meta: Option<Value>,
    has_ended: bool,
}

impl RunObserver {
    /// Returns what reports the end of a run; none without an observer and a span.
    pub(crate) fn new(
        module: &Arc<Module>,
        observer: Option<&Arc<dyn Observer>>,
        span: Option<OpenRun>,
    ) -> Option<Box<Self>> {
        let is_needed = observer.is_some() || span.is_some();
        let (module, observer) = (Arc::clone(module), observer.cloned());
        is_needed.then(|| Box::new(Self { module, observer, span, meta: None, has_ended: false }))
    }

    /// Observes the next chunk of the run.
    pub(crate) fn observe(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Snapshot { field: Some(field), data, .. } if field == "meta" => {
                self.meta = Some(data.clone());
            }
            Chunk::Final { meta, data, usage, .. } => {
                let end = Ended {
                    module: "",
                    outcome: RunOutcome::Answered,
                    usage: usage.as_ref().or(meta.runtime.usage.as_ref()),
                    attempts: meta.runtime.attempts.unwrap_or(1),
                    repairs: meta.runtime.repairs.len(),
                    fallbacks: &meta.runtime.fallbacks,
                };
                let (meta, data) = (Some(&**meta), Some(data));
                self.report(end, RunEnd { meta, data, message: None });
            }
            Chunk::Error { error, .. } => {
                self.report_unanswered(RunOutcome::Failed(&error.code), Some(&error.message));
            }
            Chunk::Meta { .. } | Chunk::Delta { .. } | Chunk::Snapshot { .. } | Chunk::Progress(_) => {}
        }
    }

    fn report_unanswered(&mut self, outcome: RunOutcome<'_>, message: Option<&str>) {
        let meta = self.meta.take();
        let meta = meta.as_ref().map(Value::node);
        let usage = meta.and_then(|meta| meta.get("usage")).and_then(Usage::read);
        let attempts = meta.and_then(|meta| meta.get("attempts")?.as_u64());
        let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok()).unwrap_or(1);
        let repairs = meta.and_then(|meta| Some(meta.get("repairs")?.len())).unwrap_or(0);
        let end = Ended { module: "", outcome, usage: usage.as_ref(), attempts, repairs, fallbacks: &[] };
        self.report(end, RunEnd { message, ..RunEnd::default() });
    }

    fn report(&mut self, end: Ended<'_>, answer: RunEnd<'_>) {
        self.has_ended = true;
        if let Some(observer) = &self.observer {
            observer.ended(&Ended { module: &self.module.manifest.name, ..end });
        }
        if let Some(span) = &self.span {
            span.end(&self.module, end, answer);
        }
    }
}

impl Drop for RunObserver {
    fn drop(&mut self) {
        if !self.has_ended {
            self.report_unanswered(RunOutcome::Dropped, None);
        }
    }
}

//! Observers of calls and runs, for the operator's metrics and logs.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use cog_json::Value;
use cog_module::Module;
use cog_provider::{
    ModelFuture, ModelRequest, ModelStream, Provider, ProviderError, ProviderInfo, ReplyHead, RetryHook,
    WireRequest,
};
use cog_spec::{Chunk, Code, ErrorBody, ErrorCode, Fallback, ModelEvent, Usage};
use futures_core::Stream;
use tokio::time::Instant;

use crate::spans::{OpenRun, RunEnd};

/// Is notified of every call and run, for metrics and logs. Its methods run within the run, so they must
/// return quickly.
pub trait Observer: Send + Sync {
    /// An attempt to call a provider has ended, or its circuit rejected the call.
    fn called(&self, call: &Call<'_>);

    /// The head of a reply has arrived, also of one that reports an error.
    fn replied(&self, _head: &ReplyHead) {}

    /// A run has ended, or was rejected before the provider was called.
    fn ended(&self, run: &Ended<'_>);
}

/// A finished attempt to call a provider. Each retry is an attempt of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The outcome of the call.
    pub outcome: CallOutcome,
    /// The time from the first attempt to the first token; none without a token.
    pub first_token: Option<Duration>,
}

/// The outcome of a call to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The reply is complete.
    Answered,
    /// The provider or the connection to it failed.
    Failed(Code),
    /// The attempt failed with this code and is retried.
    Retried(Code),
    /// Nothing was sent, because the circuit of the provider is open.
    CircuitOpen,
    /// The run needed no more of the reply: it was cancelled, or stopped at a violation.
    Dropped,
}

/// A finished run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended<'a> {
    /// The module's name.
    pub module: &'a str,
    /// The outcome of the run.
    pub outcome: RunOutcome<'a>,
    /// The tokens of all attempts, when known.
    pub usage: Option<&'a Usage>,
    /// The number of calls to the model.
    pub attempts: u32,
    /// The number of repairs of the answer.
    pub repairs: usize,
    /// The providers that failed before the one that answered.
    pub fallbacks: &'a [Fallback],
}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RunOutcome<'a> {
    /// The run returned an answer.
    Answered,
    /// The run returned an error.
    Failed(&'a ErrorCode),
    /// The stream was dropped before its last chunk.
    Dropped,
}

/// Returns a hook that notifies the observer of each attempt that the provider retries, if `is_allowed` allows the retry.
pub(crate) fn retry_hook(
    provider: &dyn Provider,
    observer: Option<Arc<dyn Observer>>,
    is_allowed: impl Fn() -> bool + Send + Sync + 'static,
) -> RetryHook {
    let name = provider.info().name.clone();
    RetryHook::new(move |code| {
        let is_allowed = is_allowed();
        if let Some(observer) = observer.as_ref().filter(|_| is_allowed) {
            let outcome = CallOutcome::Retried(code);
            observer.called(&Call { provider: &name, outcome, first_token: None });
        }
        is_allowed
    })
}

/// Wraps a provider so that the observer is notified of its calls.
pub(crate) fn provider(provider: Arc<dyn Provider>, observer: &Arc<dyn Observer>) -> Arc<dyn Provider> {
    Arc::new(Observed::new(provider, Arc::clone(observer)))
}

// Reports the calls to a provider.

/// A provider whose calls are reported.
struct Observed {
    provider: Arc<dyn Provider>,
    observer: Arc<dyn Observer>,
}

impl Observed {
    fn new(provider: Arc<dyn Provider>, observer: Arc<dyn Observer>) -> Self {
        Self { provider, observer }
    }
}

impl Provider for Observed {
    fn info(&self) -> &ProviderInfo {
        self.provider.info()
    }

    fn is_available(&self) -> bool {
        self.provider.is_available()
    }

    fn render(&self, request: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        self.provider.render(request)
    }

    fn check(&self, request: &ModelRequest) -> Result<(), ProviderError> {
        self.provider.check(request)
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let mut guard = CallGuard::new(self);
        Box::pin(async move {
            match self.provider.call(request).await {
                Ok(reply) => {
                    guard.reply_started();
                    Ok(Box::pin(Reply { reply, guard }) as ModelStream)
                }
                Err(error) => {
                    guard.failed(&error);
                    Err(error)
                }
            }
        })
    }
}

/// Reports the call when it is dropped.
struct CallGuard {
    provider: Arc<dyn Provider>,
    observer: Arc<dyn Observer>,
    started: Instant,
    first_token: Option<Duration>,
    /// `None` if the call was not attempted.
    outcome: Option<CallOutcome>,
}

impl CallGuard {
    fn new(observed: &Observed) -> Self {
        Self {
            provider: Arc::clone(&observed.provider),
            observer: Arc::clone(&observed.observer),
            started: Instant::now(),
            first_token: None,
            outcome: Some(CallOutcome::Dropped),
        }
    }

    fn reply_started(&mut self) {
        self.first_token = Some(self.started.elapsed());
    }

    fn reply_completed(&mut self) {
        self.outcome = Some(CallOutcome::Answered);
    }

    fn failed(&mut self, error: &ProviderError) {
        self.outcome = match error {
            ProviderError::CircuitOpen { .. } => Some(CallOutcome::CircuitOpen),
            error => error.was_attempted().then(|| CallOutcome::Failed(error.code())),
        };
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let (Some(outcome), first_token) = (self.outcome, self.first_token) else { return };
        self.observer.called(&Call { provider: &self.provider.info().name, outcome, first_token });
    }
}

/// A reply whose events are observed.
struct Reply {
    reply: ModelStream,
    guard: CallGuard,
}

impl Stream for Reply {
    type Item = Result<ModelEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.reply.as_mut().poll_next(context);
        match &polled {
            Poll::Ready(Some(Ok(ModelEvent::Finished(_)))) => self.guard.reply_completed(),
            Poll::Ready(Some(Err(error))) => self.guard.failed(error),
            _ => {}
        }
        polled
    }
}

// Reports the ends of runs.

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

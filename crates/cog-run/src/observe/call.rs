//! Reports the calls to a provider.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use cog_provider::{
    ModelFuture, ModelRequest, ModelStream, Provider, ProviderError, ProviderInfo, WireRequest,
};
use cog_spec::ModelEvent;
use futures_core::Stream;
use tokio::time::Instant;

use super::{Call, CallOutcome, Observer};

/// A provider whose calls are reported.
pub(super) struct Observed {
    provider: Arc<dyn Provider>,
    observer: Arc<dyn Observer>,
}

impl Observed {
    pub(super) fn new(provider: Arc<dyn Provider>, observer: Arc<dyn Observer>) -> Self {
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

//! Observers of calls and runs, for the operator's metrics and logs.

mod call;
mod run;

use std::{sync::Arc, time::Duration};

use cog_provider::{Provider, ReplyHead, RetryHook};
use cog_spec::{Code, ErrorCode, Fallback, Usage};

pub(crate) use run::{RunObserver, refused};

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
    Arc::new(call::Observed::new(provider, Arc::clone(observer)))
}

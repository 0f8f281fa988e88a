//! A circuit breaker that pauses calls to a provider after several failures in a row.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Deadline, ModelFuture, ModelRequest, Provider, ProviderError, ProviderInfo, WireRequest};

/// The maximum time that a vendor's own `Retry-After` keeps the circuit open.
const MAX_PAUSE: Duration = Duration::from_secs(600);
/// The `Retry-After` returned to other callers while one call probes the provider.
const WHILE_PROBING: Duration = Duration::from_secs(1);

/// When a circuit opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// The number of consecutive failures that opens the circuit (5); 0 disables the breaker.
    pub failures: u32,
    /// How long the circuit stays open (30 s); longer if the vendor requests it.
    pub reset_timeout: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failures: 5, reset_timeout: Duration::from_secs(30) }
    }
}

/// A circuit breaker around a provider, shared by all runs that call it.
///
/// A call counts as failed by its outcome before the first token, retries included. Failures are: unreachable, 5xx,
/// 429, an interrupted reply, no first token in time.
/// After the configured number of failures in a row the circuit opens and calls fail at once
/// ([`ProviderError::CircuitOpen`], E4001). After the pause a single call is let through as a probe. If the probe
/// succeeds the circuit closes; otherwise it stays open for another pause.
pub struct Breaker {
    provider: Arc<dyn Provider>,
    settings: BreakerSettings,
    circuit: Mutex<Circuit>,
}

#[derive(Debug, Clone, Copy)]
enum Circuit {
    /// Calls go through; `failures` counts the most recent consecutive failures.
    Closed { failures: u32 },
    /// No call goes through before this instant.
    Open { until: Instant },
    /// One call is probing the provider.
    Probing,
}

impl Breaker {
    /// Wraps a provider in a breaker whose circuit is closed.
    pub fn new(provider: Arc<dyn Provider>, settings: BreakerSettings) -> Self {
        Self { provider, settings, circuit: Mutex::new(Circuit::Closed { failures: 0 }) }
    }

    /// Admits a call, or rejects it.
    fn admit(&self) -> Result<Attempt<'_>, ProviderError> {
        let mut circuit = self.circuit();
        match *circuit {
            Circuit::Closed { .. } => Ok(Attempt { breaker: self, is_probe: false, is_recorded: false }),
            Circuit::Open { until } if until <= Instant::now() => {
                *circuit = Circuit::Probing;
                Ok(Attempt { breaker: self, is_probe: true, is_recorded: false })
            }
            Circuit::Open { until } => Err(self.rejection(until - Instant::now())),
            Circuit::Probing => Err(self.rejection(WHILE_PROBING)),
        }
    }

    fn rejection(&self, retry_after: Duration) -> ProviderError {
        ProviderError::CircuitOpen { provider: self.provider.info().name.clone().into_owned(), retry_after }
    }

    fn record_failure(&self, is_probe: bool, error: &ProviderError) {
        let mut circuit = self.circuit();
        let failures = match *circuit {
            Circuit::Closed { failures } => failures.saturating_add(1),
            Circuit::Probing if is_probe => self.settings.failures,
            // A call that started before the circuit opened.
            Circuit::Probing | Circuit::Open { .. } => return,
        };
        if self.settings.failures == 0 || failures < self.settings.failures {
            *circuit = Circuit::Closed { failures };
            return;
        }
        let requested = error.retry_after().unwrap_or_default().min(MAX_PAUSE);
        let pause = self.settings.reset_timeout.max(requested);
        tracing::warn!(provider = %self.provider.info().name, pause_ms = pause.as_millis(), %error, "circuit opened");
        *circuit = Circuit::Open { until: Instant::now() + pause };
    }

    fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that was admitted.
struct Attempt<'a> {
    breaker: &'a Breaker,
    is_probe: bool,
    is_recorded: bool,
}

impl Attempt<'_> {
    /// Records the outcome of the call.
    fn record(mut self, error: Option<&ProviderError>) {
        self.is_recorded = true;
        match error {
            Some(error) if is_failure(error) => self.breaker.record_failure(self.is_probe, error),
            // A provider that rejects a request is available.
            _ => *self.breaker.circuit() = Circuit::Closed { failures: 0 },
        }
    }
}

impl Drop for Attempt<'_> {
    /// A dropped call has no outcome, so the next call probes.
    fn drop(&mut self) {
        if self.is_probe && !self.is_recorded {
            *self.breaker.circuit() = Circuit::Open { until: Instant::now() };
        }
    }
}

/// Returns whether an error counts as a failure of the provider.
const fn is_failure(error: &ProviderError) -> bool {
    matches!(
        error,
        ProviderError::Unavailable { .. }
            | ProviderError::Connect { .. }
            | ProviderError::RateLimited { .. }
            | ProviderError::Interrupted { .. }
            | ProviderError::Timeout { deadline: Deadline::FirstToken, .. }
    )
}

impl Provider for Breaker {
    fn info(&self) -> &ProviderInfo {
        self.provider.info()
    }

    fn is_available(&self) -> bool {
        let is_closed = match *self.circuit() {
            Circuit::Closed { .. } => true,
            Circuit::Open { until } => until <= Instant::now(),
            Circuit::Probing => false,
        };
        is_closed && self.provider.is_available()
    }

    fn render(&self, request: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        self.provider.render(request)
    }

    fn check(&self, request: &ModelRequest) -> Result<(), ProviderError> {
        self.provider.check(request)
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            let attempt = self.admit()?;
            let result = self.provider.call(request).await;
            attempt.record(result.as_ref().err());
            result
        })
    }
}

#[cfg(test)]
mod tests;

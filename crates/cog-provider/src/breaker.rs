//! A circuit breaker that pauses calls to a model of a provider after several failures in a row.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Deadline, ModelFuture, ModelRequest, Provider, ProviderError, ProviderInfo, WireRequest};

/// The maximum time that a vendor's own `Retry-After` keeps the circuit open.
const MAX_PAUSE: Duration = Duration::from_secs(600);
/// The `Retry-After` returned to other callers while one call probes the provider.
const WHILE_PROBING: Duration = Duration::from_secs(1);
/// The maximum number of circuits that are remembered. Clients choose the names of models.
const MAX_CIRCUITS: usize = 256;

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

/// A circuit breaker around a provider, shared by all runs that call it, with a circuit for each model.
///
/// A client of a server chooses its model, so the failures of one model, or of the quota for it, must not stop calls of
/// other clients to another. A provider that is down opens the circuits of all models that are called.
///
/// A call counts as failed by its outcome before the first token, retries included. Failures are: unreachable, 5xx, an
/// interrupted reply, no first token in time, a used-up account, and a rate limit (429) with a wait that the vendor
/// requests. A rate limit without one is not an outage: other calls may pass, and only their own retries slow them down.
/// After the configured number of failures in a row the circuit opens and calls fail at once
/// ([`ProviderError::CircuitOpen`], E4001). After the pause a single call is let through as a probe. If the probe
/// succeeds the circuit closes; otherwise it stays open for another pause.
pub struct Breaker {
    provider: Arc<dyn Provider>,
    settings: BreakerSettings,
    circuits: Mutex<Circuits>,
    hasher: RandomState,
}

/// The circuits that are not simply closed, by the hash of their model: a name that a client sends may be long.
type Circuits = HashMap<u64, Circuit>;

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
        Self { provider, settings, circuits: Mutex::default(), hasher: RandomState::new() }
    }

    /// Returns the key of a model's circuit. An empty name is the provider's own model.
    fn key_of(&self, model: &str) -> u64 {
        // With a random key, so that no client can choose a name with the circuit of another model.
        self.hasher.hash_one(self.info().model_or_default(model))
    }

    /// Admits a call to a model, or rejects it.
    fn admit(&self, model: &str) -> Result<Attempt<'_>, ProviderError> {
        let key = self.key_of(model);
        let mut circuits = self.circuits();
        let is_probe = match circuits.get(&key) {
            None | Some(Circuit::Closed { .. }) => false,
            Some(Circuit::Open { until }) if *until <= Instant::now() => {
                circuits.insert(key, Circuit::Probing);
                true
            }
            Some(Circuit::Open { until }) => return Err(self.rejection(*until - Instant::now())),
            Some(Circuit::Probing) => return Err(self.rejection(WHILE_PROBING)),
        };
        Ok(Attempt { breaker: self, key, is_probe, is_recorded: false })
    }

    fn rejection(&self, retry_after: Duration) -> ProviderError {
        ProviderError::CircuitOpen { provider: self.provider.info().name.clone().into_owned(), retry_after }
    }

    fn record_failure(&self, key: u64, is_probe: bool, error: &ProviderError) {
        if self.settings.failures == 0 {
            return;
        }
        let mut circuits = self.circuits();
        let failures = match circuits.get(&key) {
            None => 1,
            Some(Circuit::Closed { failures }) => failures.saturating_add(1),
            Some(Circuit::Probing) if is_probe => self.settings.failures,
            // A call that started before the circuit opened.
            Some(Circuit::Probing | Circuit::Open { .. }) => return,
        };
        if circuits.len() >= MAX_CIRCUITS && !circuits.contains_key(&key) {
            self.forget_one(&mut circuits);
        }
        if failures < self.settings.failures {
            circuits.insert(key, Circuit::Closed { failures });
            return;
        }
        let pause = self.pause(error);
        tracing::warn!(provider = %self.provider.info().name, pause_ms = pause.as_millis(), error = error.outline(), "circuit opened");
        circuits.insert(key, Circuit::Open { until: Instant::now() + pause });
    }

    /// Returns how long the circuit stays open. After a rate limit the vendor says when it accepts calls again.
    fn pause(&self, error: &ProviderError) -> Duration {
        let requested = error.retry_after().unwrap_or_default().min(MAX_PAUSE);
        match error {
            ProviderError::RateLimited { is_quota: false, .. } => requested,
            _ => requested.max(self.settings.reset_timeout),
        }
    }

    /// Removes the circuit that matters least: a closed one, or the one that is open for the shortest time. The
    /// circuit of the provider's own model, which most clients use, stays.
    fn forget_one(&self, circuits: &mut Circuits) {
        let own = self.key_of("");
        let others = circuits.iter().filter(|(key, _)| **key != own);
        let least = others.min_by_key(|(_, circuit)| match circuit {
            Circuit::Closed { failures } => (0, *failures, None),
            Circuit::Open { until } => (1, 0, Some(*until)),
            Circuit::Probing => (2, 0, None),
        });
        if let Some(key) = least.map(|(key, _)| *key) {
            circuits.remove(&key);
        }
    }

    fn circuits(&self) -> MutexGuard<'_, Circuits> {
        self.circuits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that was admitted.
struct Attempt<'a> {
    breaker: &'a Breaker,
    key: u64,
    is_probe: bool,
    is_recorded: bool,
}

impl Attempt<'_> {
    /// Records the outcome of the call.
    fn record(mut self, error: Option<&ProviderError>) {
        self.is_recorded = true;
        match error {
            Some(error) if is_failure(error) => self.breaker.record_failure(self.key, self.is_probe, error),
            // A provider that rejects a request is available.
            _ => drop(self.breaker.circuits().remove(&self.key)),
        }
    }
}

impl Drop for Attempt<'_> {
    /// A dropped call has no outcome, so the next call probes.
    fn drop(&mut self) {
        if self.is_probe && !self.is_recorded {
            self.breaker.circuits().insert(self.key, Circuit::Open { until: Instant::now() });
        }
    }
}

/// Returns whether an error counts as a failure of the provider.
const fn is_failure(error: &ProviderError) -> bool {
    matches!(
        error,
        ProviderError::Unavailable { .. }
            | ProviderError::Connect { .. }
            | ProviderError::RateLimited { is_quota: true, .. }
            | ProviderError::RateLimited { retry_after: Some(_), .. }
            | ProviderError::Interrupted { .. }
            | ProviderError::Timeout { deadline: Deadline::FirstToken, .. }
    )
}

impl Provider for Breaker {
    fn info(&self) -> &ProviderInfo {
        self.provider.info()
    }

    /// Returns whether the circuit of its own model lets calls through.
    fn is_available(&self) -> bool {
        let is_closed = match self.circuits().get(&self.key_of("")) {
            None | Some(Circuit::Closed { .. }) => true,
            Some(Circuit::Open { until }) => *until <= Instant::now(),
            Some(Circuit::Probing) => false,
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
            let attempt = self.admit(&request.model)?;
            let result = self.provider.call(request).await;
            attempt.record(result.as_ref().err());
            result
        })
    }
}

#[cfg(test)]
mod tests;

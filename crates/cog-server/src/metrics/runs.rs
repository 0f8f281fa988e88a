//! Metrics of runs and of their provider calls.

use std::sync::atomic::AtomicU64;

use cog_run::{
    Code,
    events::{CallOutcome, CallReport, RunEvents, RunOutcome, RunReport},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

use super::Metrics;
use crate::metrics;

/// The metrics of runs and of the calls to providers.
pub(super) struct Runs {
    calls: Family<Called, Counter>,
    provider_retries: Family<Provider, Counter>,
    circuit_rejections: Family<Provider, Counter>,
    first_token: Family<Provider, Histogram, fn() -> Histogram>,
    fallbacks: Family<Skipped, Counter>,
    runs: RunCounters,
}

/// The metrics of runs by module, which do not name the operator's providers.
pub(super) struct RunCounters {
    runs: Family<Outcome, Counter>,
    tokens: Family<Tokens, Counter>,
    cost: Family<Module, Counter<f64, AtomicU64>>,
    repairs: Family<Module, Counter>,
    retries: Family<Module, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Called {
    provider: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Provider {
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Skipped {
    provider: String,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    module: String,
    outcome: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Module {
    module: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tokens {
    module: String,
    direction: &'static str,
}

impl Runs {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let first_token = Family::new_with_constructor(metrics::seconds as fn() -> Histogram);
        let runs = Self {
            calls: Family::default(),
            provider_retries: Family::default(),
            circuit_rejections: Family::default(),
            first_token,
            fallbacks: Family::default(),
            runs: RunCounters::new(registry),
        };
        let calls = "Attempts to call a provider, by outcome: answered, dropped (cancelled) or the code";
        registry.register("provider_calls", calls, runs.calls.clone());
        let retries = "Failed attempts that were retried, by provider";
        registry.register("provider_retries", retries, runs.provider_retries.clone());
        let rejections = "Calls rejected by the open circuit of a provider";
        registry.register("provider_circuit_rejections", rejections, runs.circuit_rejections.clone());
        let first = "Seconds from the request to the provider's first token";
        registry.register("provider_first_token_seconds", first, runs.first_token.clone());
        let skipped = "Providers skipped because they gave no answer, by provider and code";
        registry.register("fallbacks", skipped, runs.fallbacks.clone());
        runs
    }
}

impl RunCounters {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let runs = Self {
            runs: Family::default(),
            tokens: Family::default(),
            cost: Family::default(),
            repairs: Family::default(),
            retries: Family::default(),
        };
        let ends = "Runs, by module and outcome: answered, dropped or the error's code";
        registry.register("runs", ends, runs.runs.clone());
        registry.register("tokens", "Tokens of all calls, by module and direction", runs.tokens.clone());
        let cost = "Cost of all calls in US dollars at list prices, by module; calls without a known price are missing";
        registry.register("cost_usd", cost, runs.cost.clone());
        registry.register("repairs", "Repairs of answers, by module", runs.repairs.clone());
        let retries = "Further model calls after an invalid answer, by module";
        registry.register("retries", retries, runs.retries.clone());
        runs
    }

    /// Counts a run that has ended. A nested one belongs to the run around it.
    pub(super) fn count(&self, run: &RunReport<'_>) {
        if run.is_nested {
            return;
        }
        let outcome = match run.outcome {
            RunOutcome::Answered => "answered",
            RunOutcome::Failed(code) => code.as_str(),
            _ => "dropped",
        };
        let module = run.module.manifest.name.clone();
        self.runs.get_or_create(&Outcome { module, outcome: outcome.to_owned() }).inc();
        let tokens = run.usage.map(|usage| [("in", usage.input_tokens), ("out", usage.output_tokens)]);
        for (direction, count) in tokens.into_iter().flatten() {
            let module = run.module.manifest.name.clone();
            self.tokens.get_or_create(&Tokens { module, direction }).inc_by(count);
        }
        if let Some(cost) = run.usage.and_then(|usage| usage.cost) {
            let module = Module { module: run.module.manifest.name.clone() };
            self.cost.get_or_create(&module).inc_by(cost.amount.as_f64());
        }
        let retries = u64::from(run.attempts.saturating_sub(1));
        let repairs = u64::try_from(run.repairs).unwrap_or(u64::MAX);
        for (family, count) in [(&self.repairs, repairs), (&self.retries, retries)] {
            if count > 0 {
                family.get_or_create(&Module { module: run.module.manifest.name.clone() }).inc_by(count);
            }
        }
    }
}

impl RunEvents for Metrics {
    fn call_retried(&self, provider: &str, code: Code) {
        let provider = Provider { provider: provider.to_owned() };
        self.runs.provider_retries.get_or_create(&provider).inc();
        self.runs.calls.get_or_create(&Called { provider: provider.provider, outcome: code.as_str() }).inc();
    }

    fn call_ended(&self, call: &CallReport<'_>) {
        let provider = Provider { provider: call.provider.to_owned() };
        let outcome = match call.outcome {
            CallOutcome::Answered => "answered",
            CallOutcome::Failed(code) => code.as_str(),
            CallOutcome::NotSent(_) => return,
            CallOutcome::CircuitOpen => {
                self.runs.circuit_rejections.get_or_create(&provider).inc();
                return;
            }
            _ => "dropped",
        };
        if let Some(time) = call.first_token {
            self.runs.first_token.get_or_create(&provider).observe(time.as_secs_f64());
        }
        self.runs.calls.get_or_create(&Called { provider: provider.provider, outcome }).inc();
    }

    fn run_ended(&self, run: &RunReport<'_>) {
        self.runs.runs.count(run);
        if run.is_nested {
            return;
        }
        for skipped in run.fallbacks {
            let provider = skipped.provider.clone();
            let code = skipped.code.as_str();
            self.runs.fallbacks.get_or_create(&Skipped { provider, code }).inc();
        }
    }
}

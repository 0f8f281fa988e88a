//! Metrics of runs and of their provider calls.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError, atomic::AtomicU64},
};

use cog_run::{
    Code, ConfidenceSource, Meta,
    events::{CallOutcome, CallReport, RunEvents, RunOutcome, RunReport},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::Metrics;

/// The metrics of runs and of the calls to providers.
pub(super) struct Runs {
    calls: Family<Called, Counter>,
    provider_retries: Family<Provider, Counter>,
    circuit_rejections: Family<Provider, Counter>,
    first_token: Family<Provider, Histogram, fn() -> Histogram>,
    call_seconds: Family<Model, Histogram, fn() -> Histogram>,
    /// The number of models of each provider that have a series.
    models: Mutex<HashMap<String, HashSet<String>>>,
    running: Family<Module, Gauge>,
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
    seconds: Family<Module, Histogram, fn() -> Histogram>,
    confidence: Family<Module, Histogram, fn() -> Histogram>,
    gates: Family<Gated, Counter>,
}

/// What the runs of each client with a token have used.
#[derive(Clone)]
pub(super) struct ClientSpending {
    runs: Family<Client, Counter>,
    tokens: Family<ClientTokens, Counter>,
    cost: Family<Client, Counter<f64, AtomicU64>>,
}

/// The buckets of runs and calls: a model answers within 50 ms to a minute.
const SECONDS: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];

/// The buckets of the confidence: finer where gates and reviews decide.
const CONFIDENCE: [f64; 10] = [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99];

/// The maximum number of models of a provider with a series of their own. Clients may name models.
const MAX_MODELS: usize = 50;

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

fn confidence() -> Histogram {
    Histogram::new(CONFIDENCE)
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Client {
    client: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClientTokens {
    client: String,
    direction: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Model {
    provider: String,
    model: String,
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
struct Gated {
    module: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tokens {
    module: String,
    direction: &'static str,
}

impl Runs {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let first_token = Family::new_with_constructor(seconds as fn() -> Histogram);
        let runs = Self {
            calls: Family::default(),
            provider_retries: Family::default(),
            circuit_rejections: Family::default(),
            first_token,
            call_seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            models: Mutex::default(),
            running: Family::default(),
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
        let calls = "Seconds of a call to a provider, with its retries, by provider and model; `other` after 50 models";
        registry.register("provider_call_seconds", calls, runs.call_seconds.clone());
        registry.register("runs_running", "Runs that have not ended, by module", runs.running.clone());
        let skipped = "Providers skipped because they gave no answer, by provider and code";
        registry.register("fallbacks", skipped, runs.fallbacks.clone());
        runs
    }

    /// Returns the label of a model: its name, unless the provider has too many.
    fn model(&self, provider: &str, model: &str) -> String {
        let mut known = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(provider.to_owned()).or_default();
        if known.len() < MAX_MODELS && !known.contains(model) {
            known.insert(model.to_owned());
        }
        known.get(model).map_or("other", String::as_str).to_owned()
    }
}

impl ClientSpending {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let spent = Self { runs: Family::default(), tokens: Family::default(), cost: Family::default() };
        registry.register("client_runs", "Runs of each client with a token", spent.runs.clone());
        registry.register("client_tokens", "Tokens of each client, by direction", spent.tokens.clone());
        let cost = "Cost of the calls of each client in US dollars at list prices; calls without a known price are missing";
        registry.register("client_cost_usd", cost, spent.cost.clone());
        spent
    }

    /// Counts a run of a client that has ended. A nested one belongs to the run around it.
    pub(super) fn count(&self, client: &str, run: &RunReport<'_>) {
        if run.is_nested {
            return;
        }
        let label = Client { client: client.to_owned() };
        self.runs.get_or_create(&label).inc();
        let Some(usage) = run.usage else { return };
        for (direction, count) in [("in", usage.input_tokens), ("out", usage.output_tokens)] {
            let client = client.to_owned();
            self.tokens.get_or_create(&ClientTokens { client, direction }).inc_by(count);
        }
        if let Some(cost) = usage.cost {
            self.cost.get_or_create(&label).inc_by(cost.amount.as_f64());
        }
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
            seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            confidence: Family::new_with_constructor(confidence as fn() -> Histogram),
            gates: Family::default(),
        };
        let ends = "Runs, by module and outcome: answered, dropped or the error's code";
        registry.register("runs", ends, runs.runs.clone());
        registry.register("tokens", "Tokens of all calls, by module and direction", runs.tokens.clone());
        let cost = "Cost of all calls in US dollars at list prices, by module; calls without a known price are missing";
        registry.register("cost_usd", cost, runs.cost.clone());
        registry.register("repairs", "Repairs of answers, by module", runs.repairs.clone());
        let retries = "Further model calls after an invalid answer, by module";
        registry.register("retries", retries, runs.retries.clone());
        let seconds = "Seconds of a run, by module";
        registry.register("run_seconds", seconds, runs.seconds.clone());
        let confidence = "Confidence of answers by module: as the model stated it, or calibrated";
        registry.register("confidence", confidence, runs.confidence.clone());
        let gates = "Answers of runs with a gate, by module and result: accepted or review";
        registry.register("gate", gates, runs.gates.clone());
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
        let label = Module { module: run.module.manifest.name.clone() };
        self.seconds.get_or_create(&label).observe(run.duration.as_secs_f64());
        if let Some(confidence) = run.meta.and_then(stated_confidence) {
            self.confidence.get_or_create(&label).observe(confidence);
        }
        if let Some(gate) = run.meta.and_then(|meta| meta.runtime.gate) {
            let result = if gate.passed { "accepted" } else { "review" };
            self.gates.get_or_create(&Gated { module: run.module.manifest.name.clone(), result }).inc();
        }
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

/// Returns the confidence of an answer, unless the runtime filled it in and no calibration measured it.
fn stated_confidence(meta: &Meta) -> Option<f64> {
    let is_filled = meta.runtime.repairs.iter().any(|repair| repair.path == "meta.confidence");
    let is_measured = meta.runtime.confidence_source == Some(ConfidenceSource::Calibrated);
    meta.confidence.filter(|_| is_measured || !is_filled)
}

impl RunEvents for Metrics {
    fn run_started(&self, module: &cog_run::Module, is_nested: bool) {
        if !is_nested {
            self.runs.running.get_or_create(&Module { module: module.manifest.name.clone() }).inc();
        }
    }

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
        let model = self.runs.model(call.provider, call.model);
        let labels = Model { provider: call.provider.to_owned(), model };
        self.runs.call_seconds.get_or_create(&labels).observe(call.duration.as_secs_f64());
        self.runs.calls.get_or_create(&Called { provider: provider.provider, outcome }).inc();
    }

    fn run_ended(&self, run: &RunReport<'_>) {
        self.runs.runs.count(run);
        if run.is_nested {
            return;
        }
        self.runs.running.get_or_create(&Module { module: run.module.manifest.name.clone() }).dec();
        for skipped in run.fallbacks {
            let provider = skipped.provider.clone();
            let code = skipped.code.as_str();
            self.runs.fallbacks.get_or_create(&Skipped { provider, code }).inc();
        }
    }
}

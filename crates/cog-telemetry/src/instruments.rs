//! The metrics of the conventions for generative AI.

use std::time::Duration;

use cog_run::events::{CallReport, RunReport};

use crate::{
    mapping::{self, SpanKind},
    metrics::Histogram,
    names,
};

/// The buckets of durations, in seconds.
const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The buckets of numbers of tokens: powers of four.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The metrics of runs and calls.
#[derive(Debug)]
pub(crate) struct Instruments {
    duration: Histogram,
    first_chunk: Histogram,
    tokens: Histogram,
    workflow: Histogram,
}

impl Instruments {
    pub(crate) fn new() -> Self {
        let seconds = |name, description| Histogram::new(name, description, "s", SECONDS);
        Self {
            duration: seconds("gen_ai.client.operation.duration", "The duration of calls to models."),
            first_chunk: seconds(
                "gen_ai.client.operation.time_to_first_chunk",
                "The time from a call to the first part of its reply.",
            ),
            tokens: Histogram::new(
                "gen_ai.client.token.usage",
                "The tokens of calls to models.",
                "{token}",
                TOKENS,
            ),
            workflow: seconds("gen_ai.workflow.duration", "The duration of runs."),
        }
    }

    /// Counts a span that has ended.
    pub(crate) fn record(&mut self, kind: SpanKind<'_>, duration: Duration) {
        match kind {
            SpanKind::Run(run) => self.run(run, duration.as_secs_f64()),
            SpanKind::Call(call) => self.call(call, duration.as_secs_f64()),
            SpanKind::Tool(_) => {}
        }
    }

    /// Returns every metric.
    pub(crate) fn all(&self) -> [&Histogram; 4] {
        [&self.duration, &self.first_chunk, &self.tokens, &self.workflow]
    }

    /// Starts to count again.
    pub(crate) fn clear(&mut self) {
        for histogram in [&mut self.duration, &mut self.first_chunk, &mut self.tokens, &mut self.workflow] {
            histogram.clear();
        }
    }

    fn run(&mut self, run: &RunReport<'_>, seconds: f64) {
        let name = (names::WORKFLOW, run.module.manifest.name.as_str());
        match mapping::run_error(run) {
            Some(error) => self.workflow.add(&[name, (names::ERROR_TYPE, error)], seconds),
            None => self.workflow.add(&[name], seconds),
        }
    }

    fn call(&mut self, call: &CallReport<'_>, seconds: f64) {
        let labels = [
            (names::OPERATION, mapping::operation(call)),
            (names::PROVIDER, names::provider(call.provider)),
            (names::REQUEST_MODEL, call.model),
            (names::RESPONSE_MODEL, call.response_model.unwrap_or(call.model)),
        ];
        match mapping::call_error(call) {
            Some(error) => {
                let [operation, provider, model, response] = labels;
                self.duration
                    .add(&[operation, provider, model, response, (names::ERROR_TYPE, error)], seconds);
            }
            None => self.duration.add(&labels, seconds),
        }
        if let Some(time) = call.first_token {
            self.first_chunk.add(&labels, time.as_secs_f64());
        }
        if let Some(usage) = call.usage {
            self.token(&labels, "input", usage.input_tokens);
            self.token(&labels, "output", usage.output_tokens);
        }
    }

    /// Counts tokens. A later version of the conventions has counters in place of this histogram.
    fn token(&mut self, labels: &[(&'static str, &str); 4], kind: &'static str, tokens: u64) {
        let [operation, provider, model, response] = *labels;
        self.tokens.add(&[operation, provider, model, response, (names::TOKEN_TYPE, kind)], tokens as f64);
    }
}

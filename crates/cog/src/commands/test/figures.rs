//! What the runs of a test took: time, tokens, cost, and the range of the confidence.

use cog_json::Writer;
use cog_spec::{Category, Code, Cost, Envelope, ErrorBody, ErrorCode, ErrorOrigin, Usage};

/// What one or more runs took.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// The number of runs.
    runs: u32,
    /// The time of all runs in milliseconds.
    pub(super) time_ms: u64,
    /// The tokens of the runs that reported them.
    usage: Option<Usage>,
    /// The number of these runs.
    counted_runs: u32,
    /// The cost of the runs whose cost is known.
    cost: Option<Cost>,
    /// The number of these runs.
    priced_runs: u32,
    /// The lowest and the highest confidence.
    confidence: Option<(f64, f64)>,
    /// The runs whose first reply of the model met the contract.
    pub(super) conforming: u32,
    /// The runs without an answer of the model: the provider failed, or a limit was reached.
    pub(super) unanswered: u32,
}

impl Figures {
    /// Creates the figures of one run.
    pub(super) fn new(envelope: &Envelope) -> Self {
        let meta = &envelope.meta;
        let cost = meta.runtime.usage.as_ref().and_then(|usage| usage.cost);
        let is_unanswered = envelope.error().is_some_and(is_about_provider);
        let is_conforming =
            !is_unanswered && meta.runtime.attempts.is_none() && !envelope.error().is_some_and(is_violation);
        Self {
            runs: 1,
            conforming: u32::from(is_conforming),
            unanswered: u32::from(is_unanswered),
            time_ms: meta.runtime.processing_time_ms.unwrap_or_default(),
            counted_runs: u32::from(meta.runtime.usage.is_some()),
            priced_runs: u32::from(cost.is_some()),
            cost,
            usage: meta.runtime.usage.clone(),
            confidence: meta.confidence.map(|confidence| (confidence, confidence)),
        }
    }

    /// Returns the figures of both.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let usage = match (&self.usage, &other.usage) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            (one, other) => one.clone().or_else(|| other.clone()),
        };
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(other)) => Some(one.plus(&other)),
            (one, other) => one.or(other),
        };
        let confidence = match (self.confidence, other.confidence) {
            (Some((low, high)), Some((other_low, other_high))) => {
                Some((low.min(other_low), high.max(other_high)))
            }
            (one, other) => one.or(other),
        };
        Self {
            runs: self.runs + other.runs,
            time_ms: self.time_ms + other.time_ms,
            usage,
            counted_runs: self.counted_runs + other.counted_runs,
            cost,
            priced_runs: self.priced_runs + other.priced_runs,
            confidence,
            conforming: self.conforming + other.conforming,
            unanswered: self.unanswered + other.unanswered,
        }
    }

    /// Formats the time of one run, on average: `320 ms`.
    pub(super) fn time(&self) -> String {
        format!("{} ms", self.time_ms / u64::from(self.runs.max(1)))
    }

    /// Formats the input tokens of the runs that reported them.
    pub(super) fn input(&self) -> String {
        self.known(self.usage.as_ref().map(|usage| usage.input_tokens.to_string()), self.counted_runs)
    }

    /// Formats the output tokens of the runs that reported them.
    pub(super) fn output(&self) -> String {
        self.known(self.usage.as_ref().map(|usage| usage.output_tokens.to_string()), self.counted_runs)
    }

    /// Formats a sum with the number of its runs, unless these are all: `11 (1 of 2 runs)`.
    fn known(&self, sum: Option<String>, runs: u32) -> String {
        match sum {
            Some(sum) if runs == self.runs => sum,
            Some(sum) => format!("{sum} ({runs} of {} runs)", self.runs),
            None => "unknown".to_owned(),
        }
    }

    /// Formats the share of runs whose first reply met the contract: `3 of 4`.
    pub(super) fn conforming(&self) -> String {
        format!("{} of {}", self.conforming, self.runs - self.unanswered)
    }

    /// Returns the tokens of all runs; none if one did not report them.
    pub(super) fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref().filter(|_| self.counted_runs == self.runs)
    }

    /// Returns the input and output tokens of all runs together, if they are known.
    pub(super) fn tokens(&self) -> Option<u64> {
        self.usage().map(|usage| usage.input_tokens + usage.output_tokens)
    }

    /// Returns the cost of all runs, if it is known.
    pub(super) fn cost(&self) -> Option<Cost> {
        self.cost.filter(|_| self.priced_runs == self.runs)
    }

    /// Formats the cost of the runs whose cost is known.
    pub(super) fn shown_cost(&self) -> String {
        self.known(self.cost.map(|cost| cost.to_string()), self.priced_runs)
    }

    /// Formats the tokens and the cost, if they are known: ` · 10 input and 14 output tokens · $0.0002`.
    pub(super) fn spent(&self) -> String {
        let Some(usage) = &self.usage else { return String::new() };
        let tokens = format!("{} input and {} output tokens", usage.input_tokens, usage.output_tokens);
        let tokens = self.known(Some(tokens), self.counted_runs);
        let cost = self.cost.map(|_| format!(" · {}", self.shown_cost())).unwrap_or_default();
        format!(" · {tokens}{cost}")
    }

    /// Returns the lowest confidence of the runs.
    pub(super) fn lowest_confidence(&self) -> Option<f64> {
        self.confidence.map(|(low, _)| low)
    }

    /// Formats the range of the confidence: `, confidence 0.8 to 0.95`.
    pub(super) fn confidence(&self) -> String {
        match self.confidence {
            Some((low, high)) if low < high => format!(", confidence {low} to {high}"),
            Some((low, _)) => format!(", confidence {low}"),
            None => String::new(),
        }
    }

    /// Writes them as members of a JSON object.
    pub(super) fn write_members(&self, w: &mut Writer<'_>) {
        w.field("time_ms", &(self.time_ms / u64::from(self.runs.max(1))));
        w.optional("usage", &self.usage());
        if let Some((low, high)) = self.confidence {
            w.field("min_confidence", &low);
            w.field("max_confidence", &high);
        }
    }
}

impl Figures {
    /// Writes the sums of what is known, each with the number of its runs.
    pub(super) fn write_spent(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("runs", &u64::from(self.runs));
            w.field("counted_runs", &u64::from(self.counted_runs));
            w.field("input_tokens", &self.usage.as_ref().map(|usage| usage.input_tokens));
            w.field("output_tokens", &self.usage.as_ref().map(|usage| usage.output_tokens));
            w.field("priced_runs", &u64::from(self.priced_runs));
            w.field("cost", &self.cost);
        });
    }
}

/// Whether an error says that no model answered: the provider, a limit or the runtime failed, or the reply broke off.
pub(in crate::commands) fn is_about_provider(error: &ErrorBody) -> bool {
    match &error.code {
        _ if error.origin == ErrorOrigin::Model => false,
        ErrorCode::Standard(Code::StreamInterrupted | Code::StreamTimeout) => true,
        ErrorCode::Standard(code) => code.category() == Category::Runtime,
        ErrorCode::Declared(_) => false,
    }
}

/// Whether an error says that the answer of the model is not what the contract requires, or was cut.
fn is_violation(error: &ErrorBody) -> bool {
    match &error.code {
        ErrorCode::Standard(Code::ParseError | Code::TokenLimit) => true,
        ErrorCode::Standard(code) => code.category() == Category::Output,
        ErrorCode::Declared(_) => false,
    }
}

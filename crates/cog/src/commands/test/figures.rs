//! What runs took: time, tokens and cost, and how confident the answers were.

use cog_json::Writer;
use cog_spec::{Cost, Meta, Usage};

/// What one or more runs took.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// The number of runs.
    runs: u32,
    /// The time of all runs in milliseconds.
    pub(super) time_ms: u64,
    /// The tokens of all runs; none if one did not report them.
    usage: Option<Usage>,
    /// The lowest and the highest confidence.
    confidence: Option<(f64, f64)>,
}

impl Figures {
    /// Creates the figures of one run.
    pub(super) fn new(meta: &Meta) -> Self {
        Self {
            runs: 1,
            time_ms: meta.runtime.processing_time_ms.unwrap_or_default(),
            usage: meta.runtime.usage.clone(),
            confidence: meta.confidence.map(|confidence| (confidence, confidence)),
        }
    }

    /// Returns the figures of both.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let usage = match (&self.usage, &other.usage) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            _ if self.runs == 0 => other.usage.clone(),
            _ if other.runs == 0 => self.usage.clone(),
            _ => None,
        };
        let confidence = match (self.confidence, other.confidence) {
            (Some((low, high)), Some((other_low, other_high))) => {
                Some((low.min(other_low), high.max(other_high)))
            }
            (one, other) => one.or(other),
        };
        Self { runs: self.runs + other.runs, time_ms: self.time_ms + other.time_ms, usage, confidence }
    }

    /// Formats the time of one run, on average: `320 ms`.
    pub(super) fn time(&self) -> String {
        format!("{} ms", self.time_ms / u64::from(self.runs.max(1)))
    }

    /// Formats the input tokens.
    pub(super) fn input(&self) -> String {
        self.usage.as_ref().map_or_else(|| "unknown".to_owned(), |usage| usage.input_tokens.to_string())
    }

    /// Formats the output tokens.
    pub(super) fn output(&self) -> String {
        self.usage.as_ref().map_or_else(|| "unknown".to_owned(), |usage| usage.output_tokens.to_string())
    }

    /// Returns the cost of all runs, if it is known.
    pub(super) fn cost(&self) -> Option<Cost> {
        self.usage.as_ref()?.cost
    }

    /// Formats the cost of all runs.
    pub(super) fn shown_cost(&self) -> String {
        self.cost().map_or_else(|| "unknown".to_owned(), |cost| cost.to_string())
    }

    /// Formats the tokens and the cost of all runs, if they are known: ` · 10 input and 14 output tokens · $0.0002`.
    pub(super) fn spent(&self) -> String {
        let Some(usage) = &self.usage else { return String::new() };
        let cost = usage.cost.map(|cost| format!(" · {cost}")).unwrap_or_default();
        format!(" · {} input and {} output tokens{cost}", usage.input_tokens, usage.output_tokens)
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
        w.optional("usage", &self.usage);
        if let Some((low, high)) = self.confidence {
            w.field("min_confidence", &low);
            w.field("max_confidence", &high);
        }
    }
}

//! The rows of a plan, and their tokens.

use cog_json::{Node, ToJson as _, Value};
use cog_module::{Module, golden};
use cog_run::{Rendered, provider::TokenCounter};
use serde::Serialize;

use super::{EarlierRuns, PlanLimits};
use crate::{
    Batch, Finished, Row, Rows, duplicates::SeenInputs, journal::Kept, read::ReadError, run::run_input,
};

/// The maximum number of rows whose tokens are counted.
const SAMPLE: usize = 1_000;
/// The maximum bytes of these rows.
const SAMPLE_BYTES: usize = 32 << 20;

/// The rows of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlannedRows {
    /// The rows of the input, as far as the batch reads it.
    pub read: u64,
    /// The rows that will run.
    pub run: u64,
    /// The rows that have a result.
    pub earlier: u64,
    /// The rows that `--where` excludes.
    pub excluded: u64,
    /// The rows that get the result of an earlier row with an equal input.
    pub duplicates: u64,
    /// The rows that cannot be read.
    pub unreadable: u64,
}

/// All rows, and a sample of those that will run.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) rows: PlannedRows,
    pub(super) sample: Sample,
}

/// Rows at equal distances. The distance doubles when there are too many.
#[derive(Debug)]
pub(super) struct Sample {
    distance: u64,
    rows: Vec<(Value, usize)>,
}

impl Survey {
    /// Reads all rows.
    pub(super) async fn read(batch: &Batch, mut rows: Rows, finished: &Finished) -> Result<Self, ReadError> {
        let mut survey = Self::default();
        let mut seen = SeenInputs::default();
        let mut selected = 0;
        let mut kept = Kept::new(finished);
        while let Some(group) = rows.next().await? {
            for row in group {
                if batch.sample.is_some_and(|sample| selected >= sample) {
                    return Ok(survey);
                }
                survey.rows.read += 1;
                match batch.has_row(&row, &mut selected) {
                    true => survey.add(batch, row, &mut kept, &mut seen),
                    false => survey.rows.excluded += 1,
                }
            }
        }
        Ok(survey)
    }

    fn add(&mut self, batch: &Batch, row: Row, kept: &mut Kept<'_>, seen: &mut SeenInputs) {
        let done = kept.take(&row).map(|kept| kept.result);
        let done = done.filter(|result| batch.keeps(result));
        let is_first = !batch.dedupes || seen.is_first(&row, done);
        if done.is_some() {
            self.rows.earlier += 1;
            return;
        }
        match row.input.into_result() {
            Err(_) => self.rows.unreadable += 1,
            Ok(_) if !is_first => self.rows.duplicates += 1,
            Ok(row) => {
                self.sample.add(self.rows.run, row.input);
                self.rows.run += 1;
            }
        }
    }
}

impl Default for Sample {
    fn default() -> Self {
        Self { distance: 1, rows: Vec::new() }
    }
}

impl Sample {
    fn add(&mut self, number: u64, row: Value) {
        if !number.is_multiple_of(self.distance) {
            return;
        }
        let length = row.to_json().len();
        self.rows.push((row, length));
        while self.is_too_large() {
            self.distance *= 2;
            let mut is_kept = false;
            self.rows.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    fn is_too_large(&self) -> bool {
        let bytes: usize = self.rows.iter().map(|(_, length)| length).sum();
        self.rows.len() > SAMPLE || self.rows.len() > 1 && bytes > SAMPLE_BYTES
    }

    /// Returns the rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Value> {
        self.rows.iter().map(|(row, _)| row)
    }
}

/// What a reply has besides the data.
const ENVELOPE: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "The input states this in its second sentence, and nothing contradicts it."}, "data": }"#;
/// The tokens of an answer about which nothing is known.
const UNKNOWN: f64 = 500.0;

/// The tokens of the inputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct InputTokens {
    /// The tokens of all rows.
    pub total: u64,
    /// The average of a row that is sent: one that does not fit the contract fails before.
    pub per_row: f64,
    /// The tokens at the beginning that are the same in each row.
    pub prefix: u64,
    /// The least that the provider caches; none if that is unknown.
    pub min_prefix: Option<u64>,
    /// The rows whose tokens were counted, spread over the input.
    pub counted_rows: u64,
    /// The tokenizer.
    pub tokenizer: &'static str,
    /// Whether it is the tokenizer of the model.
    pub exact: bool,
}

/// The tokens of the outputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OutputTokens {
    /// The tokens of all rows.
    pub total: u64,
    /// The average of a row.
    pub per_row: f64,
    /// What this is taken from: `results`, `golden` (the golden answers of the module), `sample` (an answer made from the schema),
    /// or `unknown`.
    pub basis: &'static str,
    /// The number of results, if it is taken from them.
    pub results: u64,
}

/// The rows of a sample, counted.
pub(super) struct Counted {
    pub(super) rows: PlannedRows,
    pub(super) input: InputTokens,
    pub(super) counter: TokenCounter,
    /// The input tokens of each row of the sample that can run.
    pub(super) sample: Vec<u64>,
    /// The rows that a row of the sample stands for.
    pub(super) weight: f64,
    /// Whether the provider is known to cache the beginning of requests.
    pub(super) has_cache: bool,
    /// Whether a request marks the part to cache, so that the first one writes it.
    pub(super) marks_cache: bool,
}

impl Counted {
    /// Renders the request of each row of the sample, and counts its tokens.
    #[expect(clippy::cast_precision_loss, reason = "estimates")]
    pub(super) async fn new(batch: &Batch, survey: &Survey) -> Self {
        let info = batch.runtime.providers().default_order().first().map(|provider| provider.info());
        let model = info.map_or("", |info| &info.model);
        let counter = TokenCounter::new(model);
        let mut sample = Vec::new();
        let mut first = None;
        let mut looked_at = 0_u64;
        for input in survey.sample.rows() {
            looked_at += 1;
            let run = batch.runtime.render(&batch.module, run_input(input.clone()), batch.options.clone());
            // A row that does not fit the contract fails before it is sent.
            let Ok(rendered) = run.await else { continue };
            let schema = first.get_or_insert_with(|| Shared::new(&rendered, &counter)).schema;
            sample.push(counter.conversation(&rendered.messages) + schema);
        }
        let weight = survey.rows.run as f64 / looked_at.max(1) as f64;
        let total = sample.iter().sum::<u64>() as f64 * weight;
        let sent = sample.len() as f64 * weight;
        let shared = first.unwrap_or_default();
        let input = InputTokens {
            total: round(total),
            per_row: tenth(total / sent.max(1.0)),
            prefix: shared.prefix,
            min_prefix: shared.min_prefix,
            counted_rows: sample.len() as u64,
            tokenizer: counter.tokenizer(),
            exact: counter.is_exact(),
        };
        let has_cache = info.is_some_and(|info| info.prompt_cache("").is_some());
        let marks_cache = shared.marks_cache;
        Self { rows: survey.rows, input, counter, sample, weight, has_cache, marks_cache }
    }

    /// The rows that will be sent.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn sent(&self) -> f64 {
        self.sample.len() as f64 * self.weight
    }
}

/// What is the same in each request.
#[derive(Default)]
struct Shared {
    schema: u64,
    prefix: u64,
    min_prefix: Option<u64>,
    marks_cache: bool,
}

impl Shared {
    fn new(rendered: &Rendered, counter: &TokenCounter) -> Self {
        let prefix = &rendered.prefix;
        let schema = prefix.schema.as_ref().map_or(0, |schema| counter.text(&schema.to_json()));
        Self {
            schema,
            prefix: schema + counter.text(&prefix.text),
            min_prefix: prefix.min_tokens,
            marks_cache: prefix.mark.is_some(),
        }
    }
}

/// Returns the tokens of the answers: as many as earlier results have, otherwise as many as the golden answers of the module or a
/// sample of the schema.
pub(super) fn output(
    batch: &Batch,
    earlier: &EarlierRuns,
    counted: &Counted,
    limits: &PlanLimits,
) -> OutputTokens {
    let counter = &counted.counter;
    let (per_row, basis) = earlier
        .output_tokens()
        .map(|average| (average, "results"))
        .or_else(|| of_golden_answers(&batch.module, counter).map(|average| (average, "golden")))
        .or_else(|| of_sample(&batch.module, counter).map(|tokens| (tokens, "sample")))
        .unwrap_or((UNKNOWN, "unknown"));
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let per_row = limits.max_tokens.map_or(per_row, |max| per_row.min(max as f64));
    let total = round(per_row * counted.sent());
    OutputTokens { total, per_row: tenth(per_row), basis, results: earlier.count }
}

/// Returns the average tokens of the golden answers that succeed.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn of_golden_answers(module: &Module, counter: &TokenCounter) -> Option<f64> {
    let cases = golden::discover(module).cases;
    let answers = cases.iter().filter_map(|case| case.expected.answer());
    let tokens = answers.filter_map(|answer| match answer.get("ok").and_then(Node::as_bool) {
        Some(true) => Some(counter.text(&answer.to_json())),
        Some(false) => None,
        None => Some(of_data(&answer.to_json(), counter)),
    });
    let (count, total) = tokens.fold((0_u64, 0), |(count, total), tokens| (count + 1, total + tokens));
    (count > 0).then(|| total as f64 / count as f64)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn of_sample(module: &Module, counter: &TokenCounter) -> Option<f64> {
    let data = module.contract.sample(0)?;
    Some(of_data(&data.to_json(), counter) as f64)
}

/// Returns the tokens of an answer with this data.
fn of_data(data: &str, counter: &TokenCounter) -> u64 {
    counter.text(data) + counter.text(ENVELOPE)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, and never negative"
)]
fn round(number: f64) -> u64 {
    number.round() as u64
}

fn tenth(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(sample: &Sample) -> Vec<u64> {
        sample.rows().filter_map(|row| row.get("n")?.as_u64()).collect()
    }

    fn sample(rows: u64, text: &str) -> Sample {
        let mut sample = Sample::default();
        for number in 0..rows {
            sample.add(number, Value::parse(&format!("{{\"n\":{number},\"t\":\"{text}\"}}")).unwrap());
        }
        sample
    }

    #[test]
    fn sample_is_spread_over_the_rows() {
        assert_eq!(numbers(&sample(1_000, "")), Vec::from_iter(0..1_000));
        assert_eq!(numbers(&sample(1_001, "")), Vec::from_iter((0..1_001).step_by(2)));
        assert_eq!(numbers(&sample(10_000, "")), Vec::from_iter((0..10_000).step_by(16)));
    }

    #[test]
    fn sample_has_few_bytes() {
        let sample = sample(100, &"x".repeat(1 << 20));
        assert_eq!(numbers(&sample), Vec::from_iter((0..100).step_by(4)));
        let mut one = Sample::default();
        one.add(0, Value::parse(&format!("\"{}\"", "x".repeat(SAMPLE_BYTES + 1))).unwrap());
        assert_eq!(one.rows().count(), 1);
    }
}

//! What a batch will need: rows, tokens, money and time, before anything is sent.

mod strategies;
mod survey;
mod tokens;

use std::{fs::File, io::BufReader, time::SystemTime};

use cog_json::{Node, Value};
use serde::Serialize;

pub use self::{
    strategies::{PlannedTime, Strategy, StrategyName},
    survey::PlannedRows,
    tokens::{InputTokens, OutputTokens},
};
use self::{survey::Survey, tokens::Counted};
use crate::{
    Batch, Concurrency, Description, Finished, Journal, JournalError, JournalPaths, Resume, Rows,
    journal::read_line, read::ReadError,
};

/// What a batch will need.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// The module and its version.
    pub module: String,
    /// The provider that will be called; none when offline.
    pub provider: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// The rows.
    pub rows: PlannedRows,
    /// The tokens of the inputs.
    pub input: InputTokens,
    /// The tokens of the outputs, without reasoning unless earlier results are known.
    pub output: OutputTokens,
    /// What the time of live calls is calculated from.
    pub time: PlannedTime,
    /// The strategies with which the batch can run. A row that is repeated, or corrected after a violation, costs more.
    pub ways: Vec<Strategy>,
    /// The strategy that costs least; none if no price is known.
    pub cheapest: Option<StrategyName>,
}

impl Batch {
    /// Returns what the batch will need. Reads all rows, and counts the tokens of at most 1,000 of them. Nothing is sent.
    ///
    /// # Errors
    /// The input cannot be read any further.
    pub async fn plan(
        &self,
        rows: Rows,
        earlier: &EarlierRuns,
        limits: &PlanLimits,
    ) -> Result<Plan, ReadError> {
        let survey = Survey::read(self, rows, &earlier.finished).await?;
        let counted = Counted::new(self, &survey).await;
        let output = tokens::output(self, earlier, &counted, limits);
        let time = PlannedTime::new(&counted, &output, earlier, limits);
        let ways = strategies::list(self, &counted, &output, &time, limits);
        let info = self.runtime.providers().default_order().first().map(|provider| provider.info());
        let manifest = &self.module.manifest;
        Ok(Plan {
            module: format!("{} {}", manifest.name, manifest.version),
            provider: info.map(|info| info.name.to_string()),
            model: info.map(|info| info.model.to_string()),
            cheapest: strategies::cheapest(&ways),
            rows: counted.rows,
            input: counted.input,
            output,
            time,
            ways,
        })
    }
}

/// What determines the time and the length of the answers.
#[derive(Debug, Clone, Copy)]
pub struct PlanLimits {
    /// The rows that run at the same time.
    pub concurrency: Concurrency,
    /// The maximum requests per minute.
    pub rpm: Option<u32>,
    /// The maximum tokens per minute.
    pub tpm: Option<u64>,
    /// The maximum tokens of an answer.
    pub max_tokens: Option<u64>,
    /// The time for prices.
    pub now: SystemTime,
}

// What the results of earlier starts say.

/// The maximum number of results that are read.
const SAMPLE: usize = 1_000;

/// The rows that have a result, and what they took on average.
#[derive(Debug, Default)]
pub struct EarlierRuns {
    finished: Finished,
    /// The results that are known.
    count: u64,
    output_tokens: u64,
    milliseconds: u64,
}

impl EarlierRuns {
    /// Reads the journal of a batch and a sample of its results, if there is one. Changes nothing. Blocks.
    ///
    /// # Errors
    /// The batch could not continue with this journal.
    pub fn read(
        paths: &JournalPaths,
        description: &Description,
        resume: Resume,
    ) -> Result<Self, JournalError> {
        let finished = Journal::finished(paths, description, resume)?;
        let mut runs = Self { finished, ..Self::default() };
        if !runs.finished.is_empty() {
            runs.sample(paths).map_err(|error| JournalError::read(&paths.results, error))?;
        }
        Ok(runs)
    }

    #[expect(clippy::disallowed_methods, reason = "the file is the batch's own")]
    fn sample(&mut self, paths: &JournalPaths) -> std::io::Result<()> {
        let mut file = BufReader::new(File::open(&paths.results)?);
        for position in self.finished.sample(SAMPLE) {
            let line = read_line(&mut file, position)?;
            if let Some((tokens, milliseconds)) = Value::parse_bytes(&line).ok().and_then(|line| run(&line)) {
                self.count += 1;
                self.output_tokens += tokens;
                self.milliseconds += milliseconds;
            }
        }
        Ok(())
    }

    /// Returns the average tokens of an answer.
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    fn output_tokens(&self) -> Option<f64> {
        (self.count > 0).then(|| self.output_tokens as f64 / self.count as f64)
    }

    /// Returns the average seconds of a run.
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    fn seconds(&self) -> Option<f64> {
        (self.count > 0 && self.milliseconds > 0).then(|| self.milliseconds as f64 / 1e3 / self.count as f64)
    }
}

/// Returns the output tokens and the milliseconds of a run. None if the model was not called, as for a duplicate.
fn run(result: &Value) -> Option<(u64, u64)> {
    let meta = result.get("meta")?;
    let tokens = meta.get("usage")?.get("output_tokens")?.as_u64().filter(|tokens| *tokens > 0)?;
    let milliseconds = meta.get("processing_time_ms").and_then(Node::as_u64);
    Some((tokens, milliseconds.unwrap_or_default()))
}

//! What a batch will need: rows, tokens, money and time, before anything is sent. Its strategies: what they cost, and how long they
//! take.

mod survey;

use std::{fs::File, io::BufReader, time::SystemTime};

use cog_json::{Node, Value};
use cog_provider::{ProviderInfo, batch::batch_interface};
use cog_spec::Usage;
use serde::Serialize;

use self::survey::{Counted, Survey};
use crate::{
    Batch, Concurrency, Description, Finished, Journal, JournalError, JournalPaths, Resume, Rows,
    journal::read_line, read::ReadError,
};

pub use self::survey::{InputTokens, OutputTokens, PlannedRows};

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
        let output = survey::output(self, earlier, &counted, limits);
        let time = PlannedTime::new(&counted, &output, earlier, limits);
        let ways = list(self, &counted, &output, &time, limits);
        let info = self.runtime.providers().default_order().first().map(|provider| provider.info());
        let manifest = &self.module.manifest;
        Ok(Plan {
            module: format!("{} {}", manifest.name, manifest.version),
            provider: info.map(|info| info.name.to_string()),
            model: info.map(|info| info.model.to_string()),
            cheapest: cheapest(&ways),
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

/// The rows that are assumed to run at the same time if the batch finds the number itself.
const CONCURRENCY: u32 = 64;
/// The seconds that are assumed before the first token of an answer.
const FIRST_TOKEN: f64 = 1.0;
/// The tokens per second that are assumed after it.
const TOKENS_PER_SECOND: f64 = 50.0;
/// The time in which vendors answer batch jobs.
const JOB_SECONDS: f64 = 24.0 * 3600.0;
/// The part of the price that batch jobs cost, if the price list does not have it.
const JOB_PRICE: f64 = 0.5;

/// How a batch runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StrategyName {
    /// Live calls, for which the provider caches nothing.
    Live,
    /// Live calls, for which the provider caches the beginning of requests.
    LiveCached,
    /// Jobs of the vendor's batch interface.
    Batch,
}

/// What a strategy costs, and how long it takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Strategy {
    /// The strategy.
    pub name: StrategyName,
    /// The cost in US dollars; none if the price of the model is unknown.
    pub cost_usd: Option<f64>,
    /// The time.
    pub seconds: f64,
    /// What determines the time: `concurrency`, `rpm`, `tpm`, or `vendor`.
    pub limited_by: &'static str,
}

/// What the time of live calls is calculated from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlannedTime {
    /// The rows that run at the same time.
    pub concurrency: u32,
    /// Whether this number is assumed.
    pub assumes_concurrency: bool,
    /// The seconds of a run.
    pub seconds_per_row: f64,
    /// Whether these are assumed, and not the average of earlier results.
    pub assumes_seconds: bool,
    #[serde(skip)]
    live: LiveTime,
}

/// The time of live calls, and what determines it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LiveTime {
    seconds: f64,
    limited_by: &'static str,
}

impl PlannedTime {
    #[expect(clippy::cast_precision_loss, reason = "estimates")]
    fn new(counted: &Counted, output: &OutputTokens, earlier: &EarlierRuns, limits: &PlanLimits) -> Self {
        let (concurrency, assumes_concurrency) = match limits.concurrency {
            Concurrency::Auto => (CONCURRENCY, true),
            Concurrency::Fixed(number) => (number, false),
        };
        let assumed = FIRST_TOKEN + output.per_row / TOKENS_PER_SECOND;
        let seconds_per_row = earlier.seconds().unwrap_or(assumed);
        let tokens = (counted.input.total + output.total) as f64;
        let rounds = (counted.sent() / f64::from(concurrency)).ceil();
        let limits = [
            LiveTime { seconds: rounds * seconds_per_row, limited_by: "concurrency" },
            LiveTime {
                seconds: limits.rpm.map_or(0.0, |rpm| counted.sent() / f64::from(rpm) * 60.0),
                limited_by: "rpm",
            },
            LiveTime { seconds: limits.tpm.map_or(0.0, |tpm| tokens / tpm as f64 * 60.0), limited_by: "tpm" },
        ];
        let none = LiveTime { seconds: 0.0, limited_by: "concurrency" };
        let live = limits
            .into_iter()
            .fold(none, |longest, limit| if limit.seconds > longest.seconds { limit } else { longest });
        Self {
            concurrency,
            assumes_concurrency,
            seconds_per_row: (seconds_per_row * 1e3).round() / 1e3,
            assumes_seconds: earlier.seconds().is_none(),
            live,
        }
    }
}

/// Returns the strategies with which the batch can run.
fn list(
    batch: &Batch,
    counted: &Counted,
    output: &OutputTokens,
    time: &PlannedTime,
    limits: &PlanLimits,
) -> Vec<Strategy> {
    let info = batch.runtime.providers().default_order().first().map(|provider| provider.info());
    let per_row = whole(output.per_row);
    let LiveTime { seconds, limited_by } = time.live;
    let live = price(StrategyName::Live, info, counted, per_row, limits);
    let mut strategies = vec![Strategy { name: StrategyName::Live, cost_usd: live, seconds, limited_by }];
    if counted.has_cache && reaches_minimum(&counted.input) {
        let cost_usd = price(StrategyName::LiveCached, info, counted, per_row, limits);
        strategies.push(Strategy { name: StrategyName::LiveCached, cost_usd, seconds, limited_by });
    }
    if info.is_some_and(|info| batch_interface(&info.name).is_some()) {
        let listed = price(StrategyName::Batch, info, counted, per_row, limits);
        strategies.push(Strategy {
            name: StrategyName::Batch,
            cost_usd: listed.or(live.map(|live| live * JOB_PRICE)),
            seconds: JOB_SECONDS,
            limited_by: "vendor",
        });
    }
    strategies
}

/// Returns the strategy that costs least.
fn cheapest(strategies: &[Strategy]) -> Option<StrategyName> {
    let costs = strategies.iter().filter_map(|strategy| Some((strategy.name, strategy.cost_usd?)));
    costs.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

/// Whether the beginning is long enough to be cached, as far as the minimum is known.
fn reaches_minimum(input: &InputTokens) -> bool {
    input.prefix > 0 && input.min_prefix.is_none_or(|min| input.prefix >= min)
}

/// Returns the cost of all rows; none if the price of the model is unknown. Each row of the sample has its own price, as long
/// prompts can have a higher one.
fn price(
    name: StrategyName,
    info: Option<&ProviderInfo>,
    counted: &Counted,
    output_tokens: u64,
    limits: &PlanLimits,
) -> Option<f64> {
    let info = info?;
    let cost = |input_tokens, is_first| {
        let usage = usage(name, counted, input_tokens, output_tokens, is_first);
        Some(info.cost(&info.model, &usage, limits.now)?.amount.as_f64())
    };
    let Some(first) = counted.sample.first() else { return cost(0, false).map(|_| 0.0) };
    let rows: f64 = counted.sample.iter().map(|tokens| cost(*tokens, false)).sum::<Option<f64>>()?;
    // Only the first row writes the cache; the weight must not multiply that.
    let cost = rows * counted.weight + cost(*first, true)? - cost(*first, false)?;
    Some((cost * 1e6).round() / 1e6)
}

/// Returns the usage of one row. The first row writes what the others read from the provider's cache.
fn usage(
    name: StrategyName,
    counted: &Counted,
    input_tokens: u64,
    output_tokens: u64,
    is_first: bool,
) -> Usage {
    let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
    match name {
        StrategyName::Live => usage,
        StrategyName::LiveCached => {
            let prefix = counted.input.prefix.min(input_tokens);
            Usage {
                cached_input_tokens: (!is_first).then_some(prefix),
                cache_write_input_tokens: (is_first && counted.marks_cache).then_some(prefix),
                ..usage
            }
        }
        StrategyName::Batch => Usage { service_tier: Some("batch".to_owned()), ..usage },
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, and never negative"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

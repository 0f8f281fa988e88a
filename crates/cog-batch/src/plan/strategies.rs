//! The strategies of a batch: what they cost, and how long they take.

use cog_provider::{ProviderInfo, batch::batch_interface};
use cog_spec::Usage;
use serde::Serialize;

use super::{
    EarlierRuns, PlanLimits,
    tokens::{Counted, InputTokens, OutputTokens},
};
use crate::{Batch, Concurrency};

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
    pub(super) fn new(
        counted: &Counted,
        output: &OutputTokens,
        earlier: &EarlierRuns,
        limits: &PlanLimits,
    ) -> Self {
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
pub(super) fn list(
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
pub(super) fn cheapest(strategies: &[Strategy]) -> Option<StrategyName> {
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

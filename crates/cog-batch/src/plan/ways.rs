//! The ways to run a batch: what they cost, and how long they take.

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

/// A way to run a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WayName {
    /// Live calls, for which the provider caches nothing.
    Live,
    /// Live calls, for which the provider caches the beginning of requests.
    LiveCached,
    /// Jobs of the vendor's batch interface.
    Batch,
}

/// What a way costs, and how long it takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Way {
    /// The way.
    pub name: WayName,
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
    live: (f64, &'static str),
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
            (rounds * seconds_per_row, "concurrency"),
            (limits.rpm.map_or(0.0, |rpm| counted.sent() / f64::from(rpm) * 60.0), "rpm"),
            (limits.tpm.map_or(0.0, |tpm| tokens / tpm as f64 * 60.0), "tpm"),
        ];
        let live = limits
            .into_iter()
            .fold((0.0, "concurrency"), |longest, limit| if limit.0 > longest.0 { limit } else { longest });
        Self {
            concurrency,
            assumes_concurrency,
            seconds_per_row: (seconds_per_row * 1e3).round() / 1e3,
            assumes_seconds: earlier.seconds().is_none(),
            live,
        }
    }
}

/// Returns the ways in which the batch can run.
pub(super) fn list(
    batch: &Batch,
    counted: &Counted,
    output: &OutputTokens,
    time: &PlannedTime,
    limits: &PlanLimits,
) -> Vec<Way> {
    let info = batch.runtime.providers().default_order().first().map(|provider| provider.info());
    let price = |kind: &dyn Fn(u64, bool) -> Usage| price(info?, counted, limits, kind);
    let per_row = whole(output.per_row);
    let plain =
        |input_tokens: u64, _: bool| Usage { input_tokens, output_tokens: per_row, ..Usage::default() };
    let live = price(&plain);
    let (seconds, limited_by) = time.live;
    let mut ways = vec![Way { name: WayName::Live, cost_usd: live, seconds, limited_by }];
    if counted.has_cache && reaches_minimum(&counted.input) {
        let prefix = counted.input.prefix;
        let cached = |input_tokens: u64, is_first: bool| {
            let prefix = prefix.min(input_tokens);
            let written = (is_first && counted.marks_cache).then_some(prefix);
            let read = (!is_first).then_some(prefix);
            Usage {
                cached_input_tokens: read,
                cache_write_input_tokens: written,
                ..plain(input_tokens, is_first)
            }
        };
        let cost_usd = price(&cached);
        ways.push(Way { name: WayName::LiveCached, cost_usd, seconds, limited_by });
    }
    if info.is_some_and(|info| batch_interface(&info.name).is_some()) {
        let tier = Some("batch".to_owned());
        let job =
            |tokens: u64, is_first: bool| Usage { service_tier: tier.clone(), ..plain(tokens, is_first) };
        let cost_usd = price(&job).or(live.map(|live| live * JOB_PRICE));
        ways.push(Way { name: WayName::Batch, cost_usd, seconds: JOB_SECONDS, limited_by: "vendor" });
    }
    ways
}

/// Returns the way that costs least.
pub(super) fn cheapest(ways: &[Way]) -> Option<WayName> {
    let costs = ways.iter().filter_map(|way| Some((way.name, way.cost_usd?)));
    costs.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

/// Whether the beginning is long enough to be cached, as far as the minimum is known.
fn reaches_minimum(input: &InputTokens) -> bool {
    input.prefix > 0 && input.min_prefix.is_none_or(|min| input.prefix >= min)
}

/// Returns the cost of all rows: each row of the sample has its own price, as long prompts can have a higher one.
fn price(
    info: &ProviderInfo,
    counted: &Counted,
    limits: &PlanLimits,
    usage: &dyn Fn(u64, bool) -> Usage,
) -> Option<f64> {
    let cost = |tokens, is_first| {
        Some(info.cost(&info.model, &usage(tokens, is_first), limits.now)?.amount.as_f64())
    };
    let Some(first) = counted.sample.first() else { return cost(0, false).map(|_| 0.0) };
    let rows: f64 = counted.sample.iter().map(|tokens| cost(*tokens, false)).sum::<Option<f64>>()?;
    let cost = rows * counted.weight + cost(*first, true)? - cost(*first, false)?;
    Some((cost * 1e6).round() / 1e6)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, and never negative"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

//! How fast rows are sent, by the limits of the caller and what the vendor's replies say: rows at the same time, requests and tokens
//! per minute, and the pauses that the vendor requests.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cog_run::{
    Code,
    events::{CallOutcome, CallReport, RunEvents},
    provider::{Quota, ReplyHead},
};

/// How fast rows are sent. Clones share one state.
///
/// It must be a listener of the batch's runtime ([`RuntimeBuilder::events`](cog_run::RuntimeBuilder::events)), so that it learns
/// of the vendor's replies.
#[derive(Debug, Clone)]
pub struct Pace(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    limit: Limit,
    rate: Rate,
}

impl Pace {
    /// Creates a pace with a number of rows at the same time, and limits per minute.
    #[must_use]
    pub fn new(concurrency: Concurrency, rpm: Option<u32>, tpm: Option<u64>) -> Self {
        let state = State { limit: Limit::new(concurrency), rate: Rate::new(rpm, tpm, Instant::now()) };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the number of rows that may run at the same time.
    pub(crate) fn limit(&self) -> usize {
        self.lock().limit.value()
    }

    /// Returns the time at which the next row may start.
    pub(crate) fn ready_at(&self, now: Instant) -> Instant {
        self.lock().rate.ready_at(now)
    }

    /// Returns the time until which the vendor accepts no requests.
    pub(crate) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.lock().rate.paused_until(now)
    }

    /// Records that a row starts, and returns the tokens that are reserved for it.
    pub(crate) fn start(&self, now: Instant) -> f64 {
        self.lock().rate.start(now)
    }

    /// Records that a row has ended.
    pub(crate) fn end(&self, run: &RunPace, now: Instant) {
        let mut state = self.lock();
        state.rate.end(run.reserved, run.tokens, now);
        (1..run.calls).for_each(|_| state.rate.call(now));
        if run.is_answered {
            state.limit.answered(run.latency, run.is_full);
        }
    }

    /// Whether the tokens per minute are limited.
    pub(crate) fn limits_tokens(&self) -> bool {
        self.lock().rate.tokens.is_some()
    }

    /// Starts no row for this time.
    pub(crate) fn pause(&self, length: Duration, now: Instant) {
        self.lock().rate.pause(length, now);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the pace learns from a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunPace {
    /// The tokens that were reserved for it.
    pub(crate) reserved: f64,
    /// The tokens that it used, if they are known.
    pub(crate) tokens: Option<u64>,
    /// The calls to the model.
    pub(crate) calls: u32,
    /// The time from its start to its end.
    pub(crate) latency: Duration,
    /// Whether as many rows ran as are allowed.
    pub(crate) is_full: bool,
    /// Whether the provider answered.
    pub(crate) is_answered: bool,
}

impl RunEvents for Pace {
    fn call_retried(&self, _provider: &str, code: Code) {
        let now = Instant::now();
        let mut state = self.lock();
        state.rate.call(now);
        if code == Code::RateLimited {
            state.limit.overloaded(now);
        }
    }

    fn call_ended(&self, call: &CallReport<'_>) {
        if call.outcome == CallOutcome::Failed(Code::RateLimited) {
            self.lock().limit.overloaded(Instant::now());
        }
    }

    fn reply_head(&self, head: &ReplyHead) {
        let mut state = self.lock();
        let now = Instant::now();
        state.rate.replied(head, now);
        if is_overload(head.status) {
            state.limit.overloaded(now);
        }
    }
}

// How many rows run at the same time.

/// How many rows run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Concurrency {
    /// Found by itself: it rises while the latency holds, and is halved when the provider is overloaded.
    #[default]
    Auto,
    /// This number.
    Fixed(u32),
}

impl std::str::FromStr for Concurrency {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(number @ 1..=MAX) => Ok(Self::Fixed(number)),
            Err(_) if text == "auto" => Ok(Self::Auto),
            _ => Err("not a number from 1 to 1024, or `auto`"),
        }
    }
}

/// The maximum number of rows that run at the same time.
const MAX: u32 = 1_024;
/// The number with which `auto` begins.
const START: f64 = 4.0;
/// The latency holds up to this multiple of the best one.
const HOLDS: f64 = 2.0;
/// The weight of a row in the average latency.
const LATENCY_WEIGHT: f64 = 0.1;
/// How fast the best latency is forgotten, for each row.
const FORGET: f64 = 1.001;

/// The current limit.
#[derive(Debug)]
pub(crate) struct Limit {
    value: f64,
    is_fixed: bool,
    /// The limit doubles until the first overload.
    is_starting: bool,
    /// The average latency in seconds.
    latency: Option<f64>,
    /// The lowest average so far.
    best: f64,
    /// The time of the last reduction.
    reduced: Option<Instant>,
}

impl Limit {
    pub(crate) fn new(concurrency: Concurrency) -> Self {
        let (value, is_fixed) = match concurrency {
            Concurrency::Auto => (START, false),
            Concurrency::Fixed(number) => (f64::from(number), true),
        };
        Self { value, is_fixed, is_starting: true, latency: None, best: f64::MAX, reduced: None }
    }

    /// Returns the number of rows that may run at the same time.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 1,024")]
    pub(crate) fn value(&self) -> usize {
        self.value as usize
    }

    /// Records that the provider answered a row. `is_full` says whether as many rows ran as are allowed.
    pub(crate) fn answered(&mut self, latency: Duration, is_full: bool) {
        let latency = latency.as_secs_f64();
        let average = self.latency.map_or(latency, |before| before + LATENCY_WEIGHT * (latency - before));
        self.latency = Some(average);
        // The best latency fades, so that a slow hour at the provider does not keep the limit low for the rest of the batch.
        self.best = (self.best * FORGET).min(average);
        // A limit that is not reached says nothing about what the provider can take.
        if self.is_fixed || !is_full {
            return;
        }
        if average > self.best * HOLDS {
            self.is_starting = false;
            return;
        }
        let step = if self.is_starting { 1.0 } else { 1.0 / self.value };
        self.value = (self.value + step).min(f64::from(MAX));
    }

    /// Records that the provider is overloaded. The rows that were sent before a reduction do not reduce it again.
    pub(crate) fn overloaded(&mut self, now: Instant) {
        let pause = Duration::from_secs_f64(self.latency.unwrap_or(1.0).clamp(0.001, 60.0));
        let is_recent = self.reduced.is_some_and(|reduced| now.saturating_duration_since(reduced) < pause);
        if !self.is_fixed && !is_recent {
            self.value = (self.value / 2.0).max(1.0);
            self.is_starting = false;
            self.reduced = Some(now);
        }
    }
}

/// The longest pause that a vendor can request.
const MAX_PAUSE: Duration = Duration::from_secs(15 * 60);
/// The tokens of a row before any is known.
const FIRST_TOKENS: f64 = 1_000.0;
/// The weight of a row in the average number of tokens.
const TOKENS_WEIGHT: f64 = 0.1;
/// The part of a minute whose requests or tokens may be used at once.
const BURST: f64 = 1.0 / 60.0;

/// Limits of a rate, and what was used of them.
#[derive(Debug)]
pub(crate) struct Rate {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    paused_until: Option<Instant>,
    /// The average number of tokens of a row.
    average: Option<f64>,
    running: u64,
    /// The calls whose replies have not begun, which the vendor may not have counted yet.
    unanswered: u64,
    /// What the last reply said is left of the vendor's limits.
    left_requests: Option<Allowance>,
    left_tokens: Option<Allowance>,
}

/// What is left of a limit of the vendor.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    left: f64,
    /// The time at which the limit is full again.
    until: Instant,
}

impl Allowance {
    /// Returns the allowance after a reply, when this amount is still to be counted by the vendor.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn new(quota: &Quota, uncounted: f64, now: Instant) -> Self {
        Self { left: quota.remaining as f64 - uncounted, until: now + quota.reset.min(MAX_PAUSE) }
    }

    /// Returns the time at which this amount may be used; none if now.
    fn ready_at(&self, amount: f64) -> Option<Instant> {
        (self.left < amount).then_some(self.until)
    }
}

/// What is left of a limit per minute. It can be less than nothing: the debt delays the next row.
#[derive(Debug)]
struct Bucket {
    per_second: f64,
    capacity: f64,
    level: f64,
    updated: Instant,
}

impl Bucket {
    fn new(per_minute: f64, now: Instant) -> Self {
        let capacity = (per_minute * BURST).max(1.0);
        Self { per_second: per_minute / 60.0, capacity, level: capacity, updated: now }
    }

    fn add(&mut self, amount: f64, now: Instant) {
        let elapsed = now.saturating_duration_since(self.updated).as_secs_f64();
        self.level = (self.level + elapsed * self.per_second).min(self.capacity) + amount;
        self.updated = now;
    }

    /// Returns the time at which the level is `least`, which is at most the capacity.
    fn ready_at(&self, least: f64) -> Instant {
        let missing = (least.min(self.capacity) - self.level).max(0.0);
        let wait = Duration::try_from_secs_f64(missing / self.per_second).unwrap_or(MAX_PAUSE);
        self.updated + wait
    }
}

impl Rate {
    pub(crate) fn new(rpm: Option<u32>, tpm: Option<u64>, now: Instant) -> Self {
        let requests = rpm.map(|rpm| Bucket::new(f64::from(rpm), now));
        #[expect(clippy::cast_precision_loss, reason = "limits are far below 2^53")]
        let tokens = tpm.map(|tpm| Bucket::new(tpm as f64, now));
        Self {
            requests,
            tokens,
            paused_until: None,
            average: None,
            running: 0,
            unanswered: 0,
            left_requests: None,
            left_tokens: None,
        }
    }

    /// Returns the time at which the next row may start.
    pub(crate) fn ready_at(&self, now: Instant) -> Instant {
        let requests = self.requests.as_ref().map(|bucket| bucket.ready_at(1.0));
        let tokens = self.tokens.as_ref().map(|bucket| bucket.ready_at(self.tokens_per_row()));
        [requests, tokens, self.paused_until(now)].into_iter().flatten().fold(now, Instant::max)
    }

    /// Returns the time until which the vendor accepts no requests.
    pub(crate) fn paused_until(&self, now: Instant) -> Option<Instant> {
        let requests = self.left_requests.and_then(|left| left.ready_at(1.0));
        let tokens = self.left_tokens.and_then(|left| left.ready_at(self.average.unwrap_or(1.0)));
        [self.paused_until, requests, tokens].into_iter().flatten().max().filter(|until| *until > now)
    }

    /// Records that a row starts, and returns the tokens that are reserved for it.
    pub(crate) fn start(&mut self, now: Instant) -> f64 {
        self.running += 1;
        self.call(now);
        let reserved = self.tokens_per_row();
        if let Some(bucket) = &mut self.tokens {
            bucket.add(-reserved, now);
        }
        reserved
    }

    /// Records a further call of a row.
    pub(crate) fn call(&mut self, now: Instant) {
        self.unanswered += 1;
        let tokens = self.average.unwrap_or(1.0);
        self.left_requests.iter_mut().for_each(|allowance| allowance.left -= 1.0);
        self.left_tokens.iter_mut().for_each(|allowance| allowance.left -= tokens);
        if let Some(bucket) = &mut self.requests {
            bucket.add(-1.0, now);
        }
    }

    /// Records the tokens of a row that has ended; none if they are unknown.
    pub(crate) fn end(&mut self, reserved: f64, used: Option<u64>, now: Instant) {
        self.running = self.running.saturating_sub(1);
        // A call that was refused without a reply is over too.
        self.unanswered = self.unanswered.min(self.running);
        let Some(used) = used else { return };
        #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^53")]
        let used = used as f64;
        self.average = Some(self.average.map_or(used, |before| before + TOKENS_WEIGHT * (used - before)));
        // The level may fall below zero: a row that used more than was reserved delays the next ones.
        if let Some(bucket) = &mut self.tokens {
            bucket.add(reserved - used, now);
        }
    }

    /// Obeys the head of a reply: the wait that the vendor requests, and its limits if they are reached.
    pub(crate) fn replied(&mut self, head: &ReplyHead, now: Instant) {
        self.unanswered = self.unanswered.saturating_sub(1);
        if is_overload(head.status) {
            self.pause(head.retry_after.unwrap_or_default(), now);
        }
        // Otherwise as many rows would start as run at once, although the vendor takes only the first of them.
        #[expect(clippy::cast_precision_loss, reason = "at most 1,024 rows run")]
        let calls = self.unanswered as f64;
        if let Some(quota) = &head.requests {
            self.left_requests = Some(Allowance::new(quota, calls, now));
        }
        if let Some(quota) = &head.tokens {
            let tokens = calls * self.average.unwrap_or(1.0);
            self.left_tokens = Some(Allowance::new(quota, tokens, now));
        }
    }

    /// Starts no row for this time.
    pub(crate) fn pause(&mut self, length: Duration, now: Instant) {
        let until = now + length.min(MAX_PAUSE);
        self.paused_until = Some(self.paused_until.map_or(until, |before| before.max(until)));
    }

    fn tokens_per_row(&self) -> f64 {
        self.average.unwrap_or(FIRST_TOKENS)
    }
}

/// Whether a status says that the vendor is overloaded.
pub(crate) const fn is_overload(status: u16) -> bool {
    matches!(status, 429 | 503 | 529)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_millis(100);

    fn after(rows: usize, limit: &mut Limit, latency: Duration) -> usize {
        (0..rows).for_each(|_| limit.answered(latency, true));
        limit.value()
    }

    #[test]
    fn limit_rises_while_the_latency_holds() {
        let mut limit = Limit::new(Concurrency::Auto);
        assert_eq!(limit.value(), 4);
        assert_eq!(after(4, &mut limit, FAST), 8, "it doubles with each round");
        assert_eq!(after(5_000, &mut limit, FAST), 1_024);
        let mut limit = Limit::new(Concurrency::Auto);
        after(60, &mut limit, FAST);
        let before = limit.value();
        after(60, &mut limit, 10 * FAST);
        assert!(limit.value() < before + 10, "{before} {}", limit.value());
    }

    #[test]
    fn overload_halves_the_limit_once_per_round() {
        let mut limit = Limit::new(Concurrency::Auto);
        let now = Instant::now();
        after(60, &mut limit, FAST);
        limit.overloaded(now);
        limit.overloaded(now + FAST / 2);
        assert_eq!(limit.value(), 32);
        limit.overloaded(now + 2 * FAST);
        assert_eq!(limit.value(), 16);
        assert_eq!(after(16, &mut limit, FAST), 16, "it rises slowly now");
        assert_eq!(after(2, &mut limit, FAST), 17);
        (1..20).for_each(|round| limit.overloaded(now + round * 10 * FAST));
        assert_eq!(limit.value(), 1);
    }

    #[test]
    fn limit_that_is_not_used_does_not_rise() {
        let mut limit = Limit::new(Concurrency::Auto);
        (0..50).for_each(|_| limit.answered(FAST, false));
        assert_eq!(limit.value(), 4);
    }

    #[test]
    fn fixed_limit_stays() {
        let mut limit = Limit::new("7".parse().unwrap());
        after(50, &mut limit, FAST);
        limit.overloaded(Instant::now());
        assert_eq!(limit.value(), 7);
        for text in ["0", "-1", "1025", "many", ""] {
            assert!(text.parse::<Concurrency>().is_err(), "{text}");
        }
        assert_eq!("auto".parse(), Ok(Concurrency::Auto));
    }
}

#[cfg(test)]
mod rate_tests {
    use super::*;

    /// Starts as many rows as the rate allows in this time.
    fn rows_within(rate: &mut Rate, start: Instant, time: Duration, used: u64) -> u32 {
        let mut rows = 0;
        loop {
            let at = rate.ready_at(start);
            if at > start + time {
                return rows;
            }
            let reserved = rate.start(at);
            rate.end(reserved, Some(used), at);
            rows += 1;
        }
    }

    #[test]
    fn requests_per_minute_are_kept() {
        let now = Instant::now();
        let mut rate = Rate::new(Some(120), None, now);
        assert_eq!(rows_within(&mut rate, now, Duration::from_secs(60), 0), 122);
        rate.call(now + Duration::from_secs(60));
        let next = rate.ready_at(now + Duration::from_secs(60));
        assert!(next >= now + Duration::from_secs(61), "a further call delays the next row");
    }

    #[test]
    fn tokens_per_minute_are_kept() {
        let now = Instant::now();
        let mut rate = Rate::new(None, Some(60_000), now);
        let rows = rows_within(&mut rate, now, Duration::from_secs(60), 2_000);
        assert!((29..=32).contains(&rows), "{rows}");
    }

    #[test]
    fn pauses_of_the_vendor_are_obeyed() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let head = |status, retry_after, requests, tokens| {
            let mut rate = Rate::new(None, None, now);
            let reserved = rate.start(now);
            rate.end(reserved, Some(500), now);
            rate.replied(&reply(status, retry_after, requests, tokens), now);
            rate.ready_at(now) - now
        };
        assert_eq!(head(429, Some(3 * second), None, None), 3 * second);
        assert_eq!(head(200, Some(3 * second), None, None), Duration::ZERO);
        assert_eq!(head(529, None, Some(quota(0, 9)), None), 9 * second);
        assert_eq!(head(200, None, Some(quota(1, 9)), Some(quota(499, 4))), 4 * second);
        assert_eq!(head(429, Some(Duration::MAX), None, None), MAX_PAUSE);
    }

    #[test]
    fn rows_that_the_vendor_has_not_counted_use_up_its_limit() {
        let now = Instant::now();
        let mut rate = Rate::new(None, None, now);
        for _ in 0..4 {
            rate.start(now);
        }
        // The first of four replies: three calls are still to be counted.
        rate.replied(&reply(200, None, Some(quota(5, 60)), None), now);
        assert_eq!(rate.ready_at(now), now);
        let mut started = 0;
        while rate.ready_at(now) == now {
            rate.start(now);
            started += 1;
        }
        assert_eq!((started, rate.ready_at(now) - now), (2, Duration::from_secs(60)));
        // The next reply corrects it.
        rate.replied(&reply(200, None, Some(quota(100, 60)), None), now);
        assert_eq!(rate.ready_at(now), now);
    }

    #[test]
    fn calls_that_were_refused_do_not_use_up_a_limit_for_ever() {
        let now = Instant::now();
        let mut rate = Rate::new(None, None, now);
        for _ in 0..50 {
            let reserved = rate.start(now);
            rate.end(reserved, None, now);
        }
        rate.start(now);
        rate.replied(&reply(200, None, Some(quota(3, 60)), None), now);
        assert_eq!(rate.ready_at(now), now);
    }

    fn quota(remaining: u64, seconds: u64) -> Quota {
        Quota { remaining, reset: Duration::from_secs(seconds) }
    }

    fn reply(
        status: u16,
        retry_after: Option<Duration>,
        requests: Option<Quota>,
        tokens: Option<Quota>,
    ) -> ReplyHead {
        let mut head = ReplyHead::new(status);
        (head.retry_after, head.requests, head.tokens) = (retry_after, requests, tokens);
        head
    }
}

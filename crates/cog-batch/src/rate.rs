//! Requests and tokens per minute, and the pauses that the vendor requests.

use std::time::{Duration, Instant};

use cog_run::provider::{Quota, ReplyHead};

/// The longest pause that a vendor can request.
const MAX_PAUSE: Duration = Duration::from_secs(15 * 60);
/// The tokens of a row before any is known.
const FIRST_TOKENS: f64 = 1_000.0;
/// The weight of a row in the average number of tokens.
const WEIGHT: f64 = 0.1;
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
        Self { requests, tokens, paused_until: None, average: None }
    }

    /// Returns the time at which the next row may start.
    pub(crate) fn ready_at(&self, now: Instant) -> Instant {
        let requests = self.requests.as_ref().map(|bucket| bucket.ready_at(1.0));
        let tokens = self.tokens.as_ref().map(|bucket| bucket.ready_at(self.tokens_per_row()));
        [requests, tokens, self.paused_until].into_iter().flatten().fold(now, Instant::max)
    }

    /// Returns the time until which the vendor accepts no requests.
    pub(crate) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.paused_until.filter(|until| *until > now)
    }

    /// Records that a row starts, and returns the tokens that are reserved for it.
    pub(crate) fn start(&mut self, now: Instant) -> f64 {
        self.call(now);
        let reserved = self.tokens_per_row();
        if let Some(bucket) = &mut self.tokens {
            bucket.add(-reserved, now);
        }
        reserved
    }

    /// Records a further call of a row.
    pub(crate) fn call(&mut self, now: Instant) {
        if let Some(bucket) = &mut self.requests {
            bucket.add(-1.0, now);
        }
    }

    /// Records the tokens of a row that has ended; none if they are unknown.
    pub(crate) fn end(&mut self, reserved: f64, used: Option<u64>, now: Instant) {
        let Some(used) = used else { return };
        #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^53")]
        let used = used as f64;
        self.average = Some(self.average.map_or(used, |before| before + WEIGHT * (used - before)));
        if let Some(bucket) = &mut self.tokens {
            bucket.add(reserved - used, now);
        }
    }

    /// Obeys the head of a reply: the wait that the vendor requests, and its limits if they are reached.
    pub(crate) fn replied(&mut self, head: &ReplyHead, now: Instant) {
        if is_overload(head.status) {
            self.pause(head.retry_after.unwrap_or_default(), now);
        }
        let requests = head.requests.filter(|quota| is_used_up(quota, 1.0));
        let tokens = head.tokens.filter(|quota| is_used_up(quota, self.average.unwrap_or(1.0)));
        for quota in [requests, tokens].into_iter().flatten() {
            self.pause(quota.reset, now);
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

/// Whether less of a quota remains than is needed.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn is_used_up(quota: &Quota, needed: f64) -> bool {
    (quota.remaining as f64) < needed
}

/// Whether a status says that the vendor is overloaded.
pub(crate) const fn is_overload(status: u16) -> bool {
    matches!(status, 429 | 503 | 529)
}

#[cfg(test)]
mod tests {
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

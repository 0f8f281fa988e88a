use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use axum::http::StatusCode;
use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    state::keyed::DashMapStateStore,
};

use super::{
    client::Client,
    refusal::{Reason, Refusal},
};

/// The rate limit of requests per client.
///
/// The table of clients is bounded: idle clients are removed, and when it is still full, all further IP addresses share one
/// limit.
pub(crate) struct Rates<C: Clock = DefaultClock> {
    table: Option<Table<C>>,
    per_second: u32,
    clock: C,
    /// Counts checks, so that the table is cleaned from time to time.
    checks: AtomicU32,
    /// The table was full when it was last cleaned.
    is_full: AtomicBool,
}

type Table<C> = RateLimiter<Client, DashMapStateStore<Client>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// The maximum number of clients in the table, give or take [`CLEAN_EVERY`].
const MAX_CLIENTS: usize = 65_536;

/// The number of checks between two cleanings.
const CLEAN_EVERY: u32 = 1_024;

impl Rates {
    /// Limits each client to `per_second` requests with bursts of `burst`; 0 = unlimited.
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        Self::with_clock(per_second, burst, DefaultClock::default())
    }
}

impl<C: Clock + Clone> Rates<C> {
    fn with_clock(per_second: u32, burst: u32, clock: C) -> Self {
        let table = NonZeroU32::new(per_second).map(|rate| {
            let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
            let quota = Quota::per_second(rate).allow_burst(burst);
            RateLimiter::new(quota, DashMapStateStore::default(), clock.clone())
        });
        Self { table, per_second, clock, checks: AtomicU32::new(0), is_full: AtomicBool::new(false) }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// 429 E4002, with the time until the next request is allowed.
    pub(crate) fn check(&self, client: &Client) -> Result<(), Refusal> {
        let Some(table) = &self.table else { return Ok(()) };
        self.clean(table);
        let shares = matches!(client, Client::Peer(_)) && self.is_full.load(Ordering::Relaxed);
        let client = if shares { &Client::Others } else { client };
        table.check_key(client).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            Refusal::new(Reason::Rate, StatusCode::TOO_MANY_REQUESTS, self.error()).retry_after(wait)
        })
    }

    fn error(&self) -> ErrorBody {
        let message = format!("rate limit exceeded: {} requests per second", self.per_second);
        let details = serde_json::json!({ "limit": "requests_per_second", "max": self.per_second });
        ErrorBody::new(Code::RateLimited, message)
            .suggest("Wait for the seconds in Retry-After; the operator can raise --requests-per-second.")
            .with_details(Value::from(details))
    }

    fn clean(&self, table: &Table<C>) {
        if !self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(CLEAN_EVERY) {
            return;
        }
        table.retain_recent();
        self.is_full.store(table.len() >= MAX_CLIENTS, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, time::Duration};

    use axum::{http::header, response::IntoResponse};
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn rates(per_second: u32, burst: u32) -> (Rates<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Rates::with_clock(per_second, burst, clock.clone()), clock)
    }

    fn peer(number: u32) -> Client {
        Client::from_ip(IpAddr::from(number.to_be_bytes()))
    }

    #[test]
    fn burst_limit_is_exact() {
        let (rates, clock) = rates(1, 3);
        for _ in 0..3 {
            rates.check(&peer(1)).unwrap();
        }
        let refusal = rates.check(&peer(1)).unwrap_err();
        assert_eq!(refusal.reason(), Reason::Rate);
        let response = refusal.into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        clock.advance(Duration::from_secs(1));
        rates.check(&peer(1)).unwrap();
        rates.check(&peer(1)).unwrap_err();
    }

    #[test]
    fn clients_have_separate_limits() {
        let (rates, _) = rates(1, 1);
        rates.check(&peer(1)).unwrap();
        rates.check(&peer(2)).unwrap();
        rates.check(&peer(1)).unwrap_err();
    }

    #[test]
    fn zero_is_unlimited() {
        let (rates, _) = rates(0, 1);
        assert!((0..10_000).all(|_| rates.check(&peer(1)).is_ok()));
    }

    #[test]
    fn idle_clients_are_removed() {
        let (rates, clock) = rates(1, 1);
        for number in 0..CLEAN_EVERY {
            rates.check(&peer(number)).unwrap();
        }
        clock.advance(Duration::from_secs(10));
        rates.check(&peer(0)).unwrap();
        assert_eq!(rates.table.as_ref().unwrap().len(), 1);
    }

    #[test]
    fn full_table_shares_one_limit() {
        let (rates, _) = rates(1, 1);
        let most = u32::try_from(MAX_CLIENTS).unwrap() + CLEAN_EVERY;
        let refused = (0..most + 10).filter(|number| rates.check(&peer(*number)).is_err()).count();
        assert!(refused >= 9, "{refused}");
        assert!(rates.table.as_ref().unwrap().len() <= MAX_CLIENTS + CLEAN_EVERY as usize + 1);
        rates.check(&Client::Token("ci".into())).unwrap();
    }
}

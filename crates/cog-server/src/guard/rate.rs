use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use tokio::time::Instant;

use super::{
    budgets::Client,
    refusal::{Reason, Refusal},
};

/// The rate limit of requests per client.
///
/// The table of clients is bounded: idle clients are removed, and when it is still full, all further IP addresses share one
/// limit.
pub(crate) struct Rates {
    /// 0 = unlimited.
    per_second: u32,
    /// The time of one request at the rate.
    interval: Duration,
    /// The time of a burst at the rate.
    burst: Duration,
    table: Mutex<Table>,
}

/// For each client the time at which all of its requests so far would have ended at the rate: one number instead of a
/// count and a time (the generic cell rate algorithm).
#[derive(Default)]
struct Table {
    busy_until: HashMap<Client, Instant>,
    /// Counts checks, so that the table is cleaned from time to time.
    checks: u32,
    /// The table was full when it was last cleaned.
    is_full: bool,
}

/// The maximum number of clients in the table, give or take [`CLEAN_EVERY`].
const MAX_CLIENTS: usize = 65_536;

/// The number of checks between two cleanings.
const CLEAN_EVERY: u32 = 1_024;

impl Rates {
    /// Limits each client to `per_second` requests with bursts of `burst`; 0 = unlimited.
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1).checked_div(per_second).unwrap_or_default();
        let burst = interval.saturating_mul(burst.max(1));
        Self { per_second, interval, burst, table: Mutex::default() }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// 429 E4002, with the time until the next request is allowed.
    pub(crate) fn check(&self, client: &Client) -> Result<(), Refusal> {
        if self.per_second == 0 {
            return Ok(());
        }
        let now = Instant::now();
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.clean(now);
        let shares = matches!(client, Client::Peer(_)) && table.is_full;
        let client = if shares { &Client::Others } else { client };
        let known = table.busy_until.get_mut(client);
        let busy_until = known.as_deref().map_or(now, |until| (*until).max(now)) + self.interval;
        let wait = (busy_until - now).saturating_sub(self.burst);
        if !wait.is_zero() {
            return Err(
                Refusal::new(Reason::Rate, StatusCode::TOO_MANY_REQUESTS, self.error()).retry_after(wait)
            );
        }
        match known {
            Some(until) => *until = busy_until,
            None => drop(table.busy_until.insert(client.clone(), busy_until)),
        }
        Ok(())
    }

    fn error(&self) -> ErrorBody {
        let message = format!("rate limit exceeded: {} requests per second", self.per_second);
        let details = serde_json::json!({ "limit": "requests_per_second", "max": self.per_second });
        ErrorBody::new(Code::RateLimited, message)
            .suggest("Wait for the seconds in Retry-After; the operator can raise --requests-per-second.")
            .with_details(Value::from(details))
    }
}

impl Table {
    /// Removes the clients that have no requests left to wait for, every [`CLEAN_EVERY`] checks.
    fn clean(&mut self, now: Instant) {
        if self.checks.is_multiple_of(CLEAN_EVERY) {
            self.busy_until.retain(|_, until| *until > now);
            self.is_full = self.busy_until.len() >= MAX_CLIENTS;
        }
        self.checks = self.checks.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, time::Duration};

    use axum::{http::header, response::IntoResponse};
    use tokio::time::advance;

    use super::*;

    fn peer(number: u32) -> Client {
        Client::from_ip(IpAddr::from(number.to_be_bytes()))
    }

    #[tokio::test(start_paused = true)]
    async fn burst_limit_is_exact() {
        let rates = Rates::new(1, 3);
        for _ in 0..3 {
            rates.check(&peer(1)).unwrap();
        }
        let refusal = rates.check(&peer(1)).unwrap_err();
        assert_eq!(refusal.reason(), Reason::Rate);
        let response = refusal.into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        advance(Duration::from_secs(1)).await;
        rates.check(&peer(1)).unwrap();
        rates.check(&peer(1)).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn refused_requests_cost_no_time() {
        let rates = Rates::new(10, 1);
        rates.check(&peer(1)).unwrap();
        for _ in 0..100 {
            rates.check(&peer(1)).unwrap_err();
        }
        advance(Duration::from_millis(100)).await;
        rates.check(&peer(1)).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn clients_have_separate_limits() {
        let rates = Rates::new(1, 1);
        rates.check(&peer(1)).unwrap();
        rates.check(&peer(2)).unwrap();
        rates.check(&peer(1)).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn zero_is_unlimited() {
        let rates = Rates::new(0, 1);
        assert!((0..10_000).all(|_| rates.check(&peer(1)).is_ok()));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_clients_are_removed() {
        let rates = Rates::new(1, 1);
        for number in 0..CLEAN_EVERY {
            rates.check(&peer(number)).unwrap();
        }
        advance(Duration::from_secs(10)).await;
        rates.check(&peer(0)).unwrap();
        assert_eq!(rates.table.lock().unwrap().busy_until.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn full_table_shares_one_limit() {
        let rates = Rates::new(1, 1);
        let most = u32::try_from(MAX_CLIENTS).unwrap() + CLEAN_EVERY;
        let refused = (0..most + 10).filter(|number| rates.check(&peer(*number)).is_err()).count();
        assert!(refused >= 9, "{refused}");
        assert!(rates.table.lock().unwrap().busy_until.len() <= MAX_CLIENTS + CLEAN_EVERY as usize + 1);
        rates.check(&Client::Token("ci".into())).unwrap();
    }
}

//! The limits of clients: their rate of requests and their streams.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use tokio::time::Instant;
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use super::{Reason, Refusal};

/// The client of a request, for limits and sessions: the holder of a token, or the IP address of the peer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// The name of the token, or the start of its digest.
    Token(Arc<str>),
    /// The IP address of the peer. Of IPv6 only the network (/64), which one subscriber has.
    Peer(IpAddr),
    /// All clients for which a full table has no space.
    Others,
}

impl Client {
    /// The client at an IP address.
    pub(crate) fn from_ip(ip: IpAddr) -> Self {
        Self::Peer(match ip.to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
            ip @ IpAddr::V4(_) => ip,
        })
    }

    /// The owner of the client's sessions.
    pub(crate) fn owner(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => write!(f, "token:{name}"),
            Self::Peer(ip) => write!(f, "peer:{ip}"),
            Self::Others => f.write_str("others"),
        }
    }
}

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
const MAX_RATED_CLIENTS: usize = 65_536;

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
        // Tokens keep their own entries, because the operator has bounded their number.
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
        // A refused request does not count. Otherwise a client that retries too early would never be served.
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
            self.is_full = self.busy_until.len() >= MAX_RATED_CLIENTS;
        }
        self.checks = self.checks.wrapping_add(1);
    }
}

/// The slots for streams, limited per client and in total.
#[derive(Clone)]
pub(crate) struct Slots {
    taken: Arc<Mutex<TakenSlots>>,
    per_client: usize,
    total: usize,
    drain: Drain,
}

/// The slots in use. Clients without one are not in the table.
#[derive(Default)]
struct TakenSlots {
    by_client: HashMap<Client, usize>,
    total: usize,
}

/// A slot for one stream; free again when it is dropped.
pub(crate) struct Slot {
    taken: Arc<Mutex<TakenSlots>>,
    client: Client,
    /// A shutdown waits for the stream, whether or not a client reads it.
    _in_flight: InFlightGuard,
}

/// The value of `Retry-After`: the end of a stream is not predictable.
const WAIT: Duration = Duration::from_secs(1);

impl Slots {
    /// Limits the slots per client and in total.
    pub(crate) fn new(per_client: usize, total: usize, drain: &Drain) -> Self {
        Self { taken: Arc::default(), per_client, total, drain: drain.clone() }
    }

    /// Takes a slot.
    ///
    /// # Errors
    /// 429 E4002, where the client or all clients have used their slots.
    pub(crate) fn take(&self, client: &Client) -> Result<Slot, Refusal> {
        let mut taken = lock(&self.taken);
        // The total comes first: it needs no entry in the table.
        if taken.total >= self.total {
            return Err(self.none_in_total());
        }
        let own = taken.by_client.entry(client.clone()).or_default();
        if *own >= self.per_client {
            // A client without a slot is not in the table.
            if *own == 0 {
                taken.by_client.remove(client);
            }
            return Err(self.none_for_client());
        }
        *own += 1;
        taken.total += 1;
        let _in_flight = self.drain.enter();
        Ok(Slot { taken: Arc::clone(&self.taken), client: client.clone(), _in_flight })
    }

    /// The number of slots in use.
    pub(crate) fn taken(&self) -> usize {
        lock(&self.taken).total
    }

    /// The number of slots that a client uses.
    pub(crate) fn taken_by(&self, client: &Client) -> usize {
        lock(&self.taken).by_client.get(client).copied().unwrap_or(0)
    }

    fn none_for_client(&self) -> Refusal {
        let message = format!("too many streams: the limit per client is {}", self.per_client);
        refusal(Reason::ClientStreams, message, "max_streams_per_client", self.per_client)
    }

    fn none_in_total(&self) -> Refusal {
        let message = format!("too many streams: the limit of this server is {}", self.total);
        refusal(Reason::AllStreams, message, "max_streams", self.total)
    }
}

fn refusal(reason: Reason, message: String, limit: &str, max: usize) -> Refusal {
    let flag = limit.replace('_', "-");
    let error = ErrorBody::new(Code::RateLimited, message)
        .suggest(format!("Wait until a stream ends, or cancel one; the operator can raise --{flag}."))
        .with_details(Value::from(serde_json::json!({ "limit": limit, "max": max })));
    Refusal::new(reason, StatusCode::TOO_MANY_REQUESTS, error).retry_after(WAIT)
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.total = taken.total.saturating_sub(1);
        if let Entry::Occupied(mut own) = taken.by_client.entry(self.client.clone()) {
            *own.get_mut() = own.get().saturating_sub(1);
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

fn lock(taken: &Mutex<TakenSlots>) -> MutexGuard<'_, TakenSlots> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The shutdown of a server, in steps, and the work in progress.
#[derive(Clone, Default)]
pub(crate) struct Drain {
    /// Cancelled when the shutdown is requested: new connections should go elsewhere, and are still served for a while.
    pub(crate) announced: CancellationToken,
    /// Cancelled when no connection is accepted any more, and idle ones are closed.
    pub(crate) begun: CancellationToken,
    /// Cancelled when the remaining work must stop.
    pub(crate) over: CancellationToken,
    in_flight: TaskTracker,
}

/// Work in progress, until it is dropped.
pub(crate) type InFlightGuard = TaskTrackerToken;

impl Drain {
    /// Counts work in progress.
    pub(crate) fn enter(&self) -> InFlightGuard {
        self.in_flight.token()
    }

    /// Waits until no work is in progress.
    pub(crate) async fn idle(&self) {
        self.in_flight.close();
        self.in_flight.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Client {
        Client::from_ip(address.parse().unwrap())
    }

    #[test]
    fn ipv6_network_is_one_client() {
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::9"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
    }

    #[test]
    fn ipv4_address_is_canonical() {
        assert_eq!(peer("::ffff:192.0.2.7"), peer("192.0.2.7"));
        assert_ne!(peer("192.0.2.7"), peer("192.0.2.8"));
    }

    #[test]
    fn tokens_and_peers_have_different_owners() {
        let token = Client::Token("192.0.2.7".into());
        assert_ne!(token.owner(), peer("192.0.2.7").owner());
    }
}

#[cfg(test)]
mod rate_tests {
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
        let most = u32::try_from(MAX_RATED_CLIENTS).unwrap() + CLEAN_EVERY;
        let refused = (0..most + 10).filter(|number| rates.check(&peer(*number)).is_err()).count();
        assert!(refused >= 9, "{refused}");
        assert!(rates.table.lock().unwrap().busy_until.len() <= MAX_RATED_CLIENTS + CLEAN_EVERY as usize + 1);
        rates.check(&Client::Token("ci".into())).unwrap();
    }
}

#[cfg(test)]
mod slots_tests {
    use super::*;

    fn client(name: &str) -> Client {
        Client::Token(name.into())
    }

    #[test]
    fn slots_per_client_are_limited() {
        let slots = Slots::new(2, 10, &Drain::default());
        let first = slots.take(&client("a")).unwrap();
        let _second = slots.take(&client("a")).unwrap();
        let refusal = slots.take(&client("a")).err().unwrap();
        assert_eq!((refusal.reason(), refusal.status().as_u16()), (Reason::ClientStreams, 429));
        let _other = slots.take(&client("b")).unwrap();
        drop(first);
        let _third = slots.take(&client("a")).unwrap();
    }

    #[test]
    fn slots_in_total_are_limited() {
        let slots = Slots::new(2, 3, &Drain::default());
        let held: Vec<_> = ["a", "a", "b"].iter().map(|name| slots.take(&client(name)).unwrap()).collect();
        let refusal = slots.take(&client("c")).err().unwrap();
        assert_eq!(refusal.reason(), Reason::AllStreams);
        assert_eq!(slots.taken(), 3);
        drop(held);
        assert_eq!(slots.taken(), 0);
        slots.take(&client("c")).unwrap();
    }

    #[test]
    fn clients_without_a_stream_are_not_stored() {
        let slots = Slots::new(1, 10_000, &Drain::default());
        for number in 0..1_000 {
            drop(slots.take(&client(&number.to_string())).unwrap());
        }
        let none = Slots::new(0, 10, &Drain::default());
        assert!(none.take(&client("a")).is_err());
        assert!(lock(&slots.taken).by_client.is_empty() && lock(&none.taken).by_client.is_empty());
    }
}

#[cfg(test)]
mod drain_tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn idle_when_all_work_has_ended() {
        let drain = Drain::default();
        drain.idle().await;
        let first = drain.enter();
        let second = drain.enter();
        let mut idle = Box::pin(drain.idle());
        assert!(idle.as_mut().now_or_never().is_none());
        drop(first);
        assert!(idle.as_mut().now_or_never().is_none());
        drop(second);
        idle.await;
    }
}

//! The memory that the bodies of requests take.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use axum::http::StatusCode;
use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    budgets::Client,
    refusal::{Reason, Refusal},
};

/// The size up to which a body takes no share, so that most requests never wait.
pub(super) const MIN_BYTES: usize = 64 << 10;
/// The unit of a share, in bytes.
const UNIT: usize = 1 << 10;
/// How many clients the memory is for: each has at most this part of it, and enough for one body.
const CLIENTS: usize = 2;

/// The memory that large bodies take together, from when they are read until their runs have ended.
#[derive(Debug)]
pub(super) struct BodyMemory {
    all: Arc<Semaphore>,
    /// What each client may take. Clients without a large body are not in the table.
    clients: Mutex<HashMap<Client, Weak<Semaphore>>>,
    max_bytes: usize,
    per_client: usize,
    max_wait: Duration,
}

/// The share of one body; free again when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct BodyLease(Option<Share>);

#[derive(Debug)]
struct Share {
    own: OwnedSemaphorePermit,
    all: OwnedSemaphorePermit,
}

impl BodyMemory {
    pub(super) fn new(max_bytes: usize, max_body_bytes: usize, max_wait: Duration) -> Self {
        let per_client = units((max_bytes / CLIENTS).max(max_body_bytes).min(max_bytes)).max(1);
        let all = Arc::new(Semaphore::new(units(max_bytes).max(1)));
        Self { all, clients: Mutex::default(), max_bytes, per_client, max_wait }
    }

    /// Waits for the share of a body of this size. A body over the limits takes all that its client may have.
    ///
    /// # Errors
    /// 429 E4002 if other bodies do not end in time.
    pub(super) async fn take(&self, client: &Client, bytes: usize) -> Result<BodyLease, Refusal> {
        if bytes <= MIN_BYTES {
            return Ok(BodyLease::default());
        }
        let share = u32::try_from(units(bytes).min(self.per_client)).unwrap_or(u32::MAX);
        // First the client's own, so that its waiting bodies keep nothing from others. No semaphore is ever closed.
        let taking = async {
            let own = self.of_client(client).acquire_many_owned(share).await.ok()?;
            let all = Arc::clone(&self.all).acquire_many_owned(share).await.ok()?;
            Some(Share { own, all })
        };
        timeout(self.max_wait, taking).await.map(BodyLease).map_err(|_| self.full())
    }

    fn of_client(&self, client: &Client) -> Arc<Semaphore> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, own| own.strong_count() > 0);
        if let Some(own) = clients.get(client).and_then(Weak::upgrade) {
            return own;
        }
        let own = Arc::new(Semaphore::new(self.per_client));
        clients.insert(client.clone(), Arc::downgrade(&own));
        own
    }

    fn full(&self) -> Refusal {
        let message =
            format!("too many large requests: the limit for their bodies is {} bytes", self.max_bytes);
        let error = ErrorBody::new(Code::RateLimited, message)
            .suggest("Retry later; the operator can raise --max-body-bytes-total.")
            .with_details(Value::from(
                serde_json::json!({ "limit": "max_body_bytes_total", "max": self.max_bytes }),
            ));
        Refusal::new(Reason::AllBodies, StatusCode::TOO_MANY_REQUESTS, error)
            .retry_after(Duration::from_secs(1))
            .close()
    }
}

impl BodyLease {
    /// Whether the body has no share so far.
    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns what a body of this size does not need.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let needed = if bytes <= MIN_BYTES { 0 } else { units(bytes) };
        if let Some(Share { own, all }) = &mut self.0 {
            let excess = all.num_permits().saturating_sub(needed);
            drop((own.split(excess), all.split(excess)));
        }
    }

    /// Adds the share of another body of the same client.
    pub(crate) fn merge(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Some(share), Some(other)) => {
                share.own.merge(other.own);
                share.all.merge(other.all);
            }
            (none @ None, other) => *none = other,
            (Some(_), None) => {}
        }
    }
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const MAX_WAIT: Duration = Duration::from_secs(30);
    const MIB: usize = 1 << 20;

    fn client(name: &str) -> Client {
        Client::Token(name.into())
    }

    fn memory() -> BodyMemory {
        BodyMemory::new(4 * MIB, 2 * MIB, MAX_WAIT)
    }

    #[tokio::test]
    async fn large_bodies_wait_and_small_ones_do_not() {
        let (memory, [ann, bob, carl]) = (memory(), ["ann", "bob", "carl"].map(client));
        let first = memory.take(&ann, 2 * MIB).await.unwrap();
        let _second = memory.take(&bob, 2 * MIB).await.unwrap();
        let mut third = Box::pin(memory.take(&carl, MIB));
        assert!((&mut third).now_or_never().is_none());
        assert!(memory.take(&carl, MIN_BYTES).await.unwrap().is_none());
        drop(first);
        assert!((&mut third).now_or_never().is_some());
    }

    #[tokio::test]
    async fn one_client_does_not_hold_up_others() {
        let (memory, ann) = (memory(), client("ann"));
        let _first = memory.take(&ann, 100 * MIB).await.unwrap();
        let mut more: Vec<_> = (0..10).map(|_| Box::pin(memory.take(&ann, 2 * MIB))).collect();
        assert!(more.iter_mut().all(|next| next.now_or_never().is_none()));
        assert!(memory.take(&client("bob"), 2 * MIB).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn body_that_waits_too_long_returns_429() {
        let (memory, ann) = (memory(), client("ann"));
        let first = memory.take(&ann, 2 * MIB).await.unwrap();
        let refusal = memory.take(&ann, MIB).await.unwrap_err();
        assert_eq!((refusal.status().as_u16(), refusal.reason()), (429, Reason::AllBodies));
        drop(first);
        drop(memory.take(&client("bob"), MIB).await.unwrap());
        assert_eq!(memory.clients.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn share_shrinks_to_the_size_of_the_body() {
        let (memory, ann) = (memory(), client("ann"));
        let mut lease = memory.take(&ann, 2 * MIB).await.unwrap();
        lease.shrink(MIB);
        assert_eq!(memory.all.available_permits(), 3 * MIB / UNIT);
        lease.merge(memory.take(&ann, MIB).await.unwrap());
        assert_eq!(memory.all.available_permits(), 2 * MIB / UNIT);
        lease.shrink(MIN_BYTES);
        assert_eq!(memory.all.available_permits(), 4 * MIB / UNIT);
    }
}

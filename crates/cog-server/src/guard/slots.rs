use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use cog_json::Value;
use cog_spec::{Code, ErrorBody};

use super::{
    client::Client,
    drain::{Drain, InFlightGuard},
    refusal::{Reason, Refusal},
};

/// Places for streams: so many to a client, so many in all.
#[derive(Clone)]
pub(crate) struct Slots {
    taken: Arc<Mutex<Taken>>,
    per_client: usize,
    in_all: usize,
    drain: Drain,
}

/// The places that are taken. Clients without one are not in the table.
#[derive(Default)]
struct Taken {
    by_client: HashMap<Client, usize>,
    in_all: usize,
}

/// A place for one stream; free again when it is dropped.
pub(crate) struct Slot {
    taken: Arc<Mutex<Taken>>,
    client: Client,
    /// A server that ends waits for the stream, whether or not somebody reads it.
    _under_way: InFlightGuard,
}

/// What a client is told to wait where nobody can know when a stream ends.
const WAIT: Duration = Duration::from_secs(1);

impl Slots {
    /// So many places to a client, and in all.
    pub(crate) fn new(per_client: usize, in_all: usize, drain: &Drain) -> Self {
        Self { taken: Arc::default(), per_client, in_all, drain: drain.clone() }
    }

    /// MediaCapabilities a place.
    ///
    /// # Errors
    /// 429 E4002, where the client or everybody together has as many as may be.
    pub(crate) fn take(&self, client: &Client) -> Result<Slot, Refusal> {
        let mut taken = lock(&self.taken);
        if taken.in_all >= self.in_all {
            return Err(self.all_taken());
        }
        let own = taken.by_client.entry(client.clone()).or_default();
        if *own >= self.per_client {
            // A client that may have none at all leaves no trace either.
            if *own == 0 {
                taken.by_client.remove(client);
            }
            return Err(self.own_taken());
        }
        *own += 1;
        taken.in_all += 1;
        let _under_way = self.drain.enter();
        Ok(Slot { taken: Arc::clone(&self.taken), client: client.clone(), _under_way })
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        lock(&self.taken).in_all
    }

    fn own_taken(&self) -> Refusal {
        let message = format!("too many streams: a client may have {} at once", self.per_client);
        refusal(Reason::ClientStreams, message, "max_streams_per_client", self.per_client)
    }

    fn all_taken(&self) -> Refusal {
        let message = format!("too many streams: this server keeps {} at once", self.in_all);
        refusal(Reason::AllStreams, message, "max_streams", self.in_all)
    }
}

fn refusal(reason: Reason, message: String, limit: &str, max: usize) -> Refusal {
    let flag = limit.replace('_', "-");
    let error = ErrorBody::new(Code::RateLimited, message)
        .suggest(format!("wait until a stream has ended, or cancel one; the operator can raise --{flag}"))
        .with_details(Value::from(serde_json::json!({ "limit": limit, "max": max })));
    Refusal::new(reason, StatusCode::TOO_MANY_REQUESTS, error).retry_after(WAIT)
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.in_all = taken.in_all.saturating_sub(1);
        if let Entry::Occupied(mut own) = taken.by_client.entry(self.client.clone()) {
            *own.get_mut() = own.get().saturating_sub(1);
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str) -> Client {
        Client::Token(name.into())
    }

    #[test]
    fn a_client_has_its_number_of_places_and_not_one_more() {
        let slots = Slots::new(2, 10, &Drain::new());
        let first = slots.take(&client("a")).unwrap();
        let _second = slots.take(&client("a")).unwrap();
        let refusal = slots.take(&client("a")).err().unwrap();
        assert_eq!((refusal.reason(), refusal.status().as_u16()), (Reason::ClientStreams, 429));
        let _other = slots.take(&client("b")).unwrap();
        drop(first);
        let _third = slots.take(&client("a")).unwrap();
    }

    #[test]
    fn all_clients_together_have_a_number_of_places() {
        let slots = Slots::new(2, 3, &Drain::new());
        let held: Vec<_> = ["a", "a", "b"].iter().map(|name| slots.take(&client(name)).unwrap()).collect();
        let refusal = slots.take(&client("c")).err().unwrap();
        assert_eq!(refusal.reason(), Reason::AllStreams);
        assert_eq!(slots.taken(), 3);
        drop(held);
        assert_eq!(slots.taken(), 0);
        slots.take(&client("c")).unwrap();
    }

    #[test]
    fn clients_without_a_stream_leave_no_trace() {
        let slots = Slots::new(1, 10_000, &Drain::new());
        for number in 0..1_000 {
            drop(slots.take(&client(&number.to_string())).unwrap());
        }
        let none = Slots::new(0, 10, &Drain::new());
        assert!(none.take(&client("a")).is_err());
        assert!(lock(&slots.taken).by_client.is_empty() && lock(&none.taken).by_client.is_empty());
    }
}

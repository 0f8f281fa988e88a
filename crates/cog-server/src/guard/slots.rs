use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use cog_json::Value;
use cog_spec::{Code, ErrorBody};

use super::{
    budgets::Client,
    drain::{Drain, InFlightGuard},
    refusal::{Reason, Refusal},
};

/// The slots for streams, limited per client and in total.
#[derive(Clone)]
pub(crate) struct Slots {
    taken: Arc<Mutex<Taken>>,
    per_client: usize,
    total: usize,
    drain: Drain,
}

/// The slots in use. Clients without one are not in the table.
#[derive(Default)]
struct Taken {
    by_client: HashMap<Client, usize>,
    total: usize,
}

/// A slot for one stream; free again when it is dropped.
pub(crate) struct Slot {
    taken: Arc<Mutex<Taken>>,
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

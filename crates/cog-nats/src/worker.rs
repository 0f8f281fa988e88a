//! The worker: fetches jobs and runs them until it is stopped.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::{
    HeaderMap, HeaderValue,
    jetstream::{Message, consumer::PullConsumer},
};
use bytes::Bytes;
use cog_json::ToJson as _;
use cog_run::Runtime;
use cog_spec::{Envelope, ErrorBody};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{JobId, NatsError, Queue, Refusals, handle::Handler};
use crate::nats;

/// The minimum and the maximum time before jobs are fetched again after an error.
const FETCH_AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The maximum number of jobs that are fetched together.
const MAX_FETCHED: usize = 64;

/// The time for the last acknowledgements, when the worker ends.
const FLUSH: Duration = Duration::from_secs(5);

/// Runs the jobs of a queue.
pub struct Worker {
    handler: Arc<Handler>,
    consumer: PullConsumer,
    places: Arc<Semaphore>,
    concurrency: usize,
}

/// Stops a worker. Clones stop the same one.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    drain: CancellationToken,
    abort: CancellationToken,
}

impl Stop {
    /// Fetches no more jobs; those that run finish.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Cancels the jobs that run. Other workers receive them at once.
    pub fn abort(&self) {
        self.drain.cancel();
        self.abort.cancel();
    }
}

impl Worker {
    /// Opens the consumer of a queue. At most `concurrency` jobs run together. A job that was delivered `max_deliveries` times
    /// is moved aside.
    ///
    /// # Errors
    /// [`NatsError::JetStream`].
    pub async fn open(
        queue: Queue,
        runtime: Runtime,
        concurrency: usize,
        max_deliveries: u64,
        stop: &Stop,
    ) -> Result<Self, NatsError> {
        let consumer = queue.consumer().await?;
        // The consumer may be older than these settings.
        let ack_wait = consumer.cached_info().config.ack_wait.min(queue.settings.ack_wait);
        let handler = Handler {
            queue,
            runtime,
            ack_wait,
            max_deliveries,
            running: Mutex::new(HashSet::new()),
            abort: stop.abort.clone(),
            counts: Counts::default(),
            refusals: Refusals::default(),
        };
        let concurrency = concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(concurrency));
        Ok(Self { handler: Arc::new(handler), consumer, places, concurrency })
    }

    /// Returns the maximum number of jobs that run together.
    pub fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// Runs jobs until it is stopped, and returns once none runs. Errors of the connection are logged, and the worker continues.
    pub async fn run(mut self, stop: &Stop) -> WorkerReport {
        let mut tasks = JoinSet::new();
        let mut wait = FETCH_AGAIN.0;
        while let Some(places) = self.places(&stop.drain).await {
            while tasks.try_join_next().is_some() {}
            let fetched = nats::fetch(&self.consumer, places, &stop.drain, |message, place| {
                let handling = Arc::clone(&self.handler).handle(message);
                tasks.spawn(async move {
                    handling.await;
                    drop(place);
                });
            });
            match fetched.await {
                Ok(()) => wait = FETCH_AGAIN.0,
                Err(error) => {
                    tracing::warn!(error, "cannot fetch jobs; trying again");
                    let restore = async {
                        self.restore().await;
                        tokio::time::sleep(wait).await;
                    };
                    tokio::select! {
                        () = stop.drain.cancelled() => {}
                        () = restore => {}
                    }
                    wait = (wait * 2).min(FETCH_AGAIN.1);
                }
            }
        }
        while tasks.join_next().await.is_some() {}
        // Without a connection this waits for ever.
        let flushed = tokio::time::timeout(FLUSH, self.handler.queue.client.flush()).await;
        if !matches!(flushed, Ok(Ok(()))) {
            tracing::warn!("the last acknowledgements may be lost, and their jobs are delivered again");
        }
        self.handler.counts.report()
    }

    /// Returns places for jobs; none after a stop. While the provider refuses this worker, it is one after a pause.
    async fn places(&self, stop: &CancellationToken) -> Option<Vec<OwnedSemaphorePermit>> {
        let Some(pause) = self.handler.refusals.pause() else {
            return nats::places(&self.places, MAX_FETCHED, stop).await;
        };
        tracing::warn!(?pause, "the provider refuses this worker: check its key and its account; it pauses");
        tokio::select! {
            () = stop.cancelled() => None,
            () = tokio::time::sleep(pause) => nats::places(&self.places, 1, stop).await,
        }
    }

    /// Creates the streams again where the server has lost them.
    async fn restore(&mut self) {
        let queue = &self.handler.queue;
        let restored = match queue.restore().await {
            Ok(()) => queue.consumer().await,
            Err(error) => Err(error),
        };
        match restored {
            Ok(consumer) => self.consumer = consumer,
            Err(error) => {
                let help = error.suggestion();
                tracing::warn!(%error, help, "the queue cannot be opened");
            }
        }
    }
}

// Jobs that cannot be run are moved aside, so that they do not come back for ever.

/// The header with the envelope of the job.
const ENVELOPE: &str = "Cog-Envelope";
/// The header with the number of times that the job was delivered.
const DELIVERIES: &str = "Cog-Deliveries";

/// The bytes of a message that are left for its other headers.
const RESERVED: usize = 1024;

/// Returns the text of an envelope, within a length: without its partial data, or with a part of the message.
fn header_text(envelope: &Envelope, room: usize) -> String {
    let text = envelope.to_json();
    let Some(error) = envelope.error().filter(|_| text.len() > room) else { return text };
    let short = |error: ErrorBody| Envelope::failure(error).to_json();
    let whole = short(error.clone());
    if whole.len() <= room {
        return whole;
    }
    short(ErrorBody::with_code(error.code.clone(), error.message.chars().take(200).collect::<String>()))
}

impl Queue {
    /// Publishes a job to the stream of failed jobs, as it was received and with its envelope in a header.
    pub(super) async fn move_aside(
        &self,
        message: &Message,
        id: Option<&JobId>,
        envelope: &Envelope,
        deliveries: u64,
    ) -> Result<(), NatsError> {
        let failed = |error: &dyn std::error::Error| NatsError::jet_stream("store a failed job", error);
        let mut headers = HeaderMap::new();
        if let Some(id) = id {
            headers.insert(async_nats::header::NATS_MESSAGE_ID, id.as_str());
        }
        let room = self.client.max_payload().saturating_sub(RESERVED);
        let text = header_text(envelope, room);
        let fits = text.len() + message.payload.len() <= room;
        let payload = if fits { message.payload.clone() } else { Bytes::new() };
        headers.insert(ENVELOPE, HeaderValue::from(text));
        headers.insert(DELIVERIES, deliveries.to_string().as_str());
        let sent = self.context.publish_with_headers(self.names.failed_subject(), headers, payload).await;
        sent.map_err(|error| failed(&error))?.await.map_err(|error| failed(&error)).map(drop)
    }
}

/// The number of jobs that a worker has handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerReport {
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs whose result is an error.
    pub failed: u64,
    /// Jobs that were moved aside.
    pub moved_aside: u64,
    /// Jobs that had a result already.
    pub repeated: u64,
}

/// The same while the worker runs.
#[derive(Debug, Default)]
pub(super) struct Counts([AtomicU64; 4]);

impl Counts {
    pub(super) fn add(&self, is_ok: bool) {
        self.increment(usize::from(!is_ok));
    }

    pub(super) fn aside(&self) {
        self.increment(2);
    }

    pub(super) fn repeat(&self) {
        self.increment(3);
    }

    fn increment(&self, index: usize) {
        if let Some(count) = self.0.get(index) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn report(&self) -> WorkerReport {
        let [succeeded, failed, moved_aside, repeated] = &self.0;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WorkerReport {
            succeeded: read(succeeded),
            failed: read(failed),
            moved_aside: read(moved_aside),
            repeated: read(repeated),
        }
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use cog_spec::{Code, Outcome};

    use super::*;

    #[test]
    fn envelope_is_shortened_to_the_room_of_a_message() {
        let mut envelope = Envelope::failure(ErrorBody::new(Code::RateLimited, "x".repeat(10_000)));
        let whole = envelope.to_json();
        assert_eq!(header_text(&envelope, whole.len()), whole);
        let partial = Value::from(serde_json::json!({ "a": "y".repeat(100_000) }));
        if let Outcome::Failure { partial_data, .. } = &mut envelope.outcome {
            *partial_data = Some(partial);
        }
        assert_eq!(header_text(&envelope, whole.len()), whole, "without the partial data");
        let short = header_text(&envelope, 2_000);
        assert!(short.len() <= 2_000 && short.contains("E4002"), "{short}");
    }
}

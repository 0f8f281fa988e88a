//! The worker: fetches jobs and runs them until it is stopped.

mod handler;

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::jetstream::{
    AckKind, Message,
    consumer::{PullConsumer, pull::Batch},
};
use cog_run::Runtime;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use self::handler::Handler;
use crate::{NatsError, Queue};

/// The minimum time before jobs are fetched again after an error.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
/// The maximum time before jobs are fetched again after an error.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// The maximum number of jobs that are fetched together.
const MAX_FETCHED: usize = 64;

/// The time for which the server waits for jobs.
const EXPIRES: Duration = Duration::from_secs(5);

/// The time for the last acknowledgements, when the worker ends.
const FLUSH: Duration = Duration::from_secs(5);

/// Runs the jobs of a queue.
pub struct Worker {
    handler: Arc<Handler>,
    consumer: PullConsumer,
    slots: Arc<Semaphore>,
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
    /// is moved to the stream of failed jobs.
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
        // The consumer may be older than these settings. A renewal that is too frequent does no harm; one that is late lets
        // another worker run the job too.
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
        let slots = Arc::new(Semaphore::new(concurrency));
        Ok(Self { handler: Arc::new(handler), consumer, slots, concurrency })
    }

    /// Returns the maximum number of jobs that run together.
    pub fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// Runs jobs until it is stopped, and returns once none runs. Errors of the connection are logged, and the worker continues.
    pub async fn run(mut self, stop: &Stop) -> WorkerReport {
        let mut tasks = JoinSet::new();
        let mut backoff = MIN_BACKOFF;
        while let Some(slots) = self.free_slots(&stop.drain).await {
            while tasks.try_join_next().is_some() {}
            let fetched = fetch(&self.consumer, slots, &stop.drain, |message, slot| {
                let handling = Arc::clone(&self.handler).handle(message);
                tasks.spawn(async move {
                    handling.await;
                    drop(slot);
                });
            });
            match fetched.await {
                Ok(()) => backoff = MIN_BACKOFF,
                Err(error) => {
                    tracing::warn!(error, "cannot fetch jobs; trying again");
                    tokio::select! {
                        () = stop.drain.cancelled() => {}
                        () = self.restore_after(backoff) => {}
                    }
                    backoff = (backoff * 2).min(MAX_BACKOFF);
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

    /// Waits until a job can run, and takes as many slots as are free, up to [`MAX_FETCHED`]. Returns none after a stop.
    ///
    /// While the provider refuses this worker, it takes one slot after a pause: it would end jobs faster than any other worker
    /// runs them, and fail the whole queue.
    async fn free_slots(&self, stop: &CancellationToken) -> Option<Vec<OwnedSemaphorePermit>> {
        let mut max = MAX_FETCHED;
        if let Some(pause) = self.handler.refusals.pause() {
            tracing::warn!(
                ?pause,
                "the provider refuses this worker: check its key and its account; it pauses"
            );
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(pause) => max = 1,
            }
        }
        let first = tokio::select! {
            () = stop.cancelled() => return None,
            slot = Arc::clone(&self.slots).acquire_owned() => slot.ok()?,
        };
        let mut slots = vec![first];
        while slots.len() < max {
            let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else { break };
            slots.push(slot);
        }
        Some(slots)
    }

    /// Creates the streams again where the server has lost them, and waits.
    async fn restore_after(&mut self, backoff: Duration) {
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
        tokio::time::sleep(backoff).await;
    }
}

/// Fetches at most one job for each slot, and starts each.
///
/// # Errors
/// The error of the client, as text.
async fn fetch(
    consumer: &PullConsumer,
    mut slots: Vec<OwnedSemaphorePermit>,
    stop: &CancellationToken,
    mut start: impl FnMut(Message, OwnedSemaphorePermit),
) -> Result<(), String> {
    // Never more than can run: a job that waits in this process is missing to other workers.
    let batch = consumer.batch().max_messages(slots.len()).expires(EXPIRES).messages();
    let mut batch = batch.await.map_err(|error| error.to_string())?;
    while let Some(slot) = slots.pop() {
        let message = tokio::select! {
            () = stop.cancelled() => {
                give_back(&mut batch).await;
                return Ok(());
            }
            message = batch.next() => message,
        };
        match message {
            Some(Ok(message)) => start(message, slot),
            Some(Err(error)) => return Err(error.to_string()),
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Returns the jobs that have arrived but are not started, so that other workers receive them at once.
async fn give_back(batch: &mut Batch) {
    while let Some(Some(Ok(message))) = batch.next().now_or_never() {
        if let Err(error) = message.ack_with(AckKind::Nak(None)).await {
            tracing::warn!(%error, "a job cannot be returned; it will be delivered again");
        }
    }
}

/// The number of jobs that a worker has handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerReport {
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs whose result is an error.
    pub failed: u64,
    /// Jobs that were moved to the stream of failed jobs.
    pub dead_letters: u64,
    /// Jobs that had a result already.
    pub repeated: u64,
}

/// The same while the worker runs.
#[derive(Debug, Default)]
struct Counts {
    succeeded: AtomicU64,
    failed: AtomicU64,
    dead_letters: AtomicU64,
    repeated: AtomicU64,
}

impl Counts {
    fn report(&self) -> WorkerReport {
        WorkerReport {
            succeeded: self.succeeded.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            dead_letters: self.dead_letters.load(Ordering::Relaxed),
            repeated: self.repeated.load(Ordering::Relaxed),
        }
    }
}

/// Counts one more.
fn increment(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

// How often the provider refused this worker in sequence: its key is wrong, or its account is used up.

/// The refusals in sequence after which the worker pauses, as many as end a batch in one process.
const MAX_REFUSALS: u32 = 20;
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The refusals since a job was answered.
#[derive(Debug, Default)]
struct Refusals(Mutex<RefusalState>);

#[derive(Debug, Default)]
struct RefusalState {
    count: u32,
    /// The pauses since then.
    pauses: u32,
}

impl Refusals {
    /// Records that the provider refused a job.
    fn refused(&self) {
        self.change(|state| state.count = state.count.saturating_add(1));
    }

    /// Records that the provider answered a job.
    fn answered(&self) {
        self.change(|state| *state = RefusalState::default());
    }

    /// Returns the time for which the worker takes no job, after which it takes one. The time doubles.
    fn pause(&self) -> Option<Duration> {
        self.change(|state| {
            let pause = MIN_PAUSE * 2_u32.saturating_pow(state.pauses.min(6));
            (state.count >= MAX_REFUSALS).then(|| {
                state.pauses += 1;
                pause.min(MAX_PAUSE)
            })
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut RefusalState) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_that_is_refused_pauses_longer_and_longer_until_it_is_answered() {
        let refusals = Refusals::default();
        (1..MAX_REFUSALS).for_each(|_| refusals.refused());
        assert_eq!(refusals.pause(), None);
        refusals.refused();
        let mut seconds = || refusals.pause().map(|pause| pause.as_secs());
        let pauses: Vec<_> = std::iter::repeat_with(&mut seconds).take(8).flatten().collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        refusals.answered();
        assert_eq!(refusals.pause(), None);
    }
}

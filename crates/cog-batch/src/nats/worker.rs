//! The worker: fetches jobs and runs them until it is stopped.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_nats::jetstream::consumer::PullConsumer;
use cog_run::Runtime;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{NatsError, Queue, WorkerReport, fetch, handle::Handler, refusals::Refusals, report::Counts};

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
            let fetched = fetch::fetch(&self.consumer, places, &stop.drain, |message, place| {
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
            return fetch::places(&self.places, MAX_FETCHED, stop).await;
        };
        tracing::warn!(?pause, "the provider refuses this worker: check its key and its account; it pauses");
        tokio::select! {
            () = stop.cancelled() => None,
            () = tokio::time::sleep(pause) => fetch::places(&self.places, 1, stop).await,
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

//! The way of one job: read, look for its result, run, store the result, acknowledge.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_nats::jetstream::{AckKind, Message};
use cog_batch::run_input;
use cog_json::Node;
use cog_module::Module;
use cog_run::{ModuleRef, RunOptions, Runtime};
use cog_spec::{Code, Envelope, ErrorBody};
use tokio_util::sync::CancellationToken;

use super::{Counts, Refusals, increment};
use crate::{
    Job, JobId, NatsError, Queue,
    job::{self, digest},
    queue::{self, ModuleWait, StoredResult},
};

/// The maximum delay before a job is delivered again.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// The delay between two attempts to store a result.
const STORE_AGAIN: Duration = Duration::from_secs(1);

/// The maximum delay before a job is delivered to another worker, because this one does not have its module.
const MAX_MODULE_DELAY: Duration = Duration::from_secs(4);
/// How often a job runs whose connection to the provider is cut or whose time is over. Each of these calls may be paid for.
const MAX_CUTS: u64 = 3;

/// The minimum time between two reports that a job still runs.
const MIN_RENEWAL: Duration = Duration::from_millis(100);

/// What the tasks of a worker share.
pub(super) struct Handler {
    pub(super) queue: Queue,
    pub(super) runtime: Runtime,
    /// The time after which the server delivers a job again.
    pub(super) ack_wait: Duration,
    pub(super) max_deliveries: u64,
    /// The jobs that run in this worker.
    pub(super) running: Mutex<HashSet<JobId>>,
    /// Cancelled when runs must end at once.
    pub(super) abort: CancellationToken,
    pub(super) counts: Counts,
    pub(super) refusals: Refusals,
}

/// A message with a valid id.
struct Delivery<'a> {
    message: &'a Message,
    id: JobId,
    digest: String,
    deliveries: u64,
}

/// Why another worker, or a later attempt, may have a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryReason {
    /// The provider cannot take the request now.
    Overload,
    /// The connection to the provider was cut, or the time is over.
    Cut,
    /// The provider rejects the key of this worker, or its account is used up.
    Refusal,
}

/// What the server does with a message that was handled.
enum Disposition {
    /// It removes the message: the job is done.
    Remove,
    /// It delivers the job again after this time.
    Redeliver(Duration),
}

impl Handler {
    /// Handles a message, and acknowledges it at the end.
    pub(super) async fn handle(self: Arc<Self>, message: Message) {
        let end = tokio::select! {
            end = self.outcome(&message) => end,
            () = self.abort.cancelled() => Disposition::Redeliver(Duration::ZERO),
        };
        let kind = match end {
            Disposition::Remove => AckKind::Ack,
            Disposition::Redeliver(Duration::ZERO) => AckKind::Nak(None),
            Disposition::Redeliver(delay) => AckKind::Nak(Some(delay)),
        };
        if let Err(error) = message.ack_with(kind).await {
            tracing::warn!(%error, "a job cannot be acknowledged; it will be delivered again");
        }
    }

    async fn outcome(&self, message: &Message) -> Disposition {
        let deliveries = message.info().map_or(1, |info| u64::try_from(info.delivered).unwrap_or(1));
        let Some(id) = JobId::from_headers(message.headers.as_ref()) else {
            let moved = self.dead_letter_without_result(message, None, &no_id(), deliveries).await;
            return self.or_redeliver(moved, None, deliveries);
        };
        // The server delivers a job again that this worker still runs, if a report came late.
        let Some(_running) = self.claim(&id) else { return Disposition::Redeliver(self.ack_wait) };
        let job = Delivery { message, digest: digest(&message.payload), id, deliveries };
        let ended = renewing(message, self.ack_wait, self.decide(&job)).await;
        self.or_redeliver(ended, Some(&job.id), deliveries)
    }

    /// Returns how the handling of a job ends; after an error of NATS it is delivered again.
    fn or_redeliver(
        &self,
        ended: Result<Disposition, NatsError>,
        id: Option<&JobId>,
        deliveries: u64,
    ) -> Disposition {
        ended.unwrap_or_else(|error| {
            tracing::warn!(job = id.map(JobId::as_str), %error, "a job will be delivered again");
            Disposition::Redeliver(self.delay(deliveries))
        })
    }

    /// Runs a job unless its result is stored.
    async fn decide(&self, delivery: &Delivery<'_>) -> Result<Disposition, NatsError> {
        match self.queue.result(&delivery.id).await? {
            Some(result) if result.job == delivery.digest => return self.repeat(delivery, &result).await,
            Some(_) => {
                let message = delivery.message;
                let id = &delivery.id;
                return self
                    .dead_letter_without_result(message, Some(id), &used_id(id), delivery.deliveries)
                    .await;
            }
            None => {}
        }
        let job = match Job::read(&delivery.message.payload, &self.queue.names) {
            Ok(job) => job,
            Err(error) => {
                let reply = job::reply_of(&delivery.message.payload, &self.queue.names);
                return self.dead_letter(delivery, reply.as_deref(), &Envelope::failure(error)).await;
            }
        };
        let reply = job.reply.clone();
        let waited = match delivery.deliveries {
            0 | 1 => ModuleWait::default(),
            _ => self.queue.module_wait(&delivery.id).await?,
        };
        // Deliveries to workers that do not have the module are no attempts.
        let attempts = delivery.deliveries.saturating_sub(waited.deliveries);
        // A job that ends its worker never gets a result: only the number of deliveries shows it.
        if attempts > self.max_deliveries {
            return self.dead_letter(delivery, reply.as_deref(), &never_done(attempts - 1)).await;
        }
        let module = match self.module(&job).await {
            Err(error) if error.code == Code::ModuleNotFound.into() => {
                return self.wait_for_module(delivery, waited, reply.as_deref(), error).await;
            }
            module => module,
        };
        let (envelope, retry) = self.run(job, module).await;
        let Some(retry) = retry else {
            self.finish(delivery, reply.as_deref(), &envelope).await;
            increment(if envelope.is_ok() { &self.counts.succeeded } else { &self.counts.failed });
            return Ok(Disposition::Remove);
        };
        if attempts >= retry.deliveries(self.max_deliveries) {
            return self.dead_letter(delivery, reply.as_deref(), &envelope).await;
        }
        let delay = retry_after(&envelope).max(self.delay(delivery.deliveries));
        tracing::warn!(job = %delivery.id, ?delay, code = code(&envelope), "{}; the job returns to the queue", retry.reason());
        Ok(Disposition::Redeliver(delay))
    }

    /// Returns a job to the queue, for a worker that has its module: a new version is not on all machines at the same time. After the
    /// time of the settings, no worker is expected to have it.
    async fn wait_for_module(
        &self,
        delivery: &Delivery<'_>,
        waited: ModuleWait,
        reply: Option<&str>,
        error: ErrorBody,
    ) -> Result<Disposition, NatsError> {
        let id = &delivery.id;
        if waited.time >= self.queue.settings.module_wait {
            return self.dead_letter(delivery, reply, &Envelope::failure(error)).await;
        }
        let delay = self.delay(waited.deliveries + 1).min(MAX_MODULE_DELAY);
        let waited = ModuleWait { deliveries: waited.deliveries + 1, time: waited.time + delay };
        self.queue.set_module_wait(id, waited).await?;
        tracing::warn!(job = %id, ?delay, "this worker does not have the module; the job returns to the queue");
        Ok(Disposition::Redeliver(delay))
    }

    async fn run(&self, job: Job, module: Result<Arc<Module>, ErrorBody>) -> (Envelope, Option<RetryReason>) {
        let module = match module {
            Ok(module) => module,
            Err(error) => return (Envelope::failure(error), None),
        };
        // Whoever adds a job is a client of this worker's operator, and may lower the limit only.
        let max_timeout = self.runtime.timeout();
        let timeout = job.options.timeout.map(|timeout| timeout.min(max_timeout));
        let options = RunOptions { timeout, ..job.options };
        let envelope = self.runtime.run(&module, run_input(job.input), options).await;
        let retry = RetryReason::of(&envelope);
        match retry {
            Some(RetryReason::Refusal) => self.refusals.refused(),
            Some(_) => {}
            None => self.refusals.answered(),
        }
        (envelope, retry)
    }

    /// Returns the module of a job, in the version that it names.
    async fn module(&self, job: &Job) -> Result<Arc<Module>, ErrorBody> {
        let module = self.runtime.load_async(ModuleRef::Name(&job.module)).await?;
        let found = &module.manifest.version;
        match &job.version {
            Some(version) if version != found => Err(other_version(&job.module, version, found)),
            _ => Ok(module),
        }
    }

    /// Stores a result until the server confirms it, because it is paid for.
    async fn finish(&self, delivery: &Delivery<'_>, reply: Option<&str>, envelope: &Envelope) {
        let max_bytes = self.queue.client.max_payload();
        let result = queue::write(Some(&delivery.id), &delivery.digest, envelope, max_bytes);
        // Without an end: giving up would return the job to the queue, and the model would be paid again.
        while let Err(error) = self.queue.store(&delivery.id, result.clone()).await {
            tracing::warn!(job = %delivery.id, %error, "storing the result again");
            tokio::time::sleep(STORE_AGAIN).await;
            // The server may have lost the bucket.
            let _ = self.queue.restore().await;
        }
        if let Some(reply) = reply {
            self.reply(reply, Some(&delivery.id), result).await;
        }
    }

    /// Publishes the result of a job that is done, whose acknowledgement was lost.
    async fn repeat(&self, delivery: &Delivery<'_>, result: &StoredResult) -> Result<Disposition, NatsError> {
        let job = Job::read(&delivery.message.payload, &self.queue.names).ok();
        if let Some(reply) = job.and_then(|job| job.reply) {
            self.reply(&reply, Some(&delivery.id), result.text.clone()).await;
        }
        increment(&self.counts.repeated);
        Ok(Disposition::Remove)
    }

    /// Publishes the result of a job.
    async fn reply(&self, subject: &str, id: Option<&JobId>, result: bytes::Bytes) {
        let mut headers = async_nats::HeaderMap::new();
        if let Some(id) = id {
            headers.insert(async_nats::header::NATS_MESSAGE_ID, id.as_str());
        }
        let sent = self.queue.client.publish_with_headers(subject.to_owned(), headers, result).await;
        if let Err(error) = sent {
            tracing::warn!(subject, %error, "a result cannot be published");
        }
    }

    /// Moves a job to the stream of failed jobs, and stores its envelope as the result.
    async fn dead_letter(
        &self,
        delivery: &Delivery<'_>,
        reply: Option<&str>,
        envelope: &Envelope,
    ) -> Result<Disposition, NatsError> {
        let message = delivery.message;
        let id = &delivery.id;
        self.queue.dead_letter(message, Some(id), envelope, delivery.deliveries).await?;
        self.finish(delivery, reply, envelope).await;
        increment(&self.counts.dead_letters);
        tracing::warn!(job = %id, code = code(envelope), "a job was dead-lettered");
        Ok(Disposition::Remove)
    }

    /// Moves a job whose id is missing, or has the result of another job. Only a reply can say so.
    async fn dead_letter_without_result(
        &self,
        message: &Message,
        id: Option<&JobId>,
        envelope: &Envelope,
        deliveries: u64,
    ) -> Result<Disposition, NatsError> {
        // Without the id: the stream would drop a second message with it as a duplicate.
        self.queue.dead_letter(message, None, envelope, deliveries).await?;
        if let Some(reply) = job::reply_of(&message.payload, &self.queue.names) {
            let max_bytes = self.queue.client.max_payload();
            let result = queue::write(id, &digest(&message.payload), envelope, max_bytes);
            self.reply(&reply, id, result).await;
        }
        increment(&self.counts.dead_letters);
        tracing::warn!(job = id.map(JobId::as_str), code = code(envelope), "a job was dead-lettered");
        Ok(Disposition::Remove)
    }

    /// Returns the delay before the next delivery: it doubles, with a random part.
    fn delay(&self, deliveries: u64) -> Duration {
        let doubled = Duration::from_secs(1)
            * 2_u32.saturating_pow(u32::try_from(deliveries).unwrap_or(6).clamp(1, 6) - 1);
        doubled.min(MAX_DELAY).mul_f64(fastrand::f64().mul_add(0.5, 0.75))
    }

    /// Registers a job as running; none when it runs already.
    fn claim(&self, id: &JobId) -> Option<Running<'_>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(id.clone()).then(|| Running { handler: self, id: id.clone() })
    }
}

/// A job that runs.
struct Running<'a> {
    handler: &'a Handler,
    id: JobId,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.handler.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Waits for a future, and reports to the server meanwhile that the job still runs: three times per `ack_wait`, so that one
/// report may be lost.
async fn renewing<T>(message: &Message, ack_wait: Duration, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep((ack_wait / 3).max(MIN_RENEWAL)) => {
                if let Err(error) = message.ack_with(AckKind::Progress).await {
                    tracing::debug!(%error, "cannot report that a job still runs");
                }
            }
        }
    }
}

impl RetryReason {
    /// Returns what the provider has against the request, if it did not answer it.
    fn of(envelope: &Envelope) -> Option<Self> {
        let error = envelope.error()?;
        let cuts = [Code::StreamInterrupted, Code::StreamTimeout, Code::Timeout];
        if cuts.iter().any(|code| error.has_failed_with(*code)) && error.recoverable != Some(false) {
            return Some(Self::Cut);
        }
        if ![Code::ProviderUnavailable, Code::RateLimited].iter().any(|code| error.has_failed_with(*code)) {
            return None;
        }
        match error.detail("reason").and_then(Node::as_str) {
            Some("key" | "quota") => Some(Self::Refusal),
            _ => (error.recoverable != Some(false)).then_some(Self::Overload),
        }
    }

    /// Returns the deliveries after which a job is moved to the stream of failed jobs.
    fn deliveries(self, max: u64) -> u64 {
        if self == Self::Cut { max.min(MAX_CUTS) } else { max }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Overload => "the provider is overloaded or not reachable",
            Self::Refusal => "the provider refuses this worker",
            Self::Cut => "the provider did not answer",
        }
    }
}

/// Returns the time after which the provider accepts requests again.
fn retry_after(envelope: &Envelope) -> Duration {
    let ms = envelope.error().and_then(|error| error.detail("retry_after_ms")?.as_u64());
    Duration::from_millis(ms.unwrap_or(0)).min(MAX_DELAY)
}

/// Returns the code of an error for the log. The message may be the model's or the vendor's, and is in the stored envelope.
fn code(envelope: &Envelope) -> Option<&str> {
    envelope.error().map(|error| error.code.as_str())
}

fn no_id() -> Envelope {
    let message = "the job has no id: the header Nats-Msg-Id is missing or not valid";
    let help = "Publish the job with the header Nats-Msg-Id: at most 128 letters, digits and -_=.";
    Envelope::failure(ErrorBody::new(Code::MissingRequiredField, message).suggest(help))
}

fn used_id(id: &JobId) -> Envelope {
    let message = format!("the id `{id}` has the result of another job");
    let help = "Use a new id for each job.";
    Envelope::failure(ErrorBody::new(Code::SemanticConflict, message).suggest(help))
}

fn other_version(module: &str, version: &str, found: &str) -> ErrorBody {
    let message =
        format!("the worker has version {found} of the module `{module}`, and the job is for {version}");
    ErrorBody::new(Code::ModuleNotFound, message)
        .suggest("Install the same version of the module for all workers.")
}

fn never_done(deliveries: u64) -> Envelope {
    let message = format!("the job was delivered {deliveries} times, and no worker has stored a result");
    let help = "Check the logs of the workers for this job: it may end them.";
    Envelope::failure(ErrorBody::new(Code::InternalError, message).suggest(help))
}

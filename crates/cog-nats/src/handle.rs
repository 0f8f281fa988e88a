//! The way of one job: read, look for its result, run, store the result, acknowledge.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_nats::jetstream::{AckKind, Message};
use cog_module::Module;
use cog_run::Runtime;
use cog_spec::{Code, Envelope, ErrorBody};
use tokio_util::sync::CancellationToken;

use super::{
    Job, JobId, NatsError, Queue, Refusals,
    job::{self, digest},
    queue::{self, StoredResult},
    worker::Counts,
};
use crate::run::run_input;

/// The maximum delay before a job is delivered again.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// The delay between two attempts to store a result.
const STORE_AGAIN: Duration = Duration::from_secs(1);

/// The deliveries after which a job whose module a worker does not have is done. Another worker may have it: a new version is not
/// on all machines at the same time.
const WITHOUT_MODULE: u64 = 5;

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

/// A received job.
struct Received<'a> {
    message: &'a Message,
    id: JobId,
    digest: String,
    deliveries: u64,
}

/// Why another worker, or a later attempt, may have a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// The provider cannot take the request now.
    Overload,
    /// The provider rejects the key of this worker, or its account is used up.
    Refusal,
    /// This worker does not have the module, or another version of it.
    NoModule,
}

/// How the handling of a message ends.
enum End {
    /// The job is done.
    Ack,
    /// The job is to be delivered again after this time.
    Again(Duration),
}

impl Handler {
    /// Handles a message, and acknowledges it at the end.
    pub(super) async fn handle(self: Arc<Self>, message: Message) {
        let end = tokio::select! {
            end = self.outcome(&message) => end,
            () = self.abort.cancelled() => End::Again(Duration::ZERO),
        };
        let kind = match end {
            End::Ack => AckKind::Ack,
            End::Again(Duration::ZERO) => AckKind::Nak(None),
            End::Again(delay) => AckKind::Nak(Some(delay)),
        };
        if let Err(error) = message.ack_with(kind).await {
            tracing::warn!(%error, "a job cannot be acknowledged; it will be delivered again");
        }
    }

    async fn outcome(&self, message: &Message) -> End {
        let deliveries = message.info().map_or(1, |info| u64::try_from(info.delivered).unwrap_or(1));
        let Some(id) = JobId::from_headers(message.headers.as_ref()) else {
            let moved = self.aside_without_result(message, None, &no_id(), deliveries).await;
            return self.or_again(moved, None, deliveries);
        };
        let Some(_running) = self.claim(&id) else { return End::Again(self.ack_wait) };
        let job = Received { message, digest: digest(&message.payload), id, deliveries };
        let ended = renewing(message, self.ack_wait, self.decide(&job)).await;
        self.or_again(ended, Some(&job.id), deliveries)
    }

    /// Returns how the handling of a job ends; after an error of NATS it is delivered again.
    fn or_again(&self, ended: Result<End, NatsError>, id: Option<&JobId>, deliveries: u64) -> End {
        ended.unwrap_or_else(|error| {
            tracing::warn!(job = id.map(JobId::as_str), %error, "a job will be delivered again");
            End::Again(self.delay(deliveries))
        })
    }

    /// Runs a job unless its result is stored.
    async fn decide(&self, received: &Received<'_>) -> Result<End, NatsError> {
        match self.queue.result(&received.id).await? {
            Some(result) if result.job == received.digest => return self.repeat(received, &result).await,
            Some(_) => {
                let (message, id) = (received.message, &received.id);
                return self.aside_without_result(message, Some(id), &used_id(id), received.deliveries).await;
            }
            None => {}
        }
        let job = match Job::read(&received.message.payload, &self.queue.names) {
            Ok(job) => job,
            Err(error) => {
                let reply = job::reply_of(&received.message.payload, &self.queue.names);
                return self.aside(received, reply.as_deref(), &Envelope::failure(error)).await;
            }
        };
        let reply = job.reply.clone();
        if received.deliveries > self.max_deliveries {
            return self.aside(received, reply.as_deref(), &never_done(received.deliveries - 1)).await;
        }
        let (envelope, obstacle) = self.run(job).await;
        let Some(obstacle) = obstacle else {
            self.finish(received, reply.as_deref(), &envelope).await;
            self.counts.add(envelope.is_ok());
            return Ok(End::Ack);
        };
        if received.deliveries >= obstacle.deliveries(self.max_deliveries) {
            return self.aside(received, reply.as_deref(), &envelope).await;
        }
        let delay = retry_after(&envelope).max(self.delay(received.deliveries));
        tracing::warn!(job = %received.id, ?delay, code = code(&envelope), "{}; the job returns to the queue", obstacle.reason());
        Ok(End::Again(delay))
    }

    async fn run(&self, job: Job) -> (Envelope, Option<Obstacle>) {
        let module = match self.module(&job).await {
            Ok(module) => module,
            Err(error) => {
                let is_missing = error.code == Code::ModuleNotFound.into();
                return (Envelope::failure(error), is_missing.then_some(Obstacle::NoModule));
            }
        };
        let envelope = self.runtime.execute(&module, run_input(job.input), job.options).await;
        let obstacle = Obstacle::of(&envelope);
        match obstacle {
            Some(Obstacle::Refusal) => self.refusals.refused(),
            Some(_) => {}
            None => self.refusals.answered(),
        }
        (envelope, obstacle)
    }

    /// Returns the module of a job, in the version that it names.
    async fn module(&self, job: &Job) -> Result<Arc<Module>, ErrorBody> {
        let module = self.runtime.load_name_async(&job.module).await?;
        let found = &module.manifest.version;
        match &job.version {
            Some(version) if version != found => Err(other_version(&job.module, version, found)),
            _ => Ok(module),
        }
    }

    /// Stores a result until the server confirms it, because it is paid for.
    async fn finish(&self, received: &Received<'_>, reply: Option<&str>, envelope: &Envelope) {
        let max_bytes = self.queue.client.max_payload();
        let result = queue::write(Some(&received.id), &received.digest, envelope, max_bytes);
        while let Err(error) = self.queue.store(&received.id, result.clone()).await {
            tracing::warn!(job = %received.id, %error, "storing the result again");
            tokio::time::sleep(STORE_AGAIN).await;
            let _ = self.queue.restore().await; // the server may have lost the bucket
        }
        if let Some(reply) = reply {
            self.reply(reply, Some(&received.id), result).await;
        }
    }

    /// Publishes the result of a job that is done, whose acknowledgement was lost.
    async fn repeat(&self, received: &Received<'_>, result: &StoredResult) -> Result<End, NatsError> {
        let job = Job::read(&received.message.payload, &self.queue.names).ok();
        if let Some(reply) = job.and_then(|job| job.reply) {
            self.reply(&reply, Some(&received.id), result.text.clone()).await;
        }
        self.counts.repeat();
        Ok(End::Ack)
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

    /// Moves a job aside, and stores its envelope as the result.
    async fn aside(
        &self,
        received: &Received<'_>,
        reply: Option<&str>,
        envelope: &Envelope,
    ) -> Result<End, NatsError> {
        let (message, id) = (received.message, &received.id);
        self.queue.move_aside(message, Some(id), envelope, received.deliveries).await?;
        self.finish(received, reply, envelope).await;
        self.counts.aside();
        tracing::warn!(job = %id, code = code(envelope), "a job was moved aside");
        Ok(End::Ack)
    }

    /// Moves a job aside whose id is missing, or has the result of another job. Only a reply can say so.
    async fn aside_without_result(
        &self,
        message: &Message,
        id: Option<&JobId>,
        envelope: &Envelope,
        deliveries: u64,
    ) -> Result<End, NatsError> {
        self.queue.move_aside(message, None, envelope, deliveries).await?;
        if let Some(reply) = job::reply_of(&message.payload, &self.queue.names) {
            let max_bytes = self.queue.client.max_payload();
            let result = queue::write(id, &digest(&message.payload), envelope, max_bytes);
            self.reply(&reply, id, result).await;
        }
        self.counts.aside();
        tracing::warn!(job = id.map(JobId::as_str), code = code(envelope), "a job was moved aside");
        Ok(End::Ack)
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

/// Waits for a future, and reports to the server meanwhile that the job still runs.
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

impl Obstacle {
    /// Returns what the provider has against the request, if it did not answer it.
    fn of(envelope: &Envelope) -> Option<Self> {
        let error = envelope.error()?;
        if ![Code::ProviderUnavailable.into(), Code::RateLimited.into()].contains(&error.code) {
            return None;
        }
        let reason = error.details.as_ref().and_then(|details| details.get("reason")?.as_str());
        match reason {
            Some("key" | "quota") => Some(Self::Refusal),
            _ => (error.recoverable != Some(false)).then_some(Self::Overload),
        }
    }

    /// Returns the deliveries after which a job is moved aside.
    fn deliveries(self, max: u64) -> u64 {
        if self == Self::NoModule { max.min(WITHOUT_MODULE) } else { max }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Overload => "the provider is overloaded or not reachable",
            Self::Refusal => "the provider refuses this worker",
            Self::NoModule => "this worker does not have the module",
        }
    }
}

/// Returns the time after which the provider accepts requests again.
fn retry_after(envelope: &Envelope) -> Duration {
    let details = envelope.error().and_then(|error| error.details.as_ref());
    let ms = details.and_then(|details| details.get("retry_after_ms")?.as_u64());
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

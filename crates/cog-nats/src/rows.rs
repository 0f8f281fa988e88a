//! The rows of a batch as jobs.
//!
//! A job is not added again as long as it is in the queue or its result is stored: its id comes from the batch and its row, and
//! its subject has room for one job.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_nats::Subscriber;
use bytes::Bytes;
use cog_batch::{RowFuture, RowHash, Runner};
use cog_json::{Node, Value};
use cog_run::{RunInput, RunOptions};
use cog_spec::{Code, Envelope, ErrorBody, Manifest};
use futures_util::StreamExt as _;
use tokio::time::sleep;

use crate::{Job, JobId, NatsError, Queue, StoredResult, job::digest, queue::AddOutcome};

/// The time after which the result of a job is looked for, in case its message is lost.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// The time after which a job that is neither in the queue nor done is added again.
const MISSING: Duration = Duration::from_secs(2);
/// The minimum time before a failed operation is tried again.
const MIN_BACKOFF: Duration = Duration::from_millis(500);
/// The maximum time before a failed operation is tried again.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Runs rows as jobs of a queue.
pub struct NatsRows {
    queue: Queue,
    batch: String,
    module: String,
    version: String,
    options: RunOptions,
    retries_failed: bool,
    trouble: Mutex<Option<String>>,
    workers: WorkerWatch,
    restoring: tokio::sync::Mutex<()>,
}

/// A row as a job.
struct RowJob {
    id: JobId,
    text: Bytes,
    digest: String,
    reply: String,
}

/// What is known about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobState {
    /// Nothing yet.
    Unknown,
    /// It was in the queue.
    Queued,
    /// It was neither in the queue nor done.
    Missing,
}

/// What looking for the result of a job has shown.
enum Lookup {
    /// Its result.
    Result(StoredResult),
    /// Its id belongs to a job that does not count.
    IdInUse,
    /// It is in the queue.
    Queued,
}

impl NatsRows {
    /// Creates the runner of a batch. `batch` is the beginning of the ids of its jobs, which run only with this version of the
    /// module. With `retries_failed`, a stored result counts only if it is not an error.
    #[must_use]
    pub fn new(
        queue: Queue,
        batch: &str,
        module: &Manifest,
        options: RunOptions,
        retries_failed: bool,
    ) -> Self {
        Self {
            queue,
            batch: batch.to_owned(),
            module: module.name.clone(),
            version: module.version.clone(),
            options,
            retries_failed,
            trouble: Mutex::default(),
            workers: WorkerWatch::new(),
            restoring: tokio::sync::Mutex::default(),
        }
    }

    async fn envelope(&self, row: u64, hash: RowHash, input: &RunInput) -> Envelope {
        let mut attempt = 0_u64;
        loop {
            let Some(job) = self.job(row, hash, attempt, input) else {
                return Envelope::failure(ErrorBody::new(Code::InternalError, "the row has no id of a job"));
            };
            match self.result(&job).await {
                Ok(Some(result)) => {
                    self.workers.has_result();
                    return read(&job.id, &result);
                }
                Ok(None) => attempt += 1,
                Err(error) => {
                    let body = ErrorBody::new(error.code(), error.to_string());
                    return Envelope::failure(body.suggest(error.suggestion()));
                }
            }
        }
    }

    fn job(&self, row: u64, hash: RowHash, attempt: u64, input: &RunInput) -> Option<RowJob> {
        let id = JobId::new(format!("{}.{row}.{:08x}.{attempt}", self.batch, hash.to_u32()))?;
        let mut job = Job::new(&self.module, value(input));
        job.version = Some(self.version.clone());
        job.options = self.options.clone();
        let reply = self.queue.names.reply_subject(id.as_str());
        job.reply = Some(reply.clone());
        let text = job.write();
        Some(RowJob { digest: digest(&text), id, text, reply })
    }

    /// Returns the result of a job, which is added unless it was added before. None if its id cannot be used.
    async fn result(&self, job: &RowJob) -> Result<Option<StoredResult>, NatsError> {
        // Before the job is added: a worker may answer at once.
        let replies = self.queue.client.subscribe(job.reply.clone()).await;
        let mut replies = replies.map_err(|error| NatsError::jet_stream("wait for results", &error))?;
        let mut state = JobState::Unknown;
        let mut backoff = MIN_BACKOFF;
        loop {
            let pause = match self.look(job, &mut state).await {
                Ok(Lookup::Result(result)) => return Ok(Some(result)),
                Ok(Lookup::IdInUse) => return Ok(None),
                Ok(Lookup::Queued) => {
                    backoff = MIN_BACKOFF;
                    self.set_trouble(None);
                    self.workers.look(&self.queue).await;
                    if state == JobState::Missing { MISSING } else { LOOK_AGAIN }
                }
                Err(error) if error.is_temporary() => {
                    self.set_trouble(Some(format!("{error}; trying again")));
                    self.restore().await;
                    let pause = backoff;
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                    pause
                }
                Err(error) => return Err(error),
            };
            // A reply can be lost, so the bucket is looked at too; at random times, since all rows began at once.
            tokio::select! {
                result = reply(&mut replies, job) => return Ok(Some(result)),
                () = sleep(pause.mul_f64(fastrand::f64().mul_add(0.5, 0.75))) => {}
            }
        }
    }

    /// Looks for the result of a job, and adds the job if it is neither done nor in the queue.
    async fn look(&self, job: &RowJob, state: &mut JobState) -> Result<Lookup, NatsError> {
        let before = *state;
        // In this order: a job leaves the queue after its result is stored.
        let is_queued = before != JobState::Unknown && self.queue.has_job(&job.id).await?;
        if let Some(result) = self.queue.result(&job.id).await? {
            let counts = before != JobState::Unknown || !self.retries_failed || is_ok(&result);
            let is_own = result.job == job.digest && counts;
            return Ok(if is_own { Lookup::Result(result) } else { Lookup::IdInUse });
        }
        *state = match before {
            _ if is_queued => JobState::Queued,
            // Another server of a cluster may have the result a moment later.
            JobState::Queued => JobState::Missing,
            JobState::Unknown | JobState::Missing => {
                // An addition that fails may have been stored.
                *state = JobState::Missing;
                match self.queue.add_once(&job.id, job.text.clone()).await? {
                    AddOutcome::Duplicate if before == JobState::Missing => return Ok(Lookup::IdInUse),
                    AddOutcome::New | AddOutcome::Duplicate => JobState::Queued,
                }
            }
        };
        Ok(Lookup::Queued)
    }

    /// Creates the streams again where the server has lost them. One row does it for all.
    async fn restore(&self) {
        if let Ok(_restoring) = self.restoring.try_lock() {
            let _ = self.queue.restore().await;
        }
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

impl Runner for NatsRows {
    fn run<'a>(&'a self, row: u64, hash: RowHash, input: &'a RunInput) -> RowFuture<'a> {
        Box::pin(self.envelope(row, hash, input))
    }

    fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let absent = "no worker takes jobs; start one with `cog worker --nats`";
        trouble.or_else(|| self.workers.is_absent().then(|| absent.to_owned()))
    }
}

/// Waits until the result of the job is published.
async fn reply(replies: &mut Subscriber, job: &RowJob) -> StoredResult {
    while let Some(message) = replies.next().await {
        if let Some(result) = StoredResult::read(message.payload).filter(|result| result.job == job.digest) {
            return result;
        }
    }
    std::future::pending().await
}

/// Returns the input of a job: a string is the text field of the module.
fn value(input: &RunInput) -> Value {
    match input {
        RunInput::Json(value) => value.clone(),
        RunInput::Args(text) | RunInput::ArgsWith(text, _) => {
            Value::from(serde_json::Value::from(text.as_str()))
        }
        _ => Value::default(),
    }
}

fn is_ok(result: &StoredResult) -> bool {
    result.envelope.get("ok").and_then(Node::as_bool) == Some(true)
}

fn read(id: &JobId, result: &StoredResult) -> Envelope {
    Envelope::read(result.envelope.node()).unwrap_or_else(|| {
        let message = format!("the result of the job {id} is not an envelope");
        let help = "Run workers of the same version.";
        Envelope::failure(ErrorBody::new(Code::InternalError, message).suggest(help))
    })
}

// Whether a worker takes the jobs of a queue.

/// The time without a result after which workers are looked for, and between two of these times.
const QUIET: Duration = Duration::from_secs(5);

/// Notices that no worker takes jobs.
struct WorkerWatch(Mutex<State>);

struct State {
    next: Instant,
    is_absent: bool,
}

impl State {
    fn new() -> Self {
        Self { next: Instant::now() + QUIET, is_absent: false }
    }
}

impl WorkerWatch {
    fn new() -> Self {
        Self(Mutex::new(State::new()))
    }

    /// Notes that a result has arrived.
    fn has_result(&self) {
        *self.state() = State::new();
    }

    /// Looks for workers. Of the rows that wait, one looks for all.
    async fn look(&self, queue: &Queue) {
        if !self.begin() {
            return;
        }
        if let Ok(has_workers) = queue.has_workers().await {
            self.state().is_absent = !has_workers;
        }
    }

    /// Returns whether it is time to look.
    fn begin(&self) -> bool {
        let mut state = self.state();
        let is_due = state.next <= Instant::now();
        if is_due {
            state.next = Instant::now() + QUIET;
        }
        is_due
    }

    /// Returns whether no worker took jobs when they were looked for.
    fn is_absent(&self) -> bool {
        self.state().is_absent
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

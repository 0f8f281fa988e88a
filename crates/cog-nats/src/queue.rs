//! The streams and the bucket of the jobs. They are created where they are missing; those that exist stay as the operator has set them.

use std::time::{Duration, UNIX_EPOCH};

use async_nats::{
    Client, HeaderMap, HeaderValue,
    header::{self, NATS_MESSAGE_ID},
    jetstream::{
        self, Context, Message,
        consumer::{AckPolicy, PullConsumer, pull},
        context::{ConsumerInfoErrorKind, PublishErrorKind},
        kv::{self, CreateErrorKind, Store},
        message::StreamMessage,
        stream::{self, DiscardPolicy, LastRawMessageErrorKind, RetentionPolicy, StorageType, Stream},
    },
};
use bytes::Bytes;
use cog_json::{ToJson as _, Value, Writer};
use cog_spec::{Code, Envelope, ErrorBody};
use futures_util::TryStreamExt as _;
use serde::Serialize;

use crate::{Job, JobId, Names, NatsError};

/// The name of the consumer that all workers share.
const CONSUMER: &str = "workers";
/// The time within which the server refuses a second job with the same id.
const DUPLICATES: Duration = Duration::from_secs(60 * 60);

/// The settings of streams that are created.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueueSettings {
    /// The number of servers that store each message: 1 by default, 3 in a cluster.
    pub replicas: usize,
    /// The time after which a job is delivered again, unless its worker reports that it still runs: 30 s by default.
    pub ack_wait: Duration,
    /// The time for which a job is delivered again to workers that do not have its module: 15 minutes by default.
    pub module_wait: Duration,
    /// The time for which results and failed jobs are stored: one day by default.
    pub max_age: Duration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            replicas: 1,
            ack_wait: Duration::from_secs(30),
            module_wait: Duration::from_secs(15 * 60),
            max_age: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// How a job was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddOutcome {
    /// It was not in the queue.
    New,
    /// It is in the queue, or was added within an hour.
    Duplicate,
}

/// The jobs and their results.
#[derive(Debug, Clone)]
pub struct Queue {
    pub(crate) client: Client,
    pub(crate) context: Context,
    pub(crate) names: Names,
    pub(crate) settings: QueueSettings,
    pub(crate) results: Store,
}

impl Queue {
    /// Opens the streams, and creates those that are missing.
    ///
    /// # Errors
    /// [`NatsError::JetStream`].
    pub async fn open(client: Client, names: Names, settings: QueueSettings) -> Result<Self, NatsError> {
        let context = jetstream::new(client.clone());
        let results = create(&context, &names, &settings).await?;
        Ok(Self { client, context, names, settings, results })
    }

    /// Creates again what is missing, because the server has lost it.
    ///
    /// # Errors
    /// As [`Queue::open`].
    pub(crate) async fn restore(&self) -> Result<(), NatsError> {
        create(&self.context, &self.names, &self.settings).await.map(drop)
    }

    /// Adds a job, unless one with this id was added within an hour. `group` is the last part of its subject.
    ///
    /// # Errors
    /// [`NatsError::JetStream`] if the server does not confirm that it has stored the job, [`NatsError::TooLarge`].
    pub async fn add(&self, id: &JobId, group: &str, job: &Job) -> Result<(), NatsError> {
        self.publish(id, group, job.write(), HeaderMap::new()).await.map(drop)
    }

    /// Adds a job with a subject of its own, unless it is in the queue or was added within an hour.
    pub(crate) async fn add_once(&self, id: &JobId, text: Bytes) -> Result<AddOutcome, NatsError> {
        let mut headers = HeaderMap::new();
        // A subject without a message has this number.
        headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, "0");
        self.publish(id, id.as_str(), text, headers).await
    }

    pub(crate) async fn publish(
        &self,
        id: &JobId,
        group: &str,
        text: Bytes,
        mut headers: HeaderMap,
    ) -> Result<AddOutcome, NatsError> {
        let operation = format!("add the job {id}");
        let limit = self.client.max_payload();
        // The server counts the headers too.
        if text.len() + 1024 > limit {
            return Err(NatsError::TooLarge { bytes: text.len(), limit });
        }
        headers.insert(header::NATS_MESSAGE_ID, id.as_str());
        let sent = self.context.publish_with_headers(self.names.job_subject(group), headers, text).await;
        let stored = sent.map_err(NatsError::cannot(&operation))?.await;
        match stored {
            Ok(stored) if stored.duplicate => Ok(AddOutcome::Duplicate),
            Ok(_) => Ok(AddOutcome::New),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(AddOutcome::Duplicate),
            Err(error) => Err(NatsError::jet_stream(operation, &error)),
        }
    }

    /// Returns whether a job that has a subject of its own is in the queue, also while it runs.
    pub(crate) async fn has_job(&self, id: &JobId) -> Result<bool, NatsError> {
        let operation = format!("look for the job {id}");
        let stream = self.context.get_stream_no_info(self.names.jobs()).await;
        let stream = stream.map_err(NatsError::cannot(&operation))?;
        match stream.get_last_raw_message_by_subject(&self.names.job_subject(id.as_str())).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(false),
            Err(error) => Err(NatsError::jet_stream(operation, &error)),
        }
    }

    /// Returns the number of jobs that are not acknowledged.
    ///
    /// # Errors
    /// [`NatsError::JetStream`].
    pub async fn waiting(&self) -> Result<u64, NatsError> {
        let name = self.names.jobs();
        let stream = self.context.get_stream(&name).await;
        let stream = stream.map_err(NatsError::cannot(format!("read the state of {name}")))?;
        Ok(stream.cached_info().state.messages)
    }

    /// Returns whether a worker waits for jobs, or has some.
    pub(crate) async fn has_workers(&self) -> Result<bool, NatsError> {
        const OPERATION: &str = "look for workers";
        let stream = self.context.get_stream_no_info(self.names.jobs()).await;
        match stream.map_err(NatsError::cannot(OPERATION))?.consumer_info(CONSUMER).await {
            Ok(info) => Ok(info.num_waiting > 0 || info.num_ack_pending > 0),
            // The first worker creates it.
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => Ok(false),
            Err(error) => Err(NatsError::jet_stream(OPERATION, &error)),
        }
    }

    /// Returns the consumer that all workers share.
    pub(crate) async fn consumer(&self) -> Result<PullConsumer, NatsError> {
        let stream = self.names.jobs();
        let operation = format!("open the consumer {CONSUMER} of {stream}");
        let config = pull::Config {
            durable_name: Some(CONSUMER.to_owned()),
            description: Some("The workers that run the jobs".to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.settings.ack_wait,
            // Workers move such a job to the failed ones; a job over this number would stay in the stream for ever.
            max_deliver: -1,
            max_ack_pending: -1,
            ..pull::Config::default()
        };
        let stream = self.context.get_stream(&stream).await.map_err(NatsError::cannot(&operation))?;
        stream.get_or_create_consumer(CONSUMER, config).await.map_err(NatsError::cannot(operation))
    }
}

async fn create(context: &Context, names: &Names, settings: &QueueSettings) -> Result<Store, NatsError> {
    for config in [jobs(names, settings), failed_jobs(names, settings)] {
        let name = config.name.clone();
        let opened = context.get_or_create_stream(config).await;
        opened.map_err(|error| NatsError::jet_stream(format!("create the stream {name}"), &error))?;
    }
    let bucket = names.results();
    if let Ok(store) = context.get_key_value(&bucket).await {
        return Ok(store);
    }
    let created = context.create_key_value(results(names, settings)).await;
    created.map_err(|error| NatsError::jet_stream(format!("create the bucket {bucket}"), &error))
}

/// The stream of the jobs: a message is removed once it is acknowledged, and no message is dropped.
fn jobs(names: &Names, settings: &QueueSettings) -> stream::Config {
    stream::Config {
        name: names.jobs(),
        description: Some("Jobs of Cognitive Modules".to_owned()),
        subjects: vec![names.job_subject(">")],
        retention: RetentionPolicy::WorkQueue,
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas: settings.replicas,
        duplicate_window: DUPLICATES,
        ..stream::Config::default()
    }
}

/// The stream of the jobs that cannot be run.
fn failed_jobs(names: &Names, settings: &QueueSettings) -> stream::Config {
    stream::Config {
        name: names.failed(),
        description: Some("Jobs that failed, with their envelopes".to_owned()),
        subjects: vec![names.failed_subject()],
        max_age: settings.max_age,
        storage: StorageType::File,
        num_replicas: settings.replicas,
        ..stream::Config::default()
    }
}

/// The bucket of the results, one for each id.
fn results(names: &Names, settings: &QueueSettings) -> kv::Config {
    kv::Config {
        bucket: names.results(),
        description: "Results of jobs by their ids".to_owned(),
        history: 1,
        max_age: settings.max_age,
        storage: StorageType::File,
        num_replicas: settings.replicas,
        ..kv::Config::default()
    }
}

// The jobs of one batch, whose subjects begin with its name.

impl Queue {
    /// Returns how many jobs of a batch are in the queue, also those that run.
    ///
    /// # Errors
    /// [`NatsError::JetStream`].
    pub async fn count_of(&self, batch: &str) -> Result<usize, NatsError> {
        let operation = format!("count the jobs of {batch}");
        let stream = self.context.get_stream_no_info(self.names.jobs()).await;
        let stream = stream.map_err(NatsError::cannot(&operation))?;
        let mut subjects = stream
            .info_with_subjects(self.names.job_subject(&format!("{batch}.>")))
            .await
            .map_err(NatsError::cannot(&operation))?;
        let mut count = 0;
        while let Some(subject) = subjects.try_next().await.map_err(NatsError::cannot(&operation))? {
            count += subject.1;
        }
        Ok(count)
    }

    /// Removes the jobs of a batch from the queue, and returns their number. Workers finish those that they run.
    ///
    /// # Errors
    /// [`NatsError::JetStream`].
    pub async fn cancel(&self, batch: &str) -> Result<u64, NatsError> {
        let operation = format!("remove the jobs of {batch}");
        let stream = self.context.get_stream_no_info(self.names.jobs()).await;
        let stream = stream.map_err(NatsError::cannot(&operation))?;
        let purged = stream.purge().filter(self.names.job_subject(&format!("{batch}.>"))).await;
        purged.map(|purged| purged.purged).map_err(NatsError::cannot(operation))
    }
}

// Results in the bucket.

/// The result of a job: `{"id": …, "job": …, "envelope": {…}}`.
#[derive(Debug, Clone)]
pub struct StoredResult {
    /// The beginning of the SHA-256 of the text of the job.
    pub job: String,
    /// The envelope, as `cog run` prints it.
    pub envelope: Value,
    /// The text of the result.
    pub text: Bytes,
}

impl StoredResult {
    /// Reads a result; none when it is not one.
    pub fn read(text: Bytes) -> Option<Self> {
        let value = Value::parse_bytes(&text).ok()?;
        let job = value.get("job")?.as_str()?.to_owned();
        let envelope = value.child(value.get("envelope")?);
        Some(Self { job, envelope, text })
    }
}

/// Writes a result. One over the maximum of the server becomes an error. A job without a valid id has a result without one.
pub(crate) fn write(id: Option<&JobId>, job: &str, envelope: &Envelope, max_bytes: usize) -> Bytes {
    let text = write_any(id, job, envelope);
    // The server counts the headers too.
    if text.len() + 1024 <= max_bytes {
        return text;
    }
    let message =
        format!("the result of {} bytes is over the maximum of the NATS server, {max_bytes}", text.len());
    let error = ErrorBody::new(Code::InternalError, message).suggest("Raise max_payload of nats-server.");
    write_any(id, job, &Envelope::failure(error))
}

fn write_any(id: Option<&JobId>, job: &str, envelope: &Envelope) -> Bytes {
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| {
        w.optional("id", &id.map(JobId::as_str));
        w.field("job", job);
        w.field("envelope", envelope);
    });
    text.into()
}

impl Queue {
    /// Returns the result of a job, if it is stored.
    ///
    /// # Errors
    /// [`NatsError::JetStream`].
    pub async fn result(&self, id: &JobId) -> Result<Option<StoredResult>, NatsError> {
        let found = self.results.get(id.as_str()).await;
        let found = found.map_err(|error| NatsError::jet_stream(format!("read the result {id}"), &error))?;
        Ok(found.and_then(StoredResult::read))
    }

    /// Stores the result of a job. The first one stays: it may have been read, and two workers can run a job whose report came late.
    pub(crate) async fn store(&self, id: &JobId, result: Bytes) -> Result<(), NatsError> {
        match self.results.create(id.as_str(), result).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(NatsError::jet_stream(format!("store the result {id}"), &error)),
        }
    }
}

// How long a job has waited for a worker that has its module. Kept next to the results: NATS counts deliveries, and no time.

/// The deliveries of a job to workers without its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ModuleWait {
    /// Their number.
    pub(crate) deliveries: u64,
    /// The delays after them.
    pub(crate) time: Duration,
}

impl ModuleWait {
    fn read(text: &[u8]) -> Option<Self> {
        let value = Value::parse_bytes(text).ok()?;
        let time = Duration::from_millis(value.get("waited_ms")?.as_u64()?);
        Some(Self { deliveries: value.get("deliveries")?.as_u64()?, time })
    }

    fn write(self) -> Bytes {
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            let waited = u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX);
            w.field("deliveries", &self.deliveries).field("waited_ms", &waited);
        });
        text.into()
    }
}

/// Returns the key of the wait of a job. No id of a job has a slash.
fn wait_key(id: &JobId) -> String {
    format!("missing/{id}")
}

impl Queue {
    /// Returns how long a job has waited for a worker with its module.
    pub(crate) async fn module_wait(&self, id: &JobId) -> Result<ModuleWait, NatsError> {
        let found = self.results.get(wait_key(id)).await;
        let found = found.map_err(NatsError::cannot(format!("read how long the job {id} has waited")))?;
        Ok(found.and_then(|text| ModuleWait::read(&text)).unwrap_or_default())
    }

    /// Stores how long a job has waited for a worker with its module.
    pub(crate) async fn set_module_wait(&self, id: &JobId, wait: ModuleWait) -> Result<(), NatsError> {
        let stored = self.results.put(wait_key(id), wait.write()).await;
        stored.map(drop).map_err(NatsError::cannot(format!("store how long the job {id} has waited")))
    }
}

// Jobs that cannot be run move to a stream of their own, so that they do not come back for ever.

/// The header with the envelope of the job.
pub(crate) const ENVELOPE: &str = "Cog-Envelope";
/// The header with the number of times that the job was delivered.
pub(crate) const DELIVERIES: &str = "Cog-Deliveries";

/// The bytes of a message that are left for its other headers.
const RESERVED: usize = 1024;

/// Returns the text of an envelope, within a length: without its partial data, or with a part of the message.
fn header_text(envelope: &Envelope, room: usize) -> String {
    let text = envelope.to_json();
    let Some(error) = envelope.error().filter(|_| text.len() > room) else { return text };
    let whole = Envelope::failure(error.clone()).to_json();
    if whole.len() <= room {
        return whole;
    }
    let message: String = error.message.chars().take(200).collect();
    Envelope::failure(ErrorBody::with_code(error.code.clone(), message)).to_json()
}

impl Queue {
    /// Publishes a job to the stream of failed jobs, as it was received and with its envelope in a header.
    pub(crate) async fn dead_letter(
        &self,
        message: &Message,
        id: Option<&JobId>,
        envelope: &Envelope,
        deliveries: u64,
    ) -> Result<(), NatsError> {
        const OPERATION: &str = "store a failed job";
        let mut headers = HeaderMap::new();
        if let Some(id) = id {
            headers.insert(header::NATS_MESSAGE_ID, id.as_str());
        }
        let room = self.client.max_payload().saturating_sub(RESERVED);
        let text = header_text(envelope, room);
        let fits = text.len() + message.payload.len() <= room;
        let payload = if fits { message.payload.clone() } else { Bytes::new() };
        headers.insert(ENVELOPE, HeaderValue::from(text));
        headers.insert(DELIVERIES, deliveries.to_string().as_str());
        let sent = self.context.publish_with_headers(self.names.failed_subject(), headers, payload).await;
        let stored = sent.map_err(NatsError::cannot(OPERATION))?.await;
        stored.map_err(NatsError::cannot(OPERATION)).map(drop)
    }
}

// The jobs that could not be run: they are listed, put back into the queue, or removed.

/// A job that could not be run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FailedJob {
    /// Its number in the stream of failed jobs, by which it is retried or removed.
    pub number: u64,
    /// Its id, if it had a valid one.
    pub id: Option<String>,
    /// Its module, if the job can be read.
    pub module: Option<String>,
    /// The code of the error.
    pub code: Option<String>,
    /// The message of the error, which may repeat parts of the input or the answer.
    pub message: Option<String>,
    /// How often it was delivered.
    pub deliveries: Option<u64>,
    /// When it was moved to the stream of failed jobs: RFC 3339, in UTC.
    pub time: String,
    /// The job as it was received. Empty if it was too large to be stored with its envelope.
    #[serde(skip)]
    payload: Bytes,
}

impl FailedJob {
    fn new(message: StreamMessage) -> Self {
        let envelope =
            header(&message, ENVELOPE).and_then(|text| Value::parse(text).ok()).unwrap_or_default();
        let job = Value::parse_bytes(&message.payload).unwrap_or_default();
        Self {
            number: message.sequence,
            id: message.headers.get(NATS_MESSAGE_ID).map(|id| id.as_str().to_owned()),
            module: text(&job, "/module"),
            code: text(&envelope, "/error/code"),
            message: text(&envelope, "/error/message"),
            deliveries: header(&message, DELIVERIES).and_then(|count| count.parse().ok()),
            time: time_of(&message),
            payload: message.payload,
        }
    }

    /// Returns the id of the job when it is in the queue again: an id with a result cannot be used twice.
    fn next_id(&self) -> Option<JobId> {
        let id = self.id.as_deref().unwrap_or("job");
        JobId::new(format!("{id}.retry-{}", self.number))
            .or_else(|| JobId::new(format!("retry-{}", self.number)))
    }
}

fn header<'a>(message: &'a StreamMessage, name: &str) -> Option<&'a str> {
    message.headers.get(name).map(|value| value.as_str())
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    Some(value.pointer(pointer)?.as_str()?.to_owned())
}

fn time_of(message: &StreamMessage) -> String {
    let seconds = u64::try_from(message.time.unix_timestamp()).unwrap_or_default();
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}

impl Queue {
    /// Returns the jobs that could not be run, from the oldest on, at most this number.
    ///
    /// # Errors
    /// [`NatsError::JetStream`].
    pub async fn failed_jobs(&self, limit: usize) -> Result<Vec<FailedJob>, NatsError> {
        let stream = self.failed_stream().await?;
        let mut jobs = Vec::new();
        let mut next = 1;
        while jobs.len() < limit {
            let found = stream.get_first_raw_message_by_subject(&self.names.failed_subject(), next).await;
            match found {
                Ok(message) => {
                    next = message.sequence + 1;
                    jobs.push(FailedJob::new(message));
                }
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => break,
                Err(error) => return Err(NatsError::jet_stream("list the failed jobs", &error)),
            }
        }
        Ok(jobs)
    }

    /// Puts a job into the queue again under a new id, which it returns, and removes it from the failed ones. None if the job was
    /// too large to be stored with its envelope.
    ///
    /// # Errors
    /// [`NatsError::JetStream`].
    pub async fn retry(&self, job: &FailedJob) -> Result<Option<JobId>, NatsError> {
        let Some(id) = job.next_id().filter(|_| !job.payload.is_empty()) else { return Ok(None) };
        // In this order: a job that is in both streams for a moment is better than one that is in neither.
        self.publish(&id, "retry", job.payload.clone(), HeaderMap::new()).await?;
        self.remove_failed(job).await?;
        Ok(Some(id))
    }

    /// Removes a job from the failed ones.
    ///
    /// # Errors
    /// [`NatsError::JetStream`].
    pub async fn remove_failed(&self, job: &FailedJob) -> Result<(), NatsError> {
        let removed = self.failed_stream().await?.delete_message(job.number).await;
        removed.map(drop).map_err(NatsError::cannot("remove a failed job"))
    }

    async fn failed_stream(&self) -> Result<Stream<()>, NatsError> {
        let stream = self.context.get_stream_no_info(self.names.failed()).await;
        stream.map_err(NatsError::cannot("open the failed jobs"))
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use cog_spec::{Code, Outcome};

    use super::*;

    #[test]
    fn wait_survives_its_way_through_the_bucket() {
        let wait = ModuleWait { deliveries: 7, time: Duration::from_millis(12_345) };
        assert_eq!(ModuleWait::read(&wait.write()), Some(wait));
        assert_eq!(ModuleWait::read(b"{}"), None);
        let key = wait_key(&JobId::new("a.1").unwrap());
        assert!(key == "missing/a.1" && JobId::new(key).is_none());
    }

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

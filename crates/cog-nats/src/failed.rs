//! The jobs that could not be run: they are listed, put back into the queue, or removed.

use std::time::{Duration, UNIX_EPOCH};

use async_nats::{
    HeaderMap,
    header::NATS_MESSAGE_ID,
    jetstream::{
        message::StreamMessage,
        stream::{LastRawMessageErrorKind, Stream},
    },
};
use bytes::Bytes;
use cog_json::Value;
use serde::Serialize;

use crate::{
    JobId, NatsError, Queue,
    queue::{DELIVERIES, ENVELOPE},
};

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

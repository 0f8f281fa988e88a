//! Results in the bucket.

use async_nats::jetstream::kv::CreateErrorKind;
use bytes::Bytes;
use cog_json::{Value, Writer};
use cog_spec::{Code, Envelope, ErrorBody};

use super::{JobId, NatsError, Queue};

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
pub(super) fn write(id: Option<&JobId>, job: &str, envelope: &Envelope, max_bytes: usize) -> Bytes {
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

    /// Stores the result of a job. The first one stays.
    pub(super) async fn store(&self, id: &JobId, result: Bytes) -> Result<(), NatsError> {
        match self.results.create(id.as_str(), result).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(NatsError::jet_stream(format!("store the result {id}"), &error)),
        }
    }
}

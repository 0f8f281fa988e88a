//! Jobs that cannot be run are moved aside, so that they do not come back for ever.

use async_nats::{HeaderMap, HeaderValue, jetstream::Message};
use bytes::Bytes;
use cog_json::ToJson as _;
use cog_spec::Envelope;

use super::{JobId, NatsError, Queue};

/// The header with the envelope of the job.
const ENVELOPE: &str = "Cog-Envelope";
/// The header with the number of times that the job was delivered.
const DELIVERIES: &str = "Cog-Deliveries";

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
        let text = envelope.to_json();
        let fits = text.len() + message.payload.len() + 1024 <= self.client.max_payload();
        let payload = if fits { message.payload.clone() } else { Bytes::new() };
        headers.insert(ENVELOPE, HeaderValue::from(text));
        headers.insert(DELIVERIES, deliveries.to_string().as_str());
        let sent = self.context.publish_with_headers(self.names.failed_subject(), headers, payload).await;
        sent.map_err(|error| failed(&error))?.await.map_err(|error| failed(&error)).map(drop)
    }
}

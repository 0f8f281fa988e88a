//! Jobs that cannot be run are moved aside, so that they do not come back for ever.

use async_nats::{HeaderMap, HeaderValue, jetstream::Message};
use bytes::Bytes;
use cog_json::ToJson as _;
use cog_spec::{Envelope, ErrorBody};

use super::{JobId, NatsError, Queue};

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

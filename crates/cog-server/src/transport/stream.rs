use std::time::Duration;

use axum::body::{Body, Bytes};
use cog_run::sessions::{Batch, Subscriber};
use futures_util::stream;
use tokio::time::timeout;

use super::{Wire, sse};

/// A session's chunks as a response body. All chunks that are ready are sent in one write. Without chunks, keep-alives
/// are sent (ruling R50).
pub(crate) struct Streamed {
    wire: Wire,
    subscriber: Subscriber,
    keepalive_interval: Duration,
    /// The text before the first chunk.
    preamble: &'static str,
}

impl Streamed {
    pub(crate) fn new(wire: Wire, subscriber: Subscriber, keepalive_interval: Duration) -> Self {
        let preamble = match wire {
            Wire::Sse => sse::PREAMBLE,
            Wire::Ndjson => "",
        };
        Self { wire, subscriber, keepalive_interval, preamble }
    }

    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut streamed| async move {
            let bytes = streamed.next().await?;
            Some((Ok::<_, std::convert::Infallible>(bytes), streamed))
        }))
    }

    async fn next(&mut self) -> Option<Bytes> {
        match timeout(self.keepalive_interval, self.subscriber.next()).await {
            Ok(batch) => Some(self.write(&batch?)),
            Err(_) => Some(Bytes::from_static(self.keepalive())),
        }
    }

    fn write(&mut self, batch: &Batch) -> Bytes {
        let preamble = std::mem::take(&mut self.preamble);
        match self.wire {
            Wire::Sse => sse::write(preamble, self.subscriber.session_id(), batch),
            Wire::Ndjson => Bytes::copy_from_slice(batch.lines().as_bytes()),
        }
    }

    fn keepalive(&self) -> &'static [u8] {
        match self.wire {
            Wire::Sse => sse::KEEPALIVE,
            Wire::Ndjson => b"\n",
        }
    }
}

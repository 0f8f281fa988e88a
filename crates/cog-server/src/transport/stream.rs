use std::time::Duration;

use axum::body::{Body, Bytes};
use cog_run::sessions::{Batch, Subscriber};
use futures_util::stream;
use tokio::time::timeout;

use super::{Wire, ndjson, sse};

/// A session's chunks as the body of a response: whatever is ready leaves in one piece, and where nothing is, a
/// heartbeat from time to time (ruling R50).
pub(crate) struct Streamed {
    wire: Wire,
    follower: Subscriber,
    heartbeat: Duration,
    /// What stands before the first chunk.
    head: &'static str,
}

impl Streamed {
    pub(crate) fn new(wire: Wire, follower: Subscriber, heartbeat: Duration) -> Self {
        let head = match wire {
            Wire::Sse => sse::HEAD,
            Wire::Ndjson => "",
        };
        Self { wire, follower, heartbeat, head }
    }

    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut streamed| async move {
            let piece = streamed.next().await?;
            Some((Ok::<_, std::convert::Infallible>(piece), streamed))
        }))
    }

    async fn next(&mut self) -> Option<Bytes> {
        match timeout(self.heartbeat, self.follower.next()).await {
            Ok(batch) => Some(self.write(&batch?)),
            Err(_) => Some(Bytes::from_static(self.beat())),
        }
    }

    fn write(&mut self, batch: &Batch) -> Bytes {
        let head = std::mem::take(&mut self.head);
        match self.wire {
            Wire::Sse => sse::write(head, self.follower.session_id(), batch),
            Wire::Ndjson => ndjson::write(batch),
        }
    }

    fn beat(&self) -> &'static [u8] {
        match self.wire {
            Wire::Sse => sse::HEARTBEAT,
            Wire::Ndjson => ndjson::HEARTBEAT,
        }
    }
}

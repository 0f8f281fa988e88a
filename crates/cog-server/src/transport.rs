//! The HTTP formats of a session's chunks: server-sent events and NDJSON (SPEC 3.2.4). They and `websocket` read the same
//! log and send the same chunks.

use std::{fmt::Write as _, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, header},
};
use cog_media::MediaRules;
use cog_run::sessions::{Batch, Subscriber};
use cog_spec::{Capabilities, Modality, Transport};
use futures_util::stream;
use tokio::time::timeout;

use crate::{ServerSettings, timing::Timing};

/// The format of a stream in a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Server-sent events.
    Sse,
    /// One JSON object per line.
    Ndjson,
}

/// Every transport, for the capabilities.
pub(crate) const TRANSPORTS: [Transport; 3] =
    [Wire::Sse.transport(), Transport::WebSocket, Wire::Ndjson.transport()];

/// The header that disables buffering in proxies.
const ACCEL: HeaderName = HeaderName::from_static("x-accel-buffering");
/// The header with the session of a stream.
const SESSION: HeaderName = HeaderName::from_static("x-session-id");

impl Wire {
    const fn transport(self) -> Transport {
        match self {
            Self::Sse => Transport::Sse,
            Self::Ndjson => Transport::Ndjson,
        }
    }

    /// Its content type.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// Returns the chunks of a subscriber as a response.
    pub(crate) fn response(
        self,
        subscriber: Subscriber,
        settings: &ServerSettings,
    ) -> axum::response::Response {
        let session = HeaderValue::from_str(subscriber.session_id());
        let body = ChunkBody::new(self, subscriber, settings.keepalive_interval).into_body();
        let mut response = self.response_of(body);
        if let Ok(session) = session {
            response.headers_mut().insert(SESSION, session);
        }
        response
    }

    /// Returns a body in this format as a response.
    pub(crate) fn response_of(self, body: Body) -> axum::response::Response {
        let mut response = axum::response::Response::new(body);
        response.extensions_mut().insert(Timing::Preparing);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type()));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(ACCEL, HeaderValue::from_static("no"));
        response
    }
}

/// A session's chunks as a response body. All chunks that are ready are sent in one write. Without chunks, keep-alives
/// are sent (ruling R50).
pub(crate) struct ChunkBody {
    wire: Wire,
    subscriber: Subscriber,
    keepalive_interval: Duration,
    /// The text before the first chunk.
    preamble: &'static str,
}

impl ChunkBody {
    pub(crate) fn new(wire: Wire, subscriber: Subscriber, keepalive_interval: Duration) -> Self {
        let preamble = match wire {
            Wire::Sse => PREAMBLE,
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
            Wire::Sse => write_events(preamble, self.subscriber.session_id(), batch),
            Wire::Ndjson => Bytes::copy_from_slice(batch.lines().as_bytes()),
        }
    }

    fn keepalive(&self) -> &'static [u8] {
        match self.wire {
            Wire::Sse => KEEPALIVE,
            Wire::Ndjson => b"\n",
        }
    }
}

// Server-sent events (ruling R51): `event`, `id`, and the chunk as one line of `data`.

/// The first lines of a stream: the time after which a browser reconnects, in milliseconds.
const PREAMBLE: &str = "retry: 1000\n";
/// A comment, which clients ignore.
pub(crate) const KEEPALIVE: &[u8] = b":\n\n";
/// The approximate size of an event without its chunk.
const OVERHEAD: usize = 80;

/// Returns the entries as events, in one buffer.
fn write_events(preamble: &str, session: &str, batch: &Batch) -> Bytes {
    let mut text =
        String::with_capacity(preamble.len() + batch.lines().len() + OVERHEAD * batch.entries().count());
    text.push_str(preamble);
    for entry in batch.entries() {
        // Writing to a string does not fail.
        let _ = write!(text, "event: {}\nid: {session}:{}\ndata: {}\n\n", entry.event, entry.seq, entry.json);
    }
    text.into()
}

/// Returns the capabilities of this runtime (SPEC 8.1), for the command line and for HTTP.
pub fn capabilities() -> Capabilities {
    let mut capabilities = Capabilities::new("cog", env!("CARGO_PKG_VERSION"));
    capabilities.specification = Some(cog_spec::SPECIFICATION.to_owned());
    capabilities.streaming = !TRANSPORTS.is_empty();
    capabilities.input = Modality::ALL.to_vec();
    capabilities.output = vec![Modality::Text, Modality::Image, Modality::Audio];
    capabilities.max_media_size_mb = max_media_mb();
    capabilities.transports = TRANSPORTS.to_vec();
    capabilities
}

/// The maximum size of a media file of any kind, in MB of 1,048,576 bytes (ruling R60).
fn max_media_mb() -> u32 {
    u32::try_from(MediaRules::default().max_bytes_of_any() >> 20).unwrap_or(u32::MAX)
}

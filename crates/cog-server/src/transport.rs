//! A session's chunks on their way out: server-sent events, NDJSON (SPEC 3.2.4). With `websocket`, all read
//! the same log, so that they carry the same chunks.

mod ndjson;
mod sse;
mod stream;

use axum::http::{HeaderName, HeaderValue, header};
use cog_run::sessions::Subscriber;
use cog_spec::Transport;

use crate::{ServerSettings, timing::Timing};
pub(crate) use stream::Streamed;

/// How a stream travels in the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Server-sent events.
    Sse,
    /// A JSON object a line.
    Ndjson,
}

/// Every way out: what the capabilities declare.
pub(crate) const TRANSPORTS: [Transport; 3] =
    [Wire::Sse.transport(), Transport::WebSocket, Wire::Ndjson.transport()];

/// Keeps proxies from holding a stream back.
const ACCEL: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Names the session of a stream.
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

    /// What follows, as a response.
    pub(crate) fn response(
        self,
        follower: Subscriber,
        settings: &ServerSettings,
    ) -> axum::response::Response {
        let session = HeaderValue::from_str(follower.session_id());
        let body = Streamed::new(self, follower, settings.heartbeat).into_body();
        let mut response = axum::response::Response::new(body);
        response.extensions_mut().insert(Timing::Preparing);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type()));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(ACCEL, HeaderValue::from_static("no"));
        if let Ok(session) = session {
            headers.insert(SESSION, session);
        }
        response
    }
}

//! The HTTP formats of a session's chunks: server-sent events and NDJSON (SPEC 3.2.4). They and `websocket` read the same
//! log and send the same chunks.

pub(crate) mod sse;
mod stream;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, header},
};
use cog_run::sessions::Subscriber;
use cog_spec::Transport;
pub(crate) use stream::Streamed;

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
        let body = Streamed::new(self, subscriber, settings.keepalive_interval).into_body();
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

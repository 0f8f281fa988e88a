//! Transports for requests and replies: HTTP, or a recording.

use std::pin::Pin;

use bytes::Bytes;
use futures_core::Stream;

use crate::{ConnectErrorKind, ProviderError, WireRequest};

/// The body of a reply, as a stream of chunks.
pub(crate) type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// The future that resolves to a reply.
pub(crate) type SendFuture<'a> = Pin<Box<dyn Future<Output = Result<WireReply, TransportError>> + Send + 'a>>;

/// Sends requests.
pub(crate) trait Transport: Send + Sync {
    /// Sends one request. Resolves when the reply's status and headers have arrived.
    fn send<'a>(&'a self, request: &'a WireRequest) -> SendFuture<'a>;
}

/// A reply: its status and headers, and a stream of its body.
pub(crate) struct WireReply {
    pub(crate) status: u16,
    /// The headers of the reply that are named in [`REPLY_HEADERS`].
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: BodyStream,
}

/// The reply headers that this crate uses.
pub(crate) const REPLY_HEADERS: [&str; 14] = [
    "content-type",
    "retry-after",
    "retry-after-ms",
    "date",
    "location",
    "x-goog-upload-url",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
];

impl WireReply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }
}

/// The reason that a request or reply was not transferred.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TransportError {
    /// No connection was established; `kind` is the local cause, if known.
    Connect { message: String, kind: Option<ConnectErrorKind> },
    /// An established connection failed.
    Broken(String),
    /// The key contains characters that are not allowed in a header.
    BadKey,
    /// A recording has no usable reply.
    Recording(Box<ProviderError>),
}

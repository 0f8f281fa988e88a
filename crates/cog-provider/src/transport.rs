//! The bytes' way out and back: over HTTP, or from a recording.

use std::pin::Pin;

use bytes::Bytes;
use futures_core::Stream;

use crate::{ConnectErrorKind, ProviderError, WireRequest};

/// The body of a reply, piece by piece as it arrives.
pub(crate) type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// A reply to come.
pub(crate) type Sending<'a> = Pin<Box<dyn Future<Output = Result<WireReply, TransportError>> + Send + 'a>>;

/// Sends requests.
pub(crate) trait Transport: Send + Sync {
    /// Sends one request. Resolves when the head of the reply is there.
    fn send<'a>(&'a self, request: &'a WireRequest) -> Sending<'a>;
}

/// A reply: its head, and its body to come.
pub(crate) struct WireReply {
    pub(crate) status: u16,
    /// Of the headers those named in [`KEPT_HEADERS`].
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) pieces: Pieces,
}

/// The headers of a reply that mean something here.
pub(crate) const KEPT_HEADERS: [&str; 5] =
    ["content-type", "retry-after", "retry-after-ms", "date", "location"];

impl WireReply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }
}

/// Why bytes did not get through.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TransportError {
    /// No connection stood, and perhaps cannot as things are set up.
    Connect { message: String, obstacle: Option<ConnectErrorKind> },
    /// A connection that stood broke.
    Broken(String),
    /// The key holds characters that no header can carry.
    BadKey,
    /// A recording does not serve.
    Recording(Box<ProviderError>),
}

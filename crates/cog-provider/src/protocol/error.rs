//! Errors of decoding a reply.

use thiserror::Error;

use super::ReachedLimit;

/// The reason that a reply cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The vendor sent an error within the reply.
    #[error("{0}")]
    Vendor(VendorError),
    /// A web page instead of a reply, with its first words.
    #[error("a web page: {0}")]
    WebPage(String),
    /// An empty reply.
    #[error("the reply is empty")]
    Empty,
    /// The connection closed before the end of the reply.
    #[error("the connection closed before the end of the reply")]
    Incomplete,
    /// A frame that is not JSON.
    #[error("not valid JSON: {0}")]
    NotJson(String),
    /// Bytes that are not UTF-8.
    #[error("not valid UTF-8")]
    NotUtf8,
    /// A media item given by URL. Fetching it would bypass the operator's control.
    #[error("the URL of a media item instead of its data")]
    MediaUrl,
    /// A frame over the size limit.
    #[error("a chunk of more than {0} bytes")]
    FrameTooLarge(usize),
}

/// An error message of a vendor, from the body of an error reply or from within a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VendorError {
    /// The vendor's name or number for the error: `rate_limit_exceeded`.
    pub code: Option<String>,
    /// The vendor's message.
    pub message: String,
    /// The limit that its details name.
    pub limit: Option<ReachedLimit>,
}

impl VendorError {
    /// Creates the error for an error event without a message.
    pub(crate) fn without_message() -> Self {
        Self { code: None, message: "an error without a message".to_owned(), limit: None }
    }
}

impl std::error::Error for VendorError {}

impl std::fmt::Display for VendorError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.code {
            Some(code) if !self.message.contains(code.as_str()) => write!(f, "{} ({code})", self.message),
            _ => f.write_str(&self.message),
        }
    }
}

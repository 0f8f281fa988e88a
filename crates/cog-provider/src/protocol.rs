//! Wire protocols: pure functions from a request to bytes, and push decoders from bytes to events.
//!
//! This module performs no I/O. A decoder returns the same events however the reply's bytes are split. Fields and
//! values that a vendor adds to its protocol are never an error.

mod anthropic;
mod decoder;
mod frames;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_images;
mod parts;
pub(crate) mod reply;
mod sse;
mod template;

use cog_json::Node;
use cog_spec::{Modality, ModelEvent};
use thiserror::Error;

use crate::{ModelRequest, RequestError, WireRequest, vendors::Vendor};

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProtocolKind {
    /// OpenAI Chat Completions, which most vendors implement.
    OpenAiChat,
    /// OpenAI Images, for models that return only images.
    OpenAiImages,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
    /// Ollama's own protocol.
    Ollama,
}

/// Maps a model request to an HTTP request, and a reply to events.
pub trait Protocol: Send + Sync {
    /// Checks whether the vendor supports a request: the checks of [`Protocol::request`], without building the
    /// request.
    ///
    /// # Errors
    /// Fails if the vendor does not support the request.
    fn check(&self, ask: &RequestContext<'_>) -> Result<(), RequestError> {
        parts::check(ask)
    }

    /// Builds the HTTP request for a model request.
    ///
    /// # Errors
    /// Fails if the vendor does not support the request.
    fn request(&self, ask: &RequestContext<'_>) -> Result<WireRequest, RequestError>;

    /// Returns the headers that every request of the protocol has.
    fn headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Creates a decoder for one reply. Each event, line or body of the reply is limited to `limit` bytes.
    fn decoder(&self, limit: usize) -> Box<dyn Decoder>;

    /// Returns the path that lists the models, relative to the base URL.
    fn models_path(&self, base_url: &str) -> String;

    /// Returns the names of the models in the reply to [`Protocol::models_path`].
    fn models(&self, answer: Node<'_>) -> Vec<String>;
}

/// The input for building a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// The model request.
    pub request: &'a ModelRequest,
    /// The vendor.
    pub vendor: &'a Vendor,
    /// The vendor's base URL, without a trailing slash.
    pub base_url: &'a str,
    /// The model to call.
    pub model: &'a str,
}

impl RequestContext<'_> {
    /// Returns the wire form that the vendor uses for this model.
    #[cfg(feature = "http")]
    pub(crate) fn protocol(&self) -> &'static dyn Protocol {
        self.vendor.protocol_of(self.model).protocol()
    }

    /// Returns the requested kinds of media that the model can generate.
    pub(crate) fn output_media(&self) -> impl Iterator<Item = Modality> {
        let supported = self.vendor.output_media(self.model);
        self.request.output_media.iter().copied().filter(move |kind| supported.contains(kind))
    }

    /// Returns how to decode the reply.
    #[cfg(feature = "http")]
    pub(crate) fn reply_form(&self) -> ReplyForm {
        let limit =
            if self.output_media().next().is_some() { MAX_MEDIA_FRAME_BYTES } else { MAX_FRAME_BYTES };
        ReplyForm { protocol: self.protocol(), limit }
    }
}

/// The protocol and limit for decoding a reply; each attempt creates a new decoder.
#[cfg(feature = "http")]
#[derive(Clone, Copy)]
pub(crate) struct ReplyForm {
    protocol: &'static dyn Protocol,
    limit: usize,
}

#[cfg(feature = "http")]
impl ReplyForm {
    pub(crate) fn decoder(self) -> Box<dyn Decoder> {
        self.protocol.decoder(self.limit)
    }
}

/// Decodes the bytes of one reply into events.
pub trait Decoder: Send {
    /// Decodes the next bytes, split at any position.
    ///
    /// # Errors
    /// Fails if the reply violates the protocol or contains an error of the vendor. No event follows.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// Decodes the end of the reply.
    ///
    /// # Errors
    /// Fails if the reply is incomplete.
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;
}

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
    #[error("an empty reply")]
    Empty,
    /// The connection closed before the end of the reply.
    #[error("the connection closed before the end of the reply")]
    Incomplete,
    /// A chunk that is not JSON.
    #[error("a piece that is not JSON: {0}")]
    NotJson(String),
    /// Bytes that are not UTF-8.
    #[error("bytes that are not UTF-8")]
    NotUtf8,
    /// A media item given by URL. Fetching it would bypass the operator's control.
    #[error("a medium by its address, where the medium itself was asked for")]
    MediaUrl,
    /// A single chunk over the size limit.
    #[error("a piece of more than {0} bytes")]
    FrameTooLarge(usize),
}

/// An error message of a vendor, from the body of an error reply or from within a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VendorError {
    /// The vendor's name or number for the error: `rate_limit_exceeded`.
    pub code: Option<String>,
    /// The vendor's message.
    pub message: String,
}

impl std::fmt::Display for VendorError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.code {
            Some(code) if !self.message.contains(code.as_str()) => write!(f, "{} ({code})", self.message),
            _ => f.write_str(&self.message),
        }
    }
}

impl ProtocolKind {
    /// Returns the implementation of the protocol.
    pub fn protocol(self) -> &'static dyn Protocol {
        match self {
            ProtocolKind::OpenAiChat => &openai_chat::OpenAiChat,
            ProtocolKind::OpenAiImages => &openai_images::OpenAiImages,
            ProtocolKind::Anthropic => &anthropic::Anthropic,
            ProtocolKind::Gemini => &gemini::Gemini,
            ProtocolKind::Ollama => &ollama::Ollama,
        }
    }
}

/// The maximum size of one event, line or body of a reply, in bytes. An answer of the maximum size (8 MiB) fits,
/// escapes included.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

/// The maximum size if media are requested: an image of 20 MB fits, as base64.
pub const MAX_MEDIA_FRAME_BYTES: usize = 32 << 20;

//! Wire protocols: pure functions from a request to bytes, and push decoders from bytes to events.
//!
//! This module performs no I/O. A decoder returns the same events however the reply's bytes are split. Fields and
//! values that a vendor adds to its protocol are never an error.

pub(crate) mod anthropic;
mod decoder;
mod frames;
pub(crate) mod gemini;
mod ollama;
mod openai_chat;
mod openai_images;
mod openai_responses;
mod parts;
pub(crate) mod reply;
mod vendor_error;

use bytes::Bytes;
use cog_json::{Node, Writer};
use cog_spec::{Modality, ModelEvent};
use thiserror::Error;

use crate::{
    ListedModel, ModelRequest, RequestError, WireRequest,
    vendors::{CacheMark, ModelSettings, Vendor},
};

pub use self::vendor_error::{ReachedLimit, VendorError};
pub use crate::protocol_kind::ProtocolKind;

/// The maximum size of one event, line or body of a reply, in bytes. An answer of the maximum size (8 MiB) fits,
/// escapes included.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

/// The maximum size if media are requested: an image of 20 MB fits, as base64.
pub const MAX_MEDIA_FRAME_BYTES: usize = 32 << 20;

impl ProtocolKind {
    /// Returns the implementation of the protocol.
    pub fn protocol(self) -> &'static dyn Protocol {
        match self {
            ProtocolKind::OpenAiChat => &openai_chat::OpenAiChat,
            ProtocolKind::OpenAiResponses => &openai_responses::OpenAiResponses,
            ProtocolKind::OpenAiImages => &openai_images::OpenAiImages,
            ProtocolKind::Anthropic => &anthropic::Anthropic,
            ProtocolKind::Gemini => &gemini::Gemini,
            ProtocolKind::Ollama => &ollama::Ollama,
        }
    }
}

/// Maps a model request to an HTTP request, and a reply to events.
pub trait Protocol: Send + Sync {
    /// Checks whether the vendor supports a request: the checks of [`Protocol::request`], without building the
    /// request.
    ///
    /// # Errors
    /// Fails if the vendor does not support the request.
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError>;

    /// Builds the HTTP request for a model request.
    ///
    /// # Errors
    /// Fails if the vendor does not support the request.
    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        self.check(context)?;
        let mut body = String::new();
        Writer::compact(&mut body).object(|w| self.write_body(w, context));
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.extend(self.accept(context).map(|types| ("accept", types.to_owned())));
        headers.extend(self.headers());
        Ok(WireRequest { method: "POST", url: self.url(context), headers, auth: None, body: body.into() })
    }

    /// Returns the URL of the request, which [`Protocol::check`] accepts.
    fn url(&self, context: &RequestContext<'_>) -> String;

    /// Returns the media type that the request accepts; `None` for a protocol that streams neither events nor one body.
    fn accept(&self, _context: &RequestContext<'_>) -> Option<&'static str> {
        Some("text/event-stream")
    }

    /// Writes the members of the body, in one pass: large members, such as a schema or an image, are copied once.
    fn write_body(&self, w: &mut Writer<'_>, context: &RequestContext<'_>);

    /// Returns the headers that every request of the protocol has.
    fn headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the modalities of an input that the protocol can carry, of those that the vendor's models accept.
    fn input_limits(&self, accepted: &'static [Modality]) -> &'static [Modality] {
        accepted
    }

    /// Returns whether the results of tools can only be text.
    fn text_results(&self) -> bool {
        false
    }

    /// Returns the last segment of the URL, if a setting chooses this protocol. A recording made over it has this
    /// segment in its paths, so that a replay needs no setting.
    fn recording_suffix(&self) -> Option<&'static str> {
        None
    }

    /// Creates a decoder for one reply. Each event, line or body of the reply is limited to `limit` bytes.
    fn decoder(&self, limit: usize) -> Box<dyn Decoder>;

    /// Returns how to continue a reply that ended with [`FinishReason::Continue`](cog_spec::FinishReason::Continue);
    /// `None` if the protocol has no such end.
    fn continuation(&self) -> Option<Continuation> {
        None
    }

    /// Returns the path that lists the models, relative to the base URL.
    fn models_path(&self, base_url: &str) -> String;

    /// Returns the models in the reply to [`Protocol::models_path`].
    fn models(&self, body: Node<'_>) -> Vec<ListedModel>;
}

/// A function that returns the body of the request that continues a reply, from the body of the first request and the
/// token of the reply.
pub type Continuation = fn(body: &[u8], token: &str) -> Bytes;

/// The input for building a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// The model request.
    pub request: &'a ModelRequest,
    /// The vendor.
    pub vendor: &'a Vendor,
    /// The wire form of the server.
    pub protocol: ProtocolKind,
    /// The vendor's base URL, without a trailing slash.
    pub base_url: &'a str,
    /// The model to call.
    pub model: &'a str,
    /// Whether the server accepts marks for the vendor's cache.
    pub marks_cache: bool,
}

impl RequestContext<'_> {
    /// Returns how to mark the system text for the cache, and the name of the request in it.
    pub(crate) fn cache_mark(&self) -> Option<(CacheMark, &str)> {
        let key = self.request.cache_key.as_deref().filter(|_| self.marks_cache)?;
        self.settings().cache.map(|cache| (cache.mark, key))
    }

    /// Returns the settings that the model supports.
    pub(crate) fn settings(&self) -> &'static ModelSettings {
        self.vendor.settings_of(self.model)
    }

    /// Returns the requested kinds of media that the model can generate.
    pub(crate) fn output_media(&self) -> impl Iterator<Item = Modality> {
        let supported = self.vendor.output_media(self.model);
        self.request.output_media.iter().copied().filter(move |kind| supported.contains(kind))
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

// The protocol of one call.

#[cfg(feature = "http")]
impl RequestContext<'_> {
    /// Returns the wire protocol that the vendor uses for this model.
    pub(crate) fn protocol(&self) -> &'static dyn Protocol {
        self.vendor.protocol_of(self.model, self.protocol).protocol()
    }

    /// Returns how to decode the reply.
    pub(crate) fn reply_format(&self) -> ReplyFormat {
        let has_media = self.output_media().next().is_some();
        let limit = if has_media { MAX_MEDIA_FRAME_BYTES } else { MAX_FRAME_BYTES };
        ReplyFormat { protocol: self.protocol(), limit }
    }
}

/// The protocol and limit for decoding a reply. Each attempt creates a new decoder.
#[cfg(feature = "http")]
#[derive(Clone, Copy)]
pub(crate) struct ReplyFormat {
    protocol: &'static dyn Protocol,
    limit: usize,
}

#[cfg(feature = "http")]
impl ReplyFormat {
    pub(crate) fn decoder(self) -> Box<dyn Decoder> {
        self.protocol.decoder(self.limit)
    }
}

// Errors of decoding a reply.

/// The reason that a reply cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The vendor sent an error within the reply.
    #[error("{0}")]
    Vendor(VendorError),
    /// The vendor ended the reply with a finish reason that reports a failure of its own.
    #[error("{}", stopped_with(reason, message.as_deref()))]
    Failed {
        /// The finish reason: `error`, `MALFORMED_FUNCTION_CALL`.
        reason: String,
        /// What the vendor says about it.
        message: Option<String>,
    },
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

fn stopped_with(reason: &str, message: Option<&str>) -> String {
    match message {
        Some(message) => format!("it ended with `{reason}`: {message}"),
        None => format!("it ended with `{reason}`"),
    }
}

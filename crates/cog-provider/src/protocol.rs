//! Wire protocols: pure functions from a request to bytes, and push decoders from bytes to events.
//!
//! Nothing here does any I/O. A decoder takes the reply in any split of its bytes and gives the same
//! events. What a vendor adds to its protocol, unknown fields and unknown words, is never an error.

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
    /// OpenAI Chat Completions, which most vendors speak.
    OpenAiChat,
    /// OpenAI Images, for models that answer with images and nothing else.
    OpenAiImages,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
    /// Ollama's own.
    Ollama,
}

/// The mapping from a question to a request, and from a reply to events.
pub trait Protocol: Send + Sync {
    /// Whether the vendor can take a question: what [`Protocol::request`] refuses, without making the request.
    ///
    /// # Errors
    /// What the vendor cannot take.
    fn check(&self, ask: &RequestContext<'_>) -> Result<(), RequestError> {
        parts::check(ask)
    }

    /// The request for a question.
    ///
    /// # Errors
    /// What the vendor cannot take.
    fn request(&self, ask: &RequestContext<'_>) -> Result<WireRequest, RequestError>;

    /// Headers that every request of the protocol has.
    fn headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// A decoder for one reply, of which no piece, an event, a line or a body, is longer than `limit` bytes.
    fn decoder(&self, limit: usize) -> Box<dyn Decoder>;

    /// The path that lists the models, after the address.
    fn models_path(&self, base_url: &str) -> String;

    /// The names of the models in the answer to that.
    fn models(&self, answer: Node<'_>) -> Vec<String>;
}

/// What a request is made of.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// The question.
    pub request: &'a ModelRequest,
    /// The vendor.
    pub vendor: &'a Vendor,
    /// Its address, without a slash at the end.
    pub base_url: &'a str,
    /// The model to ask.
    pub model: &'a str,
}

impl RequestContext<'_> {
    /// The wire form that the vendor speaks with this model.
    #[cfg(feature = "http")]
    pub(crate) fn protocol(&self) -> &'static dyn Protocol {
        self.vendor.protocol_of(self.model).protocol()
    }

    /// The kinds of media that are asked for and that the model makes.
    pub(crate) fn makes(&self) -> impl Iterator<Item = Modality> {
        let made = self.vendor.makes(self.model);
        self.request.makes.iter().copied().filter(move |kind| made.contains(kind))
    }

    /// How the reply will be read.
    #[cfg(feature = "http")]
    pub(crate) fn reply_form(&self) -> ReplyForm {
        let limit = if self.makes().next().is_some() { MAX_MEDIA_PIECE } else { MAX_PIECE };
        ReplyForm { protocol: self.protocol(), limit }
    }
}

/// How a reply is read; each attempt has a decoder of its own.
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

/// Reads one reply, bytes in, events out.
pub trait Decoder: Send {
    /// MediaCapabilities the next bytes, in any split.
    ///
    /// # Errors
    /// A reply that breaks the protocol, or in which the vendor tells of a fault. Nothing follows.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// MediaCapabilities the end of the reply.
    ///
    /// # Errors
    /// A reply that ends before its end.
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;
}

/// What is wrong with a reply.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The vendor tells of a fault in the middle of the reply.
    #[error("{0}")]
    Vendor(VendorError),
    /// A web page instead of a reply; its first words.
    #[error("a web page: {0}")]
    WebPage(String),
    /// Nothing at all.
    #[error("an empty reply")]
    Empty,
    /// The bytes end before the reply does.
    #[error("the connection closed before the end of the reply")]
    Cut,
    /// A piece that is not JSON.
    #[error("a piece that is not JSON: {0}")]
    NotJson(String),
    /// Bytes that are not UTF-8.
    #[error("bytes that are not UTF-8")]
    NotUtf8,
    /// A medium that stands elsewhere; such an address would be fetched unseen by the operator.
    #[error("a medium by its address, where the medium itself was asked for")]
    Linked,
    /// A single piece longer than is allowed.
    #[error("a piece of more than {0} bytes")]
    PieceTooLarge(usize),
}

/// A fault in a vendor's own words, from a body of an error or from the middle of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VendorError {
    /// The vendor's word or number for it: `rate_limit_exceeded`.
    pub code: Option<String>,
    /// The vendor's sentence.
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
    /// The functions of the protocol.
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

/// The most bytes of one piece of a reply: an event, a line, a body. An answer of the largest size
/// (8 MiB) fits, escapes and all.
pub const MAX_PIECE: usize = 16 << 20;

/// The same where media are asked for: an image of 20 MB fits, as base64.
pub const MAX_MEDIA_PIECE: usize = 32 << 20;

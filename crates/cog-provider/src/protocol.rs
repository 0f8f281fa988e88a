//! Wire protocols: pure functions from a request to bytes, and push decoders from bytes to events.
//!
//! This module performs no I/O. A decoder returns the same events however the reply's bytes are split. Fields and
//! values that a vendor adds to its protocol are never an error.

pub(crate) mod anthropic;
mod decoder;
mod error;
mod frames;
pub(crate) mod gemini;
mod interface;
mod kind;
mod limit;
mod lines;
mod ollama;
mod openai_chat;
mod openai_images;
mod openai_responses;
mod parts;
mod reasoning;
pub(crate) mod reply;
mod sse;
mod surrogates;
mod template;
mod tools;

pub use error::{DecodeError, VendorError};
pub use interface::{Continuation, Decoder, Protocol, RequestContext};
pub use kind::ProtocolKind;
pub use limit::ReachedLimit;

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

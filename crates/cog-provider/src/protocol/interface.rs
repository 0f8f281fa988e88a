//! The interface of a wire protocol.

use bytes::Bytes;
use cog_json::Node;
use cog_spec::{Modality, ModelEvent};

use super::{DecodeError, ProtocolKind};
use crate::{
    ListedModel, ModelRequest, RequestError, WireRequest,
    vendors::{CacheMark, ModelSettings, Vendor},
};

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
    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError>;

    /// Returns the headers that every request of the protocol has.
    fn headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
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

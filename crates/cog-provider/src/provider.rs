//! The interface between the pipeline and a model.

use std::pin::Pin;

use cog_spec::{Dialect, Modality, ModelEvent, Secret};
use futures_core::Stream;

use crate::{ModelRequest, ProviderError, WireRequest};

/// A reply as it arrives. Dropping it cancels the call.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ProviderError>> + Send>>;

/// The future that resolves to a reply.
pub type ModelFuture<'a> = Pin<Box<dyn Future<Output = Result<ModelStream, ProviderError>> + Send + 'a>>;

/// A source of model replies: a vendor over HTTP, a recording, golden answers, or a custom type.
///
/// A reply is a series of events in the order of [`ModelEvent`]. The last one is `Finished`, optionally followed by
/// `Usage`. A stream that ends without `Finished` was interrupted.
pub trait Provider: Send + Sync {
    /// Returns the provider's name, `openai`.
    fn name(&self) -> &str;

    /// Returns the model to call if a request names none.
    fn model(&self) -> &str;

    /// Returns the schema dialect that the provider supports for answers.
    fn dialect(&self) -> Dialect;

    /// Returns the API key, if there is one. It must never appear in a message or log.
    fn key(&self) -> Option<&Secret> {
        None
    }

    /// Returns whether the provider accepts calls. It does not while its circuit is open
    /// ([`Breaker`](crate::Breaker)).
    fn is_available(&self) -> bool {
        true
    }

    /// Returns the supported input modalities; text is always among them (ruling R12).
    fn modalities(&self) -> &[Modality];

    /// Returns the supported media formats.
    fn formats(&self) -> Formats {
        Formats::ANY
    }

    /// Returns the kinds of media that a model generates besides text (SPEC 2.2). An empty name means the provider's
    /// own model.
    fn makes(&self, model: &str) -> &[Modality] {
        let _ = model;
        &[Modality::Image, Modality::Audio, Modality::Video]
    }

    /// Builds the request without sending it. Returns `None` for a provider without a wire form.
    ///
    /// # Errors
    /// Fails if the provider does not support the request.
    fn render(&self, request: &ModelRequest) -> Result<Option<WireRequest>, ProviderError>;

    /// Checks whether the provider supports a request. It rejects every request that [`Provider::render`] rejects.
    ///
    /// # Errors
    /// Fails if the provider does not support the request.
    fn check(&self, request: &ModelRequest) -> Result<(), ProviderError> {
        self.render(request).map(drop)
    }

    /// Calls the model. Resolves at the first event, after any retries; the stream returns the remaining events.
    fn ask<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a>;
}

/// The media formats that a provider accepts (SPEC 8.3). Other media are converted to one of them before they are
/// sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats {
    /// The accepted media types. Types of a kind that is not in [`Provider::modalities`] are ignored.
    pub types: &'static [&'static str],
    /// The maximum width and height of an image, in pixels.
    pub longest_side: Option<u32>,
    /// The maximum size of an image in bytes, before base64.
    pub image_bytes: Option<u64>,
    /// Whether the provider fetches images from URLs.
    pub by_address: bool,
    /// The maximum size of a complete request in bytes; `None` if the vendor documents none.
    pub request_bytes: Option<u64>,
}

impl Formats {
    /// Every type of SPEC 4.1.1, of any size.
    pub const ANY: Self = Self {
        types: &[
            "image/jpeg",
            "image/png",
            "image/webp",
            "image/gif",
            "audio/mpeg",
            "audio/wav",
            "audio/ogg",
            "audio/webm",
            "video/mp4",
            "video/webm",
            "video/quicktime",
            "application/pdf",
        ],
        longest_side: None,
        image_bytes: None,
        by_address: false,
        request_bytes: None,
    };
}

//! What the pipeline talks to.

use std::pin::Pin;

use cog_spec::{Dialect, Modality, ModelEvent, Secret};
use futures_core::Stream;

use crate::{ModelRequest, ProviderError, WireRequest};

/// A reply as it arrives. Dropping it cancels the call.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ProviderError>> + Send>>;

/// The reply to come.
pub type ModelFuture<'a> = Pin<Box<dyn Future<Output = Result<ModelStream, ProviderError>> + Send + 'a>>;

/// Something that answers: a vendor over HTTP, a recording, golden answers, or a type of one's own.
///
/// A reply is events in the order of [`ModelEvent`], the last of them `Finished`, perhaps with
/// `Usage` behind it. A stream that ends without `Finished` was cut.
pub trait Provider: Send + Sync {
    /// Its name, `openai`.
    fn name(&self) -> &str;

    /// The model it asks where a request names none.
    fn model(&self) -> &str;

    /// How it likes to be told the schema of an answer.
    fn dialect(&self) -> Dialect;

    /// The key it is asked with, which no message and no log may repeat; none where there is none.
    fn key(&self) -> Option<&Secret> {
        None
    }

    /// Whether it is asked now: not while it is left alone after failures ([`Breaker`](crate::Breaker)).
    fn is_available(&self) -> bool {
        true
    }

    /// What it takes; text is always among them (ruling R12).
    fn modalities(&self) -> &[Modality];

    /// How it takes the media among them.
    fn formats(&self) -> Formats {
        Formats::ANY
    }

    /// The kinds of media that a model of it makes beside text (SPEC 2.2); the model is empty for the provider's own.
    fn makes(&self, model: &str) -> &[Modality] {
        let _ = model;
        &[Modality::Image, Modality::Audio, Modality::Video]
    }

    /// The request as it would be sent, without sending it; none for a provider without a wire form.
    ///
    /// # Errors
    /// What the provider cannot take.
    fn render(&self, request: &ModelRequest) -> Result<Option<WireRequest>, ProviderError>;

    /// Whether it can take a request. What [`Provider::render`] refuses, this refuses too.
    ///
    /// # Errors
    /// What the provider cannot take.
    fn check(&self, request: &ModelRequest) -> Result<(), ProviderError> {
        self.render(request).map(drop)
    }

    /// Asks. Resolves when the first event is there, after the retries; the stream brings the rest.
    fn ask<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a>;
}

/// How a provider takes media (SPEC 8.3). A medium of another form is made one of these before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats {
    /// The types. Only those of a kind that is among [`Provider::modalities`] count.
    pub types: &'static [&'static str],
    /// The longest side of an image, in pixels.
    pub longest_side: Option<u32>,
    /// The most bytes of an image, before base64.
    pub image_bytes: Option<u64>,
    /// Whether it fetches images from addresses.
    pub by_address: bool,
    /// The most bytes of a whole request; none where the vendor tells none.
    pub request_bytes: Option<u64>,
}

impl Formats {
    /// Every type of SPEC 4.1.1, however large.
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

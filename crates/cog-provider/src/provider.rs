//! The interface between the pipeline and a model.

use std::{borrow::Cow, pin::Pin, time::SystemTime};

use cog_spec::{Cost, Dialect, Modality, ModelEvent, Secret, Usage};
use futures_core::Stream;

use crate::{
    Formats, ModelRequest, ProviderError, WireRequest,
    vendors::{MediaModel, ModelSettings, PromptCache, ToolSettings, context_window, cost},
};

/// A reply as it arrives. Dropping it cancels the call.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ProviderError>> + Send>>;

/// The future that resolves to a reply.
pub type ModelFuture<'a> = Pin<Box<dyn Future<Output = Result<ModelStream, ProviderError>> + Send + 'a>>;

/// A source of model replies: a vendor over HTTP, a recording, golden answers, or a custom type.
///
/// A reply is a series of events in the order of [`ModelEvent`]. The last one is `Finished`, optionally followed by
/// `Usage`. A stream that ends without `Finished` was interrupted.
pub trait Provider: Send + Sync {
    /// Returns the provider's name, model and capabilities.
    fn info(&self) -> &ProviderInfo;

    /// Returns whether the provider accepts calls. It does not while its circuit is open
    /// ([`Breaker`](crate::Breaker)).
    fn is_available(&self) -> bool {
        true
    }

    /// Builds the request without sending it. Returns `None` for a provider without a wire form, which is the default.
    ///
    /// # Errors
    /// Fails if the provider does not support the request.
    fn render(&self, _request: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        Ok(None)
    }

    /// Checks whether the provider supports a request. It rejects every request that [`Provider::render`] rejects.
    ///
    /// # Errors
    /// Fails if the provider does not support the request.
    fn check(&self, request: &ModelRequest) -> Result<(), ProviderError> {
        self.render(request).map(drop)
    }

    /// Calls the model. Resolves at the first event, after any retries; the stream returns the remaining events.
    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a>;
}

/// The name, model and capabilities of a provider. They never change while the provider is in use.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProviderInfo {
    /// The provider's name, `openai`.
    pub name: Cow<'static, str>,
    /// The model to call if a request names none.
    pub model: Cow<'static, str>,
    /// The schema dialect that the provider supports for answers.
    pub dialect: Dialect,
    /// The price list: a provider of `genai-prices`.
    pub prices: Option<&'static str>,
    /// The list of context windows: a provider of `genai-prices`.
    pub context_windows: Option<&'static str>,
    /// The engine, if what it enforces of a schema was measured (`cog_schema::Enforcement`).
    pub engine: Option<&'static str>,
    /// The supported input modalities; text is always among them (ruling R12).
    pub input: &'static [Modality],
    /// The supported media formats.
    pub formats: Formats,
    /// The models that generate media; the first match for a name applies.
    pub media_models: Cow<'static, [MediaModel]>,
    /// The settings that the models support; the first match for a name applies.
    pub models: &'static [ModelSettings],
    /// How the models use tools; the first match for a name applies. Empty if they support none.
    pub tools: &'static [ToolSettings],
    /// Whether the protocol has only text in the results of tools.
    pub text_results: bool,
    /// The API key, if there is one. It must never appear in a message or log.
    pub key: Option<Secret>,
}

impl ProviderInfo {
    /// Describes a provider that reads text, accepts no schema, and may generate any media.
    pub const fn new(name: &'static str, model: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            model: Cow::Borrowed(model),
            dialect: Dialect::Prompt,
            prices: None,
            context_windows: None,
            engine: None,
            input: &[Modality::Text],
            formats: Formats::ANY,
            media_models: Cow::Borrowed(&[MediaModel::ANY]),
            models: &[],
            tools: &[],
            text_results: false,
            key: None,
        }
    }

    /// Returns the model that a request calls: the named one, otherwise the provider's own.
    pub fn model_or_default<'a>(&'a self, requested: &'a str) -> &'a str {
        if requested.is_empty() { &self.model } else { requested }
    }

    /// Returns how a model caches the beginning of requests; `None` if nothing is known about it. An empty name means the
    /// provider's own model.
    pub fn prompt_cache(&self, model: &str) -> Option<PromptCache> {
        ModelSettings::find(self.models, self.model_or_default(model))?.cache
    }

    /// Returns how a model uses tools. An empty name means the provider's own model.
    pub fn tool_settings(&self, model: &str) -> &'static ToolSettings {
        ToolSettings::find(self.tools, self.model_or_default(model))
    }

    /// Returns whether the media in the result of a tool are sent in a message of the user that follows. An empty name means the
    /// provider's own model.
    pub fn moves_result_media(&self, model: &str) -> bool {
        !self.tools.is_empty() && (self.text_results || !self.tool_settings(model).result_media)
    }

    /// Returns the cost of a reply of this model at a time. None if no price is known.
    pub fn cost(&self, model: &str, usage: &Usage, now: SystemTime) -> Option<Cost> {
        cost(self.prices?, model, usage, now)
    }

    /// Returns the context window of a model in tokens. None if it is unknown. An empty name means the provider's own model.
    pub fn context_window(&self, model: &str) -> Option<u64> {
        context_window(self.context_windows?, self.model_or_default(model))
    }

    /// Returns the modalities of an input that a model accepts. An empty name means the provider's own model.
    pub fn input_media(&self, model: &str) -> &'static [Modality] {
        let found = MediaModel::find(&self.media_models, self.model_or_default(model));
        found.and_then(|found| found.input).unwrap_or(self.input)
    }

    /// Returns whether a model accepts a schema for its answer. An empty name means the provider's own model.
    pub fn has_schema(&self, model: &str) -> bool {
        MediaModel::find(&self.media_models, self.model_or_default(model))
            .is_none_or(|found| found.has_schema)
    }

    /// Returns the kinds of media that a model generates besides text (SPEC 2.2). An empty name means the provider's
    /// own model.
    pub fn output_media(&self, model: &str) -> &'static [Modality] {
        MediaModel::find(&self.media_models, self.model_or_default(model)).map_or(&[], |found| found.output)
    }
}

//! The interface between the pipeline and a model.

use std::{borrow::Cow, pin::Pin, time::SystemTime};

use cog_json::Node;
use cog_spec::{Cost, Dialect, Modality, ModelEvent, Secret, Usage};
use futures_core::Stream;

use crate::{
    Formats, ModelRequest, ProviderError, WireRequest,
    vendors::{MediaModel, ModelPrices, ModelSettings, PromptCache, ToolSettings, context_window, cost},
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
    /// The operator's prices, which precede the list.
    pub own_prices: ModelPrices,
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
            own_prices: ModelPrices::NONE,
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

    /// Returns how a model caches the beginning of requests; `None` if nothing is known about it. An empty name means
    /// the provider's own model.
    pub fn prompt_cache(&self, model: &str) -> Option<PromptCache> {
        ModelSettings::find(self.models, self.model_or_default(model))?.cache
    }

    /// Returns how a model uses tools. An empty name means the provider's own model.
    pub fn tool_settings(&self, model: &str) -> &'static ToolSettings {
        ToolSettings::find(self.tools, self.model_or_default(model))
    }

    /// Returns whether the media in the result of a tool are sent in a message of the user that follows. An empty name
    /// means the provider's own model.
    pub fn moves_result_media(&self, model: &str) -> bool {
        !self.tools.is_empty() && (self.text_results || !self.tool_settings(model).result_media)
    }

    /// Returns the cost of a reply of this model at a time. None if no price is known.
    pub fn cost(&self, model: &str, usage: &Usage, now: SystemTime) -> Option<Cost> {
        self.reply_cost(model, model, usage, now)
    }

    /// Returns the cost of a reply at a time, where the server names the model that replied. A gateway may name another one
    /// than was requested, and the operator may have set the price under either name. A list has the price of the model
    /// that replied.
    pub fn reply_cost(&self, requested: &str, replied: &str, usage: &Usage, now: SystemTime) -> Option<Cost> {
        let own = self.own_prices.cost(&[replied, self.model_or_default(requested)], usage, now);
        own.or_else(|| cost(self.prices?, replied, usage, now))
    }

    /// Returns the context window of a model in tokens. None if it is unknown. An empty name means the provider's own
    /// model.
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

// The models that a vendor lists.

/// A model in a vendor's list, with the facts that the list contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedModel {
    /// Its name, as requests contain it.
    pub name: String,
    /// The maximum number of input tokens.
    pub max_input_tokens: Option<u64>,
    /// The maximum number of output tokens.
    pub max_output_tokens: Option<u64>,
    /// The vendor's name for its state: `active`, `deprecated`, `retired`.
    pub lifecycle: Option<String>,
    /// The date from which it is not available, `2026-12-11`: from the list, otherwise from the vendor's row.
    pub retires_at: Option<String>,
    /// What it supports, as the vendor names it: `image_input`, `structured_outputs`. Empty if the list does not say.
    pub capabilities: Vec<String>,
}

impl ListedModel {
    /// Creates a model with only its name.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Reads a model of Anthropic's list.
    pub(crate) fn from_anthropic(model: Node<'_>) -> Option<Self> {
        let capabilities = model.get("capabilities").into_iter().flat_map(Node::members);
        let supported =
            capabilities.filter(|(_, value)| value.get("supported").and_then(Node::as_bool) == Some(true));
        Some(Self {
            max_input_tokens: model.get("max_input_tokens").and_then(Node::as_u64),
            max_output_tokens: model.get("max_tokens").and_then(Node::as_u64),
            lifecycle: model.get_str("lifecycle").map(str::to_owned),
            retires_at: model.get_str("retires_at").and_then(|at| at.get(..DATE_LENGTH)).map(str::to_owned),
            capabilities: supported.map(|(name, _)| name.to_owned()).collect(),
            ..Self::named(model.get_str("id")?)
        })
    }

    /// Returns whether a name means this model: its name, without a tag, a version or the part before a slash.
    pub fn is_named(&self, name: &str) -> bool {
        let rest = self.name.strip_prefix(name);
        let is_version = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '-', '@']));
        is_version || self.name.rsplit('/').next() == Some(name)
    }
}

/// The length of a date, `2026-12-11`.
const DATE_LENGTH: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_with_tags_versions_and_owners() {
        let is_named = |listed: &str, name: &str| ListedModel::named(listed).is_named(name);
        assert!(
            is_named("qwen3:latest", "qwen3") && is_named("claude-sonnet-5-5-20260901", "claude-sonnet-5-5")
        );
        assert!(is_named("gpt-6-luna", "gpt-6-luna") && is_named("openai/gpt-6-luna", "gpt-6-luna"));
        assert!(
            !is_named("gpt-6-luna", "gpt-6-lun")
                && !is_named("qwen", "qwen3")
                && !is_named("qwen30", "qwen3")
        );
    }

    #[test]
    fn reads_what_anthropic_lists() {
        let text = r#"{"id": "claude-x", "max_input_tokens": 200000, "max_tokens": 64000, "lifecycle": "deprecated",
            "retires_at": "2027-02-01T00:00:00Z", "capabilities": {"image_input": {"supported": true},
            "pdf_input": {"supported": false}, "effort": {"supported": true, "low": {"supported": true}}}}"#;
        let model = ListedModel::from_anthropic(cog_json::Value::parse(text).unwrap().node()).unwrap();
        assert_eq!((model.max_input_tokens, model.max_output_tokens), (Some(200_000), Some(64_000)));
        assert_eq!(
            (model.lifecycle.as_deref(), model.retires_at.as_deref()),
            (Some("deprecated"), Some("2027-02-01"))
        );
        assert_eq!(model.capabilities, ["image_input", "effort"]);
    }
}

//! The interface of a provider: the trait, its request, and the events of its reply.
//!
//! [`Provider`] is implemented by the built-in providers and by custom ones. [`from_fn`] creates one from a function.

use std::{borrow::Cow, sync::Arc};

use futures_util::stream;

pub use cog_harmony::{
    AudioPart, Conversation, FilePart, ImagePart, Message, Part, Reasoning, Role, TextPart, TokenCounter,
    ToolCall, ToolChoice, ToolDefinition,
};
pub use cog_provider::vendors::{
    CacheMark, ImageSettings, ImageSizes, MediaModel, ModelSettings, PromptCache, RequestLimits, Temperature,
    ToolSettings, ToolSupport,
};
pub use cog_provider::{
    Breaker, BreakerSettings, ConnectErrorKind, Deadline, Formats, ImageRequest, Interruption, ManyImages,
    ModelFuture, ModelRequest, ModelStream, OptionalPart, OutputSchema, Provider, ProviderError,
    ProviderInfo, Quota, RejectedPart, ReplyHead, ReplyHook, RequestError, RetryHook, ToolRequest,
    WireRequest,
};
#[cfg(feature = "providers")]
pub use cog_provider::{
    Choice, HttpProvider, OFFLINE, Pace, ProviderSelectError, Recording, RecordingFailure, choose, protocol,
    provider_names, vendors,
};
pub use cog_spec::{
    Capabilities, Dialect, FinishReason, Modality, ModelEvent, ModelMedia, Secret, ToolCallDelta, Usage,
};

/// The provider in `meta.model` of an answer that the parts of a composition gave.
pub(crate) const COMPOSITION: &str = "composition";

/// Returns a reply from events that are available already.
pub fn reply(events: impl IntoIterator<Item = ModelEvent, IntoIter: Send + 'static>) -> ModelStream {
    Box::pin(stream::iter(events.into_iter().map(Ok)))
}

/// Returns a provider that calls a function, with the name of the provider and of its model. The function returns the text of
/// the reply, such as an envelope, or its events as a [`ModelStream`].
///
/// The provider reads text and gets the schema of the answer in the prompt ([`ProviderInfo::new`]). One with other capabilities
/// implements [`Provider`].
///
/// ```
/// use cog_run::{Runtime, provider::{self, FinishReason, ModelEvent, ModelRequest, reply}};
///
/// let echo = provider::from_fn("echo", "echo-1", async |request: ModelRequest| {
///     let last = request.messages.messages().last().map(|message| message.text());
///     Ok(reply([ModelEvent::Text(last.unwrap_or_default()), ModelEvent::Finished(FinishReason::Stop)]))
/// });
/// let runtime = Runtime::builder().provider(echo).build()?;
/// # let _ = runtime;
/// # Ok::<(), cog_run::ErrorBody>(())
/// ```
pub fn from_fn<F, R, T>(
    name: impl Into<Cow<'static, str>>,
    model: impl Into<Cow<'static, str>>,
    function: F,
) -> Arc<dyn Provider>
where
    F: Fn(ModelRequest) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, ProviderError>> + Send + 'static,
    T: Into<FunctionReply>,
{
    let mut info = ProviderInfo::new("", "");
    info.name = name.into();
    info.model = model.into();
    Arc::new(FunctionProvider { info, function })
}

/// What the function of [`from_fn`] returns: a string, or events.
pub struct FunctionReply(ModelStream);

impl From<String> for FunctionReply {
    fn from(text: String) -> Self {
        Self(reply([ModelEvent::Text(text), ModelEvent::Finished(FinishReason::Stop)]))
    }
}

impl From<&str> for FunctionReply {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<ModelStream> for FunctionReply {
    fn from(events: ModelStream) -> Self {
        Self(events)
    }
}

struct FunctionProvider<F> {
    info: ProviderInfo,
    function: F,
}

impl<F, R, T> Provider for FunctionProvider<F>
where
    F: Fn(ModelRequest) -> R + Send + Sync,
    R: Future<Output = Result<T, ProviderError>> + Send + 'static,
    T: Into<FunctionReply>,
{
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let reply = (self.function)(request.clone());
        Box::pin(async { reply.await.map(|reply| reply.into().0) })
    }
}

/// Returns whether a provider calls a model.
pub(crate) fn calls_model(provider: &dyn Provider) -> bool {
    !matches!(&*provider.info().name, cog_provider::OFFLINE | COMPOSITION)
}

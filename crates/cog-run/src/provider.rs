//! The interface of a provider: the trait, its request, and the events of its reply.
//!
//! [`Provider`] is implemented by the built-in providers and by custom ones;
//! [`RuntimeBuilder::provider`](crate::RuntimeBuilder::provider) shows one.

use futures_util::stream;

pub use cog_harmony::{
    AudioPart, Conversation, FilePart, ImagePart, Message, Part, Reasoning, Role, TextPart, TokenCounter,
    ToolCall, ToolChoice, ToolDefinition,
};
pub use cog_provider::vendors::{
    CacheMark, ImageSettings, ImageSizes, MediaModel, ModelSettings, PromptCache, Temperature, ToolSettings,
    ToolSupport,
};
pub use cog_provider::{
    Breaker, BreakerSettings, ConnectErrorKind, Deadline, Formats, ImageRequest, Interruption, ManyImages,
    ModelFuture, ModelRequest, ModelStream, OptionalPart, OutputSchema, Provider, ProviderError,
    ProviderInfo, Quota, RejectedPart, ReplyHead, ReplyHook, RequestError, RetryHook, ToolRequest,
    WireRequest,
};
#[cfg(feature = "providers")]
pub use cog_provider::{
    Choice, HttpProvider, OFFLINE, Pace, ProviderSelectError, Recording, choose, protocol, provider_names,
    vendors,
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

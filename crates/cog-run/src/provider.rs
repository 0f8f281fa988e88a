//! What a provider is made of: the trait, the request it gets, and the events of its reply.
//!
//! [`Provider`] is implemented by the providers of this library and by those of one's own;
//! [`RuntimeBuilder::provider`](crate::RuntimeBuilder::provider) shows one.

use futures_util::stream;

pub use cog_harmony::{AudioPart, Conversation, FilePart, ImagePart, Message, Part, Role, TextPart};
pub use cog_provider::{
    Breaker, BreakerSettings, ConnectErrorKind, Deadline, Formats, Interruption, ModelFuture, ModelRequest,
    ModelStream, OutputSchema, Provider, ProviderError, RequestError, WireRequest,
};
#[cfg(feature = "providers")]
pub use cog_provider::{
    Choice, HttpProvider, OFFLINE, Pace, ProviderSelectError, Recording, choose, known, protocol, vendors,
};
pub use cog_spec::{
    Capabilities, Dialect, FinishReason, Modality, ModelEvent, ModelMedia, Secret, ToolCallDelta, Usage,
};

/// Returns a reply whose events are there already.
pub fn reply(events: impl IntoIterator<Item = ModelEvent, IntoIter: Send + 'static>) -> ModelStream {
    Box::pin(stream::iter(events.into_iter().map(Ok)))
}

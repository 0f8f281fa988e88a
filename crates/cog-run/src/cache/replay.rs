use cog_provider::{ModelFuture, ModelRequest, Provider, ProviderError, ProviderInfo, WireRequest};
use cog_spec::{FinishReason, ModelEvent, Usage};

use super::CachedReply;
use crate::provider;

/// The provider of a stored reply. Its events take the same path as those of a model.
pub(crate) struct Replay {
    info: ProviderInfo,
    reply: CachedReply,
}

impl Replay {
    /// Returns the provider of a reply, which the provider with this description had sent.
    pub(crate) fn new(info: &ProviderInfo, reply: CachedReply) -> Self {
        Self { info: info.clone(), reply }
    }
}

impl Provider for Replay {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn render(&self, _: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        Ok(None)
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        let started = ModelEvent::Started { model: self.reply.model.clone(), id: None, fingerprint: None };
        let texts = self.reply.texts.iter().cloned().map(ModelEvent::Text);
        // The model is not called, so the answer costs nothing.
        let end = [ModelEvent::Usage(Usage::default()), ModelEvent::Finished(FinishReason::Stop)];
        let events = std::iter::once(started).chain(texts).chain(end);
        Box::pin(std::future::ready(Ok(provider::reply(events.collect::<Vec<_>>()))))
    }
}

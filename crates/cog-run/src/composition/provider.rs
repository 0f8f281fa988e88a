//! The answer of the parts of a composition as the reply of a provider, so that it is checked like any other.

use cog_provider::{ModelFuture, ModelRequest, Provider, ProviderError, ProviderInfo, WireRequest};
use cog_spec::{FinishReason, Modality, ModelEvent};

use crate::provider::reply;

/// The name of the provider in `meta.model`.
pub(crate) const COMPOSITION: &str = "composition";
/// The name of its model in `meta.model`.
const PARTS: &str = "parts";

/// A provider whose reply is the answer of the parts.
pub(crate) struct PartsReply {
    info: ProviderInfo,
    envelope: String,
}

impl PartsReply {
    pub(crate) const MODEL: &str = PARTS;

    /// Creates the provider of this answer.
    pub(crate) fn new(envelope: String) -> Self {
        let mut info = ProviderInfo::new(COMPOSITION, PARTS);
        info.input = Modality::ALL;
        Self { info, envelope }
    }
}

impl Provider for PartsReply {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn render(&self, _: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        Ok(None)
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        let events = [ModelEvent::Text(self.envelope.clone()), ModelEvent::Finished(FinishReason::Stop)];
        Box::pin(std::future::ready(Ok(reply(events))))
    }
}

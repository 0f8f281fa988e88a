//! A provider without a network.

use cog_provider::{ModelFuture, ModelRequest, ModelStream, Provider, ProviderInfo};
use cog_spec::{Dialect, FinishReason, ModelEvent};
use futures_util::stream;

/// Returns the answer at once, in one event.
pub(crate) struct InProcess {
    info: ProviderInfo,
    answer: String,
}

impl InProcess {
    pub(crate) fn new(answer: String) -> Self {
        let mut info = ProviderInfo::new("in-process", "m");
        info.dialect = Dialect::OpenAiStrict;
        Self { info, answer }
    }
}

impl Provider for InProcess {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        let events = [ModelEvent::Text(self.answer.clone()), ModelEvent::Finished(FinishReason::Stop)];
        let reply: ModelStream = Box::pin(stream::iter(events.map(Ok)));
        Box::pin(std::future::ready(Ok(reply)))
    }
}

//! What the tests of calls have in common.

use std::sync::Arc;

use cog_harmony::{Conversation, Message};
use cog_provider::{
    HttpProvider, ModelRequest, OutputSchema, Provider, ProviderError,
    vendors::{ProviderSettings, Vendor},
};
use cog_spec::{FinishReason, ModelEvent, Secret};
use cog_testkit::{Mock, Wire};
use futures_util::StreamExt;

/// A key that must not show up anywhere.
pub(crate) const KEY: &str = "sk-canary-0123456789";

/// The vendor that a wire form is named after.
pub(crate) fn vendor(wire: Wire) -> &'static Vendor {
    Vendor::named(wire.name()).unwrap()
}

/// Settings for a server at this address.
pub(crate) fn settings(base_url: &str) -> ProviderSettings {
    ProviderSettings {
        key: Some(Secret::new(KEY)),
        base_url: Some(base_url.to_owned()),
        model: Some("a-model".to_owned()),
        ..ProviderSettings::default()
    }
}

/// A provider that asks the mock.
pub(crate) fn provider(wire: Wire, mock: &Mock) -> HttpProvider {
    HttpProvider::new(vendor(wire), settings(&mock.base_url(wire))).unwrap()
}

/// A question without a schema.
pub(crate) fn question() -> ModelRequest {
    ModelRequest::new(Conversation::new([Message::system("Answer in JSON."), Message::user("{}")]))
}

/// A question with a schema in the provider's dialect.
pub(crate) fn with_schema(provider: &HttpProvider) -> ModelRequest {
    let schema = Some(serde_json::json!({ "type": "object" }).into());
    let output =
        OutputSchema { name: "answer".to_owned(), dialect: provider.dialect(), schema, words: "".into() };
    ModelRequest { output: Some(Arc::new(output)), ..question() }
}

/// All events of the reply.
pub(crate) async fn ask(
    provider: &HttpProvider,
    request: &ModelRequest,
) -> Result<Vec<ModelEvent>, ProviderError> {
    let stream = provider.ask(request).await?;
    stream.collect::<Vec<_>>().await.into_iter().collect()
}

/// The events up to the error, which there must be; nothing may follow it.
pub(crate) async fn until_error(
    provider: &HttpProvider,
    request: &ModelRequest,
) -> (Vec<ModelEvent>, ProviderError) {
    let stream = match provider.ask(request).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), error),
    };
    let mut events = stream.collect::<Vec<_>>().await;
    let error = events.pop().unwrap().unwrap_err();
    (events.into_iter().map(Result::unwrap).collect(), error)
}

/// The text of the answer.
pub(crate) fn answer(events: &[ModelEvent]) -> String {
    let text = |event: &ModelEvent| match event {
        ModelEvent::Text(text) => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Why the model stopped.
pub(crate) fn finish(events: &[ModelEvent]) -> FinishReason {
    match events.last() {
        Some(ModelEvent::Finished(reason)) => reason.clone(),
        other => panic!("the reply does not end with a reason: {other:?}"),
    }
}

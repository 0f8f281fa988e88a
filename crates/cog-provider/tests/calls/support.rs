//! Shared functions of the call tests.

use std::sync::Arc;

use cog_harmony::{Conversation, Message};
use cog_provider::{
    HttpProvider, ModelRequest, OutputGrammar, OutputSchema, Provider, ProviderError,
    protocol::ProtocolKind,
    vendors::{ProviderSettings, Vendor},
};
use cog_spec::{FinishReason, ModelEvent, Secret};
use cog_testkit::{Mock, Wire};
use futures_util::StreamExt;

/// A key that must not appear in any output.
pub(crate) const KEY: &str = "sk-canary-0123456789";

/// Returns the vendor that uses a wire form.
pub(crate) fn vendor(wire: Wire) -> &'static Vendor {
    Vendor::by_name(wire.provider()).unwrap()
}

/// Returns settings for a server at this base URL.
pub(crate) fn settings(base_url: &str) -> ProviderSettings {
    ProviderSettings {
        key: Some(Secret::new(KEY)),
        base_url: Some(base_url.to_owned()),
        model: Some("a-model".to_owned()),
        ..ProviderSettings::default()
    }
}

/// Creates a provider that calls the mock.
pub(crate) fn provider(wire: Wire, mock: &Mock) -> HttpProvider {
    let protocol = wire.protocol_setting().and_then(ProtocolKind::from_setting);
    let settings = ProviderSettings { protocol, ..settings(&mock.base_url(wire)) };
    HttpProvider::new(vendor(wire), settings).unwrap()
}

/// Creates a request without a schema.
pub(crate) fn simple_request() -> ModelRequest {
    ModelRequest::new(Conversation::new([Message::system("Answer in JSON."), Message::user("{}")]))
}

/// Creates a request with a schema in the provider's dialect.
pub(crate) fn request_with_schema(provider: &HttpProvider) -> ModelRequest {
    let schema = Some(serde_json::json!({ "type": "object" }).into());
    let output = OutputSchema {
        form: cog_spec::Form::ENVELOPE,
        name: "answer".to_owned(),
        dialect: provider.info().dialect,
        schema,
        grammar: None,
        instructions: "".into(),
    };
    ModelRequest { output: Some(Arc::new(output)), ..simple_request() }
}

/// Creates a request with a schema and a grammar.
pub(crate) fn request_with_grammar(provider: &HttpProvider) -> ModelRequest {
    let mut request = request_with_schema(provider);
    let grammar = OutputGrammar { text: "root ::= \"{}\"".to_owned(), max_tokens: 9 };
    request.output.iter_mut().for_each(|output| Arc::make_mut(output).grammar = Some(grammar.clone()));
    request
}

/// Calls the provider and returns all events of the reply.
pub(crate) async fn events_of(
    provider: &HttpProvider,
    request: &ModelRequest,
) -> Result<Vec<ModelEvent>, ProviderError> {
    let stream = provider.call(request).await?;
    stream.collect::<Vec<_>>().await.into_iter().collect()
}

/// Returns the events before the error; panics if there is no error or if anything follows it.
pub(crate) async fn until_error(
    provider: &HttpProvider,
    request: &ModelRequest,
) -> (Vec<ModelEvent>, ProviderError) {
    let stream = match provider.call(request).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), error),
    };
    let mut events = stream.collect::<Vec<_>>().await;
    let error = events.pop().unwrap().unwrap_err();
    (events.into_iter().map(Result::unwrap).collect(), error)
}

/// Returns the text of the answer.
pub(crate) fn answer(events: &[ModelEvent]) -> String {
    let text = |event: &ModelEvent| match event {
        ModelEvent::Text(text) => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Returns the finish reason.
pub(crate) fn finish(events: &[ModelEvent]) -> FinishReason {
    match events.last() {
        Some(ModelEvent::Finished(reason)) => reason.clone(),
        other => panic!("the reply has no finish reason: {other:?}"),
    }
}

//! Logs requests to the provider and its replies: what happens and how large it is (`-v`, `-vv`). The text of a reply has a target
//! of its own, since most programs must never log it.

use std::sync::Arc;

use cog_provider::{
    ModelFuture, ModelRequest, ModelStream, Provider, ProviderError, ProviderInfo, WireRequest,
};
use cog_spec::{FinishReason, ModelEvent};
use futures_util::StreamExt as _;
use tracing::{Level, debug, enabled, info};

/// The target of the events that contain what a model wrote, at the level DEBUG. A log enables it only on request.
pub const CONTENTS: &str = "cog::contents";

/// A provider that logs its requests and replies.
pub(crate) struct Logged(Arc<dyn Provider>);

impl Logged {
    /// Wraps the provider if the log is on.
    pub(crate) fn wrap(provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        // The reply is collected for the log, so a program without a log does not pay for it.
        if enabled!(Level::INFO) { Arc::new(Self(provider)) } else { provider }
    }
}

impl Provider for Logged {
    fn info(&self) -> &ProviderInfo {
        self.0.info()
    }

    fn is_available(&self) -> bool {
        self.0.is_available()
    }

    fn render(&self, request: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        self.0.render(request)
    }

    fn check(&self, request: &ModelRequest) -> Result<(), ProviderError> {
        self.0.check(request)
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            if let Ok(Some(wire)) = self.0.render(request) {
                info!(method = wire.method, url = wire.url, bytes = wire.body.len(), "calling the provider");
            }
            let reply = self.0.call(request).await.inspect_err(failed)?;
            let mut log = Log::default();
            let logged: ModelStream = Box::pin(reply.inspect(move |event| log.event(event)));
            Ok(logged)
        })
    }
}

/// Logs an error, and the vendor's text only as contents: it may repeat a part of the request.
fn failed(error: &ProviderError) {
    info!(error = error.outline(), "the call failed");
    debug!(target: CONTENTS, %error, "error of the provider");
}

/// The reply so far, which is logged when it is complete. Only the lengths of chunks are logged: a key that is split
/// over two chunks could not be masked.
#[derive(Default)]
struct Log {
    text: String,
    reasoning: String,
}

impl Log {
    fn event(&mut self, event: &Result<ModelEvent, ProviderError>) {
        match event {
            Ok(ModelEvent::Text(text)) => {
                debug!(bytes = text.len(), "chunk of the reply");
                self.text.push_str(text);
            }
            Ok(ModelEvent::Reasoning(text)) => {
                debug!(bytes = text.len(), "chunk of the reasoning");
                self.reasoning.push_str(text);
            }
            Ok(ModelEvent::Tokens(_)) => {} // the text is logged
            Ok(ModelEvent::ReasoningItem(_)) => debug!("item of the reasoning"),
            Ok(ModelEvent::ToolCall(chunk)) => {
                debug!(bytes = chunk.arguments.len(), "chunk of a tool call");
            }
            Ok(ModelEvent::Media(media)) => {
                debug!(media_type = media.media_type, bytes = media.data.len(), "media item");
            }
            Ok(ModelEvent::Started { model, id, .. }) => info!(model, id, "reply started"),
            Ok(ModelEvent::Usage(usage)) => {
                info!(input_tokens = usage.input_tokens, output_tokens = usage.output_tokens, "token usage");
            }
            Ok(ModelEvent::Finished(reason)) => info!(reason = reason_name(reason), "reply finished"),
            Err(error) => {
                info!(error = error.outline(), "reply interrupted");
                debug!(target: CONTENTS, %error, "error of the provider");
            }
        }
    }
}

/// Returns the name of a finish reason; the envelope has the details.
fn reason_name(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::Refusal(_) => "refusal",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Continue(_) => "continuation",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Other(name) => name,
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if !self.reasoning.is_empty() {
            debug!(target: CONTENTS, text = self.reasoning, "raw reasoning");
        }
        info!(bytes = self.text.len(), "end of the reply");
        debug!(target: CONTENTS, text = self.text, "raw reply");
    }
}

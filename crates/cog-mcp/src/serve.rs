//! Modules as tools and skills of an MCP server (docs/mcp.md).

mod call;
mod catalog;
mod confirmation;
mod handler;
mod http;
mod skills;

use std::any::Any;

use ::http::request::Parts;
use cog_run::{Envelope, Module, RunContext, RunOptions, ToJson as _, tools::ToolEffects};
use cog_spec::ErrorBody;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, Resource, ToolAnnotations};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::verbatim;

pub use self::{
    handler::ModuleServer,
    http::{HttpSettings, McpHttp},
};

// The policies of a module as hints for clients.

/// Returns the hints of a module. The policies say nothing about repeated calls, so `idempotentHint` is absent.
fn annotations(module: &Module) -> ToolAnnotations {
    let effects = ToolEffects::from(&*module.manifest);
    let changes = effects.changes_something();
    ToolAnnotations::new().read_only(!changes).destructive(changes).open_world(effects.network)
}

// Generated media as content of a result.

/// Moves the images and audio clips of an envelope to content of their own. In the envelope for the model, each is
/// replaced by its position.
fn take(module: &Module, data: &cog_run::Value, envelope: &mut Value) -> Vec<ContentBlock> {
    let slots = module.contract.media_outputs(data.node());
    let mut blocks = Vec::new();
    for slot in slots {
        let Some(media) = envelope.pointer_mut(&slot.path.pointer()) else { continue };
        if let Some(block) = block(media) {
            blocks.push(block);
            if let Some(text) = media.get_mut("data") {
                *text = Value::from(format!("content block {}", blocks.len() + 1));
            }
        }
    }
    blocks
}

fn block(media: &Value) -> Option<ContentBlock> {
    let kind = text(media, "media_type").unwrap_or_default();
    match (text(media, "data"), text(media, "url")) {
        (Some(data), _) if kind.starts_with("image/") => Some(ContentBlock::image(data, kind)),
        (Some(data), _) if kind.starts_with("audio/") => Some(ContentBlock::audio(data, kind)),
        (None, Some(url)) => {
            let name = url.rsplit('/').next().unwrap_or(url);
            Some(ContentBlock::resource_link(Resource::new(url, name).with_mime_type(kind)))
        }
        _ => None,
    }
}

fn text<'a>(media: &'a Value, name: &str) -> Option<&'a str> {
    media.get(name).and_then(Value::as_str)
}

// An envelope as the result of a call.

/// Returns the result of a run: its envelope as structured content and as text, and its media. A failed run is an error
/// of the tool, which the model sees.
fn result(module: Option<&Module>, envelope: &Envelope) -> CallToolResult {
    let structured = envelope.to_json();
    let (text, media) = with_media(module, envelope, &structured);
    let content = std::iter::once(ContentBlock::text(text)).chain(media).collect();
    let mut result = match envelope.is_ok() {
        true => CallToolResult::success(content),
        false => CallToolResult::error(content),
    };
    result.structured_content = Some(verbatim::content(structured));
    result
}

/// Returns the text and the media of a result. Base64 is not in the text, which a model reads.
fn with_media(module: Option<&Module>, envelope: &Envelope, text: &str) -> (String, Vec<ContentBlock>) {
    match (module, envelope.data()) {
        (Some(module), Some(data)) if module.contract.has_media_outputs() => {
            let mut shown = serde_json::from_str(text).unwrap_or_default();
            let blocks = take(module, data, &mut shown);
            (shown.to_string(), blocks)
        }
        _ => (text.to_owned(), Vec::new()),
    }
}

/// Returns an error of the protocol, with the code of the specification in its data.
fn invalid_params(error: &cog_spec::ErrorBody) -> ErrorData {
    let mut data = serde_json::json!({ "code": error.code.to_string() });
    if let (Some(members), Some(suggestion)) = (data.as_object_mut(), &error.suggestion) {
        members.insert("suggestion".to_owned(), Value::from(suggestion.as_str()));
    }
    ErrorData::invalid_params(error.message.clone(), Some(data))
}

// What the program that serves the modules decides for each call.

/// What a call may use, and whose run it is.
#[derive(Default)]
pub struct CallSettings {
    /// The options of its run.
    pub options: RunOptions,
    /// What surrounds the run.
    pub context: RunContext,
    /// What is in use until the run has ended, such as a slot.
    pub held: Option<Box<dyn Any + Send + Sync>>,
    /// Stops the run when the program shuts down.
    pub shutdown: CancellationToken,
    /// How a person continues a run that waits for a confirmation, if the client has no elicitation. By default the
    /// suggestion of the run.
    pub confirmation_advice: Option<String>,
}

/// Returns the settings of a call. The argument is the HTTP request; none over stdio. An error refuses the call.
type Settings = Box<dyn Fn(Option<&Parts>) -> Result<CallSettings, ErrorBody> + Send + Sync>;

#[cfg(test)]
mod tests;

//! Gemini generateContent: `POST /v1beta/models/MODEL:streamGenerateContent?alt=sse`.

mod decode;
mod request;

use cog_json::Node;

use super::{Continuation, Decoder, Protocol, RequestContext, decoder::FrameDecoder, frames::Frames};
use crate::{ListedModel, RequestError, WireRequest};

/// The Gemini protocol.
pub(crate) struct Gemini;

impl Protocol for Gemini {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        request::check(context)
    }

    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        request::request(context)
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        Box::new(FrameDecoder::new(Frames::events(limit), decode::responses))
    }

    fn continuation(&self) -> Option<Continuation> {
        Some(request::with_token)
    }

    fn models_path(&self, base_url: &str) -> String {
        format!("{}/models?pageSize=1000", version_path(base_url))
    }

    /// Reads `{models: [{name: models/…, supportedGenerationMethods}]}`; with their limits; lists only models that generate content.
    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        let list = body.get("models").into_iter().flat_map(Node::elements);
        list.filter(generates_content).filter_map(listed).collect()
    }
}

fn listed(model: Node<'_>) -> Option<ListedModel> {
    let count = |key| model.get(key).and_then(Node::as_u64);
    Some(ListedModel {
        max_input_tokens: count("inputTokenLimit"),
        max_output_tokens: count("outputTokenLimit"),
        ..ListedModel::named(bare_name(model.get("name")?.as_str()?))
    })
}

fn generates_content(model: &Node<'_>) -> bool {
    let methods = model.get("supportedGenerationMethods");
    methods.is_none_or(|methods| methods.elements().any(|method| method.as_str() == Some("generateContent")))
}

/// Returns a model's name without its `models/` prefix.
fn bare_name(name: &str) -> &str {
    name.strip_prefix("models/").unwrap_or(name)
}

/// Returns `/v1beta`, unless the base URL ends with a version.
pub(crate) fn version_path(base_url: &str) -> &'static str {
    let last = base_url.rsplit('/').next().unwrap_or_default();
    if last == "v1" || last.starts_with("v1beta") || last.starts_with("v1alpha") { "" } else { "/v1beta" }
}

//! Anthropic Messages: `POST /v1/messages`, API version 2026-10-21.

mod decode;
mod request;

use cog_json::Node;

use super::{Decoder, Protocol, RequestContext, decoder::FrameDecoder, frames::Frames, parts};
use crate::{ListedModel, RequestError, WireRequest};

/// The Anthropic Messages protocol.
pub(crate) struct Anthropic;

/// The API version of the requests.
const VERSION: &str = "2026-10-21";

impl Protocol for Anthropic {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        parts::check(context)
    }

    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        request::request(context)
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("anthropic-version", VERSION.to_owned())]
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        Box::new(FrameDecoder::new(Frames::events(limit), decode::event))
    }

    fn models_path(&self, base_url: &str) -> String {
        format!("{}/models?limit=1000", version_path(base_url))
    }

    /// Reads `{data: [{id, max_input_tokens, …}]}`.
    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        let list = body.get("data").into_iter().flat_map(Node::elements);
        list.filter_map(ListedModel::from_anthropic).collect()
    }
}

/// Returns `/v1`, unless the base URL ends with it.
pub(crate) fn version_path(base_url: &str) -> &'static str {
    if base_url.ends_with("/v1") { "" } else { "/v1" }
}

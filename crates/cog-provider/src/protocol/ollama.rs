//! Ollama's own protocol: `POST /api/chat`, one JSON object per line.

mod decode;
mod request;

use cog_json::Node;

use super::{Decoder, Protocol, RequestContext, decoder::FrameDecoder, frames::Frames, parts};
use crate::{ListedModel, RequestError, WireRequest};

/// The Ollama protocol.
pub(crate) struct Ollama;

impl Protocol for Ollama {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        parts::check_inline(context)
    }

    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        request::request(context)
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        Box::new(FrameDecoder::new(Frames::lines(limit), decode::line))
    }

    fn models_path(&self, _base_url: &str) -> String {
        "/api/tags".to_owned()
    }

    /// Reads `{models: [{name}]}`.
    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        let list = body.get("models").into_iter().flat_map(Node::elements);
        list.filter_map(|model| Some(ListedModel::named(model.get("name")?.as_str()?))).collect()
    }
}

//! Ollama's own protocol: `POST /api/chat`, one JSON object per line.

mod decode;
mod request;

use cog_json::Node;

use super::{Decoder, Protocol, RequestContext, decoder::FrameDecoder, frames::Frames, parts};
use crate::{RequestError, WireRequest};

/// The Ollama protocol.
pub(crate) struct Ollama;

impl Protocol for Ollama {
    fn check(&self, ask: &RequestContext<'_>) -> Result<(), RequestError> {
        parts::check_inline(ask)
    }

    fn request(&self, ask: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        request::request(ask)
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        Box::new(FrameDecoder::new(Frames::lines(limit), decode::line))
    }

    fn models_path(&self, _base_url: &str) -> String {
        "/api/tags".to_owned()
    }

    /// Reads `{models: [{name}]}`.
    fn models(&self, answer: Node<'_>) -> Vec<String> {
        let list = answer.get("models").into_iter().flat_map(Node::elements);
        list.filter_map(|model| Some(model.get("name")?.as_str()?.to_owned())).collect()
    }
}

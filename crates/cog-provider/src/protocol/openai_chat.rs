//! OpenAI Chat Completions: `POST /chat/completions`, which most vendors implement.

mod decode;
mod request;

use cog_json::Node;

use super::{Decoder, Protocol, RequestContext, decoder::FrameDecoder, frames::Frames};
use crate::{ListedModel, RequestError, WireRequest};

/// The OpenAI Chat Completions protocol.
pub(crate) struct OpenAiChat;

impl Protocol for OpenAiChat {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        request::check(context)
    }

    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        request::request(context)
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        Box::new(FrameDecoder::new(Frames::events(limit), decode::chunk))
    }

    fn models_path(&self, _base_url: &str) -> String {
        "/models".to_owned()
    }

    /// Reads `{data: [{id}]}`; Together sends only the array.
    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        let list = body.get("data").unwrap_or(body);
        list.elements().filter_map(|model| Some(ListedModel::named(model.get("id")?.as_str()?))).collect()
    }
}

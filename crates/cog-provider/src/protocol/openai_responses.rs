//! OpenAI Responses: `POST /responses`.
//!
//! Every request has `store: false`: the vendor does not store the response for later requests.

mod decode;
mod request;

use cog_json::Node;

use super::{
    Decoder, Protocol, RequestContext, decoder::FrameDecoder, frames::Frames, openai_chat::OpenAiChat,
};
use crate::{ListedModel, RequestError, WireRequest};

/// The OpenAI Responses protocol.
pub(crate) struct OpenAiResponses;

impl Protocol for OpenAiResponses {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        request::check(context)
    }

    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        request::request(context)
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        Box::new(FrameDecoder::new(Frames::events(limit), decode::event))
    }

    fn models_path(&self, base_url: &str) -> String {
        OpenAiChat.models_path(base_url)
    }

    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        OpenAiChat.models(body)
    }
}

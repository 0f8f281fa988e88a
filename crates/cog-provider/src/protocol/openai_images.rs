//! OpenAI Images: `POST /images/generations`, for models that return only images.

use cog_harmony::Role;
use cog_json::{Node, Writer};
use cog_spec::{Modality, ModelMedia, Usage};

use super::{
    DecodeError, Decoder, Protocol, RequestContext, VendorError,
    decoder::{Event, FrameDecoder},
    openai_chat::OpenAiChat,
    parts::{self, accepted, modality, only_text},
    reply::{Reply, count, string},
};
use crate::{ImageRequest, ListedModel, RequestError};

/// The OpenAI Images protocol.
pub(crate) struct OpenAiImages;

impl Protocol for OpenAiImages {
    /// Checks a request. These models accept one text, and none of the `generation` options.
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        parts::check(context)?;
        if let Some(option) = context.request.generation.names().next() {
            return Err(context.unsupported(option));
        }
        match context.parts().map(modality).find(|kind| *kind != Modality::Text) {
            Some(modality) => Err(RequestError::Modality { vendor: context.vendor.title, modality }),
            None => Ok(()),
        }
    }

    fn url(&self, context: &RequestContext<'_>) -> String {
        format!("{}/images/generations", context.base_url)
    }

    fn accept(&self, _context: &RequestContext<'_>) -> Option<&'static str> {
        Some(accepted(false))
    }

    fn write_body(&self, w: &mut Writer<'_>, context: &RequestContext<'_>) {
        let image = described(context);
        w.field("model", context.model).field("prompt", &image.prompt);
        if let Some((width, height)) = image.size {
            w.field("size", &format!("{width}x{height}"));
        }
        if let Some(style) = &image.style {
            w.field("style", style);
        }
        // GPT image models always return image data and reject a parameter for it.
        if !context.model.contains("gpt-image") {
            w.field("response_format", "b64_json");
        }
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        FrameDecoder::events(limit, images)
    }

    fn models_path(&self, base_url: &str) -> String {
        OpenAiChat.models_path(base_url)
    }

    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        OpenAiChat.models(body)
    }
}

/// Returns the requested image. A size or style that the model accepts in no member of its own is added to the prompt.
fn described(context: &RequestContext<'_>) -> ImageRequest {
    let Some(image) = context.request.image.as_deref() else {
        return ImageRequest { prompt: prompt(context), ..ImageRequest::default() };
    };
    let accepted = context.vendor.image_settings(context.model);
    let mut image = image.clone();
    if let Some((width, height)) = image.size.take_if(|size| !accepted.sizes.contain(*size)) {
        image.prompt.push_str(&format!("\n\nSize: {width} by {height} pixels"));
    }
    if let Some(style) = image.style.take_if(|style| !accepted.styles.contains(&style.as_str())) {
        image.prompt.push_str(&format!("\n\nStyle: {style}"));
    }
    image
}

/// Joins the texts of the conversation, without the instructions about the answer's format. A model that generates
/// only images would draw them.
fn prompt(context: &RequestContext<'_>) -> String {
    let instructions = context.request.output.as_deref().map_or("", |output| &*output.instructions);
    let messages = context.request.messages.messages().iter();
    let texts: Vec<String> = messages
        .filter(|message| message.role != Role::Assistant)
        .map(|message| only_text(message).map_or_else(|| message.text().to_string(), str::to_owned))
        .map(|text| text.strip_suffix(instructions).unwrap_or(&text).trim().to_owned())
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n\n")
}

/// Reads an `ImagesResponse`.
fn images(reply: &mut Reply<'_>, event: Event<'_>) -> Result<(), DecodeError> {
    let node = event.node;
    let Some(data) = node.get("data").filter(|data| data.is_array()) else {
        return VendorError::read(node).map_or(Ok(()), |error| Err(DecodeError::Vendor(error)));
    };
    for image in data.elements() {
        if let Some(media) = image_of(image, node)? {
            reply.media(media);
        }
        reply.text(image.get("revised_prompt"));
    }
    reply.usage(node.get("usage").and_then(usage));
    reply.end()
}

fn image_of(image: Node<'_>, reply: Node<'_>) -> Result<Option<ModelMedia>, DecodeError> {
    let Some(data) = string(image, "b64_json") else {
        return if string(image, "url").is_some() { Err(DecodeError::MediaUrl) } else { Ok(None) };
    };
    Ok(Some(ModelMedia {
        media_type: string(reply, "output_format").map(|format| format!("image/{format}")),
        data,
        params: string(reply, "quality").map(|quality| ("quality", quality)).into_iter().collect(),
    }))
}

fn usage(node: Node<'_>) -> Option<Usage> {
    let output = count(node, "/output_tokens");
    // Without details, the complete output is images.
    let has_details = node.get("output_tokens_details").is_some_and(Node::is_object);
    let images = if has_details { count(node, "/output_tokens_details/image_tokens") } else { output };
    Some(Usage {
        input_tokens: count(node, "/input_tokens")?,
        output_tokens: output.unwrap_or(0),
        input_image_tokens: count(node, "/input_tokens_details/image_tokens").filter(|count| *count > 0),
        output_image_tokens: images.filter(|count| *count > 0),
        ..Usage::default()
    })
}

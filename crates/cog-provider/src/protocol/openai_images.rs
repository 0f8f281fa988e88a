//! OpenAI Images: `POST /images/generations`, for models that return only images.

use cog_harmony::Role;
use cog_json::{Node, Reader};
use cog_spec::{ModelEvent, ModelMedia, Usage};

use super::{
    DecodeError, Decoder, FrameDecoder, Protocol, RequestContext,
    frames::{Frame, Frames},
    openai_chat::OpenAiChat,
    parts::{check, only_text, post},
    reply::{Reply, vendor_error},
};
use crate::{ImageRequest, ListedModel, RequestError, WireRequest};

/// The OpenAI Images protocol.
pub(crate) struct OpenAiImages;

impl Protocol for OpenAiImages {
    /// Checks a request. These models accept one text, and none of the `generation` options.
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        check(context)?;
        let vendor = context.vendor.title;
        match (context.request.generation.names().next(), first_media(context)) {
            (Some(option), _) => Err(context.unsupported(option)),
            (None, Some(modality)) => Err(RequestError::Modality { vendor, modality }),
            (None, None) => Ok(()),
        }
    }

    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        self.check(context)?;
        let url = format!("{}/images/generations", context.base_url);
        Ok(post(url, false, |w| {
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
        }))
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        Box::new(FrameDecoder::new(Frames::events(limit), images))
    }

    fn models_path(&self, base_url: &str) -> String {
        OpenAiChat.models_path(base_url)
    }

    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        OpenAiChat.models(body)
    }
}

fn first_media(context: &RequestContext<'_>) -> Option<cog_spec::Modality> {
    let parts = context.request.messages.messages().iter().flat_map(|message| &message.content);
    parts.map(super::parts::modality).find(|kind| *kind != cog_spec::Modality::Text)
}

/// Returns the image that is requested. What the model accepts in no field of its own is added to the prompt.
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
fn images(
    reply: &mut Reply,
    frame: &Frame<'_>,
    reader: &mut Reader,
    out: &mut Vec<ModelEvent>,
) -> Result<(), DecodeError> {
    let node = frame.json(reader)?;
    let Some(data) = node.get("data").filter(|data| data.is_array()) else {
        return vendor_error(node).map_or(Ok(()), |error| Err(DecodeError::Vendor(error)));
    };
    for image in data.elements() {
        if let Some(media) = image_of(image, node)? {
            reply.media(media, out);
        }
        reply.text(image.get("revised_prompt"), out);
    }
    reply.usage(node.get("usage").and_then(usage), out);
    reply.end(out);
    Ok(())
}

fn image_of(image: Node<'_>, reply: Node<'_>) -> Result<Option<ModelMedia>, DecodeError> {
    let text = |node: Node<'_>, key: &str| Some(node.get(key)?.as_str()?.to_owned());
    let Some(data) = text(image, "b64_json") else {
        return if text(image, "url").is_some() { Err(DecodeError::MediaUrl) } else { Ok(None) };
    };
    Ok(Some(ModelMedia {
        media_type: text(reply, "output_format").map(|format| format!("image/{format}")),
        data,
        params: text(reply, "quality").map(|quality| ("quality", quality)).into_iter().collect(),
    }))
}

fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |path: &str| node.pointer(path).and_then(Node::as_u64);
    let output = count("/output_tokens");
    // Without details, the complete output is images.
    let details = node.get("output_tokens_details").is_some_and(Node::is_object);
    let output_images = if details { count("/output_tokens_details/image_tokens") } else { output };
    Some(Usage {
        input_tokens: count("/input_tokens")?,
        output_tokens: output.unwrap_or(0),
        input_image_tokens: count("/input_tokens_details/image_tokens").filter(|count| *count > 0),
        output_image_tokens: output_images.filter(|count| *count > 0),
        ..Usage::default()
    })
}

use cog_harmony::wire::data_url;
use cog_json::{Node, Reader};
use cog_spec::{FinishReason, ModelEvent, ModelMedia, ToolCallDelta, Usage};

use crate::protocol::{
    DecodeError,
    frames::Frame,
    reply::{Reply, StartKeys, vendor_error},
};

/// The marker at the end of a stream.
const DONE: &str = "[DONE]";

/// Reads `chat.completion.chunk` events, or one `chat.completion` body.
pub(super) fn chunk(
    reply: &mut Reply,
    frame: &Frame<'_>,
    reader: &mut Reader,
    out: &mut Vec<ModelEvent>,
) -> Result<(), DecodeError> {
    if frame.text.trim() == DONE {
        reply.end(out);
        return Ok(());
    }
    if frame.text.trim().is_empty() {
        return Ok(());
    }
    let node = frame.json(reader)?;
    let choices = node.get("choices").filter(|choices| choices.is_array());
    let may_be_error = choices.is_none() || node.get("error").is_some_and(|error| !error.is_null());
    if may_be_error && let Some(error) = vendor_error(node) {
        return Err(DecodeError::Vendor(error));
    }
    reply.start(node, StartKeys { model: "model", id: "id" }, out);
    if let Some(choice) = choices.and_then(|choices| choices.elements().find(is_first)) {
        content(reply, choice, out)?;
    }
    reply.usage(usage(node), out);
    Ok(())
}

/// Returns whether a choice is the first one; only one answer is requested.
fn is_first(choice: &Node<'_>) -> bool {
    choice.get("index").and_then(Node::as_u64).unwrap_or(0) == 0
}

fn content(reply: &mut Reply, choice: Node<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
    if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
        reasoning(reply, delta, out);
        match delta.get("content") {
            Some(blocks) if blocks.is_array() => {
                blocks.elements().for_each(|block| typed_block(reply, block, out));
            }
            text => reply.text(text, out),
        }
        speech(reply, delta, out);
        images(reply, delta, out)?;
        reply.refusal(delta.get("refusal").and_then(Node::as_str));
        let calls = delta.get("tool_calls").into_iter().flat_map(Node::elements);
        (0..).zip(calls).for_each(|(position, call)| reply.tool_call(tool_call(position, call), out));
    }
    if let Some(reason) = choice.get("finish_reason").and_then(Node::as_str) {
        reply.stop(finish_reason(reason));
    }
    Ok(())
}

/// Reads a complete speech item and its transcript.
fn speech(reply: &mut Reply, message: Node<'_>, out: &mut Vec<ModelEvent>) {
    let Some(audio) = message.get("audio").filter(|audio| audio.is_object()) else { return };
    reply.text(audio.get("transcript"), out);
    if let Some(data) = audio.get("data").and_then(Node::as_str) {
        reply.media(ModelMedia { media_type: None, data: data.to_owned(), params: Vec::new() }, out);
    }
}

/// Reads OpenRouter's images. Each is complete, in the same format as an input image.
fn images(reply: &mut Reply, message: Node<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
    for image in message.get("images").into_iter().flat_map(Node::elements) {
        let Some(url) = image.pointer("/image_url/url").and_then(Node::as_str) else { continue };
        let (media_type, data) = data_url(url).ok_or(DecodeError::MediaUrl)?;
        let (media_type, data) = (Some(media_type.to_owned()), data.to_owned());
        reply.media(ModelMedia { media_type, data, params: Vec::new() }, out);
    }
    Ok(())
}

/// Reads the reasoning. Vendors use three fields for it; a vendor that fills two repeats the same text.
fn reasoning(reply: &mut Reply, delta: Node<'_>, out: &mut Vec<ModelEvent>) {
    let text = |key: &str| delta.get(key).and_then(Node::as_str).filter(|text| !text.is_empty());
    let details = || delta.get("reasoning_details").into_iter().flat_map(Node::elements);
    details().for_each(|detail| reply.parts.detail(detail));
    if let Some(text) = text("reasoning_content") {
        reply.parts.text("reasoning_content", text);
    }
    match text("reasoning_content").or_else(|| text("reasoning")) {
        Some(text) => reply.reasoning(Some(text), out),
        None => details().for_each(|detail| reply.reasoning(detail.get("text").and_then(Node::as_str), out)),
    }
}

/// Reads a content block of Mistral's reasoning models: `text`, or `thinking` with texts inside.
fn typed_block(reply: &mut Reply, block: Node<'_>, out: &mut Vec<ModelEvent>) {
    match block.get("thinking") {
        Some(thoughts) => {
            let texts = thoughts.elements().filter_map(|thought| thought.get("text")?.as_str());
            texts.for_each(|text| reply.reasoning(Some(text), out));
        }
        None => reply.text(block.get("text"), out),
    }
}

fn tool_call(position: u32, call: Node<'_>) -> ToolCallDelta {
    let function = call.get("function");
    let text = |node: Option<Node<'_>>, key: &str| Some(node?.get(key)?.as_str()?.to_owned());
    let index = call.get("index").and_then(Node::as_u64).and_then(|index| u32::try_from(index).ok());
    ToolCallDelta {
        index: index.unwrap_or(position),
        id: text(Some(call), "id"),
        name: text(function, "name"),
        arguments: text(function, "arguments").unwrap_or_default(),
        signature: None,
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" | "eos" => FinishReason::Stop,
        "length" | "model_length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        "refusal" => FinishReason::Refusal(None),
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// Reads the token counts of a chunk, and the class of service beside them.
fn usage(chunk: Node<'_>) -> Option<Usage> {
    let node = chunk.get("usage")?;
    let count = |path: &str| node.pointer(path).and_then(Node::as_u64);
    let media = |path: &str| count(path).filter(|count| *count > 0);
    let (input, completion) = (count("/prompt_tokens")?, count("/completion_tokens").unwrap_or(0));
    let reasoning = count("/completion_tokens_details/reasoning_tokens");
    // xAI counts reasoning separately from the answer, and includes it in the total.
    let with_reasoning = completion.saturating_add(reasoning.unwrap_or(0));
    let is_separate = count("/total_tokens") == Some(input.saturating_add(with_reasoning));
    Some(Usage {
        input_tokens: input,
        output_tokens: if is_separate { with_reasoning } else { completion },
        cached_input_tokens: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens")),
        cache_write_input_tokens: count("/prompt_tokens_details/cache_write_tokens"),
        reasoning_tokens: reasoning,
        input_audio_tokens: media("/prompt_tokens_details/audio_tokens"),
        output_audio_tokens: media("/completion_tokens_details/audio_tokens"),
        output_image_tokens: media("/completion_tokens_details/image_tokens"),
        service_tier: chunk.get("service_tier").and_then(Node::as_str).map(str::to_owned),
        ..Usage::default()
    })
}

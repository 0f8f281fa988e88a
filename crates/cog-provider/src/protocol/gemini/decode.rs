use cog_json::{Node, Reader};
use cog_spec::{FinishReason, ModelEvent, ModelMedia, ToolCallDelta, Usage};

use crate::protocol::{
    DecodeError,
    frames::Frame,
    reply::{Reply, StartKeys, check_error},
};

/// The finish reasons of a filter.
const BLOCKED: &[&str] = &[
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "ESCALATION",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

/// Reads `GenerateContentResponse` events, or a body that is one of them or an array of them.
pub(super) fn responses(
    reply: &mut Reply,
    frame: &Frame<'_>,
    reader: &mut Reader,
    out: &mut Vec<ModelEvent>,
) -> Result<(), DecodeError> {
    let value = frame.json(reader)?;
    match value.is_array() {
        true => value.elements().try_for_each(|node| response(reply, node, out)),
        false => response(reply, value, out),
    }
}

fn response(reply: &mut Reply, node: Node<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
    check_error(node)?;
    reply.start(node, StartKeys { model: "modelVersion", id: "responseId" }, out);
    if node.pointer("/promptFeedback/blockReason").and_then(Node::as_str).is_some() {
        reply.stop(FinishReason::ContentFilter);
    }
    if let Some(candidate) = node.get("candidates").and_then(|candidates| candidates.at(0)) {
        let parts = candidate.pointer("/content/parts").into_iter().flat_map(Node::elements);
        parts.for_each(|inner| part(reply, inner, out));
        if let Some(reason) = candidate.get("finishReason").and_then(Node::as_str) {
            let token = candidate.get("continuationToken").and_then(Node::as_str);
            reply.stop(finish_reason(reason, token));
        }
    }
    reply.usage(node.get("usageMetadata").and_then(usage), out);
    Ok(())
}

fn part(reply: &mut Reply, part: Node<'_>, out: &mut Vec<ModelEvent>) {
    let text = part.get("text");
    match part.get("thought").and_then(Node::as_bool) {
        Some(true) => reply.reasoning(text.and_then(Node::as_str), out),
        _ => {
            reply.text(text, out);
            if let Some(media) = media(part) {
                reply.media(media, out);
            }
        }
    }
    if let Some(call) = part.get("functionCall") {
        let text = |key: &str| Some(call.get(key)?.as_str()?.to_owned());
        let arguments = call.get("args").map(|args| args.to_string()).unwrap_or_default();
        let (index, id, name) = (reply.next_call(), text("id"), text("name"));
        let signature = part.get("thoughtSignature").or_else(|| part.get("thought_signature"));
        let signature = signature.and_then(Node::as_str).map(str::to_owned);
        reply.tool_call(ToolCallDelta { index, id, name, arguments, signature }, out);
    }
}

/// Reads a complete image or audio item. Media in thoughts are only drafts.
fn media(part: Node<'_>) -> Option<ModelMedia> {
    let blob = part.get("inlineData").or_else(|| part.get("inline_data"))?;
    let media_type = blob.get("mimeType").or_else(|| blob.get("mime_type"));
    let media_type = media_type.and_then(Node::as_str).map(str::to_owned);
    Some(ModelMedia { media_type, data: blob.get("data")?.as_str()?.to_owned(), params: Vec::new() })
}

fn finish_reason(reason: &str, token: Option<&str>) -> FinishReason {
    match (reason, token) {
        ("CONTINUATION", Some(token)) => FinishReason::Continue(token.to_owned()),
        ("STOP" | "FINISH_REASON_UNSPECIFIED", _) => FinishReason::Stop,
        ("MAX_TOKENS", _) => FinishReason::Length,
        (blocked, _) if BLOCKED.contains(&blocked) => FinishReason::ContentFilter,
        (other, _) => FinishReason::Other(other.to_owned()),
    }
}

/// Reads the token counts. Gemini counts reasoning separately from the answer; this crate includes it.
fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(Node::as_u64);
    let thoughts = count("thoughtsTokenCount");
    Some(Usage {
        input_tokens: count("promptTokenCount")?,
        output_tokens: count("candidatesTokenCount").unwrap_or(0).saturating_add(thoughts.unwrap_or(0)),
        cached_input_tokens: count("cachedContentTokenCount"),
        reasoning_tokens: thoughts,
        input_audio_tokens: media_tokens(node, "promptTokensDetails", "AUDIO"),
        input_image_tokens: media_tokens(node, "promptTokensDetails", "IMAGE"),
        output_audio_tokens: media_tokens(node, "candidatesTokensDetails", "AUDIO"),
        output_image_tokens: media_tokens(node, "candidatesTokensDetails", "IMAGE"),
        service_tier: node.get("serviceTier").and_then(Node::as_str).map(str::to_owned),
        ..Usage::default()
    })
}

/// Returns the tokens of a kind of media; none if there are none.
fn media_tokens(node: Node<'_>, details: &str, modality: &str) -> Option<u64> {
    let is_kind = |entry: &Node<'_>| entry.get("modality").and_then(Node::as_str) == Some(modality);
    let entry = node.get(details)?.elements().find(is_kind)?;
    entry.get("tokenCount").and_then(Node::as_u64).filter(|count| *count > 0)
}

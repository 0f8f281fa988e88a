use cog_json::{Node, Reader};
use cog_spec::{FinishReason, ModelEvent, ToolCallDelta, Usage};
use serde_json::json;

use crate::protocol::{
    DecodeError, VendorError,
    frames::Frame,
    reply::{Reply, StartKeys, vendor_error},
};

const START: StartKeys = StartKeys { model: "model", id: "id" };

/// Reads the events of a message stream, or one message body.
pub(super) fn event(
    reply: &mut Reply,
    frame: &Frame<'_>,
    reader: &mut Reader,
    out: &mut Vec<ModelEvent>,
) -> Result<(), DecodeError> {
    let node = frame.json(reader)?;
    match node.get("type").and_then(Node::as_str).unwrap_or(frame.event) {
        "message_start" => {
            if let Some(message) = node.get("message") {
                reply.start(message, START, out);
                reply.usage(usage(reply, message), out);
            }
        }
        "content_block_start" => {
            if let Some(inner) = node.get("content_block") {
                block(reply, index(node), inner, out);
                start_reasoning(reply, inner, out);
            }
        }
        "content_block_delta" => {
            if let Some(delta) = node.get("delta") {
                block(reply, index(node), delta, out);
                if matches!(kind(delta), "thinking_delta" | "signature_delta") {
                    reply.parts.block(text(delta, "thinking"), text(delta, "signature"));
                }
            }
        }
        "content_block_stop" => {
            if let Some(item) = reply.parts.end_block() {
                reply.reasoning_item(item, out);
            }
        }
        "message_delta" => {
            stop(reply, node.get("delta"));
            reply.usage(usage(reply, node), out);
        }
        "message_stop" => reply.end(out),
        "message" => complete(reply, node, out),
        "error" => {
            return Err(DecodeError::Vendor(vendor_error(node).unwrap_or_else(VendorError::without_message)));
        }
        _ => {}
    }
    Ok(())
}

/// Reads a complete message in one body.
fn complete(reply: &mut Reply, message: Node<'_>, out: &mut Vec<ModelEvent>) {
    reply.start(message, START, out);
    let blocks = message.get("content").into_iter().flat_map(Node::elements);
    for (index, inner) in (0..).zip(blocks) {
        block(reply, index, inner, out);
        start_reasoning(reply, inner, out);
        if let Some(item) = reply.parts.end_block() {
            reply.reasoning_item(item, out);
        }
        if let Some(input) = inner.get("input") {
            let arguments = input.to_string();
            reply.tool_call(ToolCallDelta { index, id: None, name: None, arguments, signature: None }, out);
        }
    }
    stop(reply, Some(message));
    reply.usage(usage(reply, message), out);
    reply.end(out);
}

/// Reads the reasoning in a block, which is sent back unchanged. The position of a call among it is part of it.
fn start_reasoning(reply: &mut Reply, block: Node<'_>, out: &mut Vec<ModelEvent>) {
    match kind(block) {
        "thinking" => reply.parts.block(text(block, "thinking"), text(block, "signature")),
        "redacted_thinking" => {
            reply.parts.complete_block();
            reply.reasoning_item(block.to_value(), out);
        }
        "tool_use" if reply.parts.has_blocks() => {
            let (id, name) = (text(block, "id"), text(block, "name"));
            reply.reasoning_item(json!({ "type": "tool_use", "id": id, "name": name }).into(), out);
        }
        _ => {}
    }
}

fn kind(node: Node<'_>) -> &str {
    text(node, "type").unwrap_or_default()
}

fn text<'a>(node: Node<'a>, key: &str) -> Option<&'a str> {
    node.get(key).and_then(Node::as_str)
}

/// Reads a content block or a delta of one; their fields identify the kind.
fn block(reply: &mut Reply, index: u32, node: Node<'_>, out: &mut Vec<ModelEvent>) {
    let text = |key: &str| text(node, key);
    reply.reasoning(text("thinking"), out);
    reply.text(node.get("text"), out);
    let call = match node.get("type").and_then(Node::as_str) {
        Some("tool_use") => (text("id"), text("name"), None),
        Some("input_json_delta") => (None, None, text("partial_json")),
        _ => return,
    };
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let (id, name, arguments) = (owned(call.0), owned(call.1), owned(call.2).unwrap_or_default());
    reply.tool_call(ToolCallDelta { index, id, name, arguments, signature: None }, out);
}

fn index(node: Node<'_>) -> u32 {
    node.get("index").and_then(Node::as_u64).and_then(|index| u32::try_from(index).ok()).unwrap_or(0)
}

fn stop(reply: &mut Reply, delta: Option<Node<'_>>) {
    let Some(reason) = delta.and_then(|delta| delta.get("stop_reason")?.as_str()) else { return };
    let details = |key: &str| delta.and_then(|delta| delta.get("stop_details")?.get(key)?.as_str());
    let explanation = || details("explanation").map(str::to_owned);
    let category =
        || details("category").map(|category| format!("the request is in the category `{category}`"));
    reply.stop(match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::Refusal(explanation().or_else(category)),
        other => FinishReason::Other(other.to_owned()),
    });
}

/// Reads the token counts. Anthropic counts cached input separately; this crate includes it. Later counts are partial:
/// missing values stay unchanged.
fn usage(reply: &Reply, node: Node<'_>) -> Option<Usage> {
    let node = node.get("usage").filter(|usage| usage.is_object())?;
    let count = |path: &str| node.pointer(path).and_then(Node::as_u64);
    let before = reply.usage_so_far();
    let (cached, written) = (count("/cache_read_input_tokens"), count("/cache_creation_input_tokens"));
    let input = count("/input_tokens")
        .map(|fresh| fresh.saturating_add(written.unwrap_or(0)).saturating_add(cached.unwrap_or(0)));
    let tier = node.get("service_tier").and_then(Node::as_str).map(str::to_owned);
    Some(Usage {
        input_tokens: input.unwrap_or(before.input_tokens),
        output_tokens: count("/output_tokens").unwrap_or(before.output_tokens),
        cached_input_tokens: cached.or(before.cached_input_tokens),
        cache_write_input_tokens: written.or(before.cache_write_input_tokens),
        cache_write_1h_input_tokens: count("/cache_creation/ephemeral_1h_input_tokens")
            .or(before.cache_write_1h_input_tokens),
        reasoning_tokens: count("/output_tokens_details/thinking_tokens").or(before.reasoning_tokens),
        service_tier: tier.or(before.service_tier),
        ..Usage::default()
    })
}

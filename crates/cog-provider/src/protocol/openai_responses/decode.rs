use cog_json::{Node, Reader};
use cog_spec::{FinishReason, ModelEvent, ToolCallDelta, Usage};

use crate::protocol::{
    DecodeError, VendorError,
    frames::Frame,
    reply::{Reply, StartKeys, vendor_error},
};

const START: StartKeys = StartKeys { model: "model", id: "id" };

/// The marker that some servers send at the end of a stream.
const DONE: &str = "[DONE]";

/// Reads the events of a response stream, or one response body. Events about other matters are skipped; the final
/// event repeats what complete parts contain.
pub(super) fn event(
    reply: &mut Reply,
    frame: &Frame<'_>,
    reader: &mut Reader,
    out: &mut Vec<ModelEvent>,
) -> Result<(), DecodeError> {
    if matches!(frame.text.trim(), DONE | "") {
        return Ok(());
    }
    let node = frame.json(reader)?;
    let delta = node.get("delta");
    match node.get("type").and_then(Node::as_str).unwrap_or(frame.event) {
        "response.output_text.delta" => text(reply, index(node), delta, out),
        "response.refusal.delta" => reply.refusal(delta.and_then(Node::as_str)),
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            reply.reasoning(delta.and_then(Node::as_str), out);
        }
        "response.function_call_arguments.delta" => {
            call(reply, index(node), (None, None, delta), out);
        }
        "response.output_item.added" => item_added(reply, node, out),
        "response.output_item.done" => item_done(reply, node.get("item"), out),
        "response.created" | "response.in_progress" | "response.queued" => {
            if let Some(response) = node.get("response") {
                reply.start(response, START, out);
            }
        }
        "response.completed" | "response.incomplete" | "response.failed" => {
            return node.get("response").map_or(Ok(()), |node| response(reply, node, out));
        }
        "error" => return Err(DecodeError::Vendor(stream_error(node))),
        "" => return response(reply, node, out),
        _ => {}
    }
    Ok(())
}

/// Emits text of the answer, or of a message that comments on the work towards it.
fn text(reply: &mut Reply, index: u32, node: Option<Node<'_>>, out: &mut Vec<ModelEvent>) {
    match reply.commentary == Some(index) {
        true => reply.reasoning(node.and_then(Node::as_str), out),
        false => reply.text(node, out),
    }
}

fn item_added(reply: &mut Reply, node: Node<'_>, out: &mut Vec<ModelEvent>) {
    let (index, Some(item)) = (index(node), node.get("item")) else { return };
    match item.get("type").and_then(Node::as_str) {
        Some("message") if is_commentary(item) => reply.commentary = Some(index),
        Some("function_call") => call(reply, index, (item.get("call_id"), item.get("name"), None), out),
        _ => {}
    }
}

/// Reads a complete item. Its text has arrived before; only complete reasoning can be sent back, with the calls and
/// comments between it.
fn item_done(reply: &mut Reply, item: Option<Node<'_>>, out: &mut Vec<ModelEvent>) {
    let Some(item) = item else { return };
    let is_sent_back = match item.get("type").and_then(Node::as_str) {
        Some("reasoning") => item.get("encrypted_content").is_some_and(Node::is_string),
        Some("function_call") => true,
        Some("message") => is_commentary(item),
        _ => false,
    };
    if is_sent_back {
        reply.reasoning_item(item.to_value(), out);
    }
}

/// Reads a response in its final state: the body of a reply, or the end of a stream.
fn response(reply: &mut Reply, response: Node<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
    if let Some(error) = vendor_error(response) {
        return Err(DecodeError::Vendor(error));
    }
    let Some(status) = response.get("status").and_then(Node::as_str) else { return Ok(()) };
    if status == "failed" {
        return Err(DecodeError::Vendor(VendorError::without_message()));
    }
    reply.start(response, START, out);
    let items = || response.get("output").into_iter().flat_map(Node::elements);
    if !reply.has_content() {
        (0..).zip(items()).for_each(|(index, item)| complete_item(reply, index, item, out));
    }
    let calls = items().any(|item| item.get("type").and_then(Node::as_str) == Some("function_call"));
    let reason = response.pointer("/incomplete_details/reason").and_then(Node::as_str);
    reply.stop(finish_reason(status, reason, calls));
    reply.usage(usage(response), out);
    reply.end(out);
    Ok(())
}

/// Reads an item of a body.
fn complete_item(reply: &mut Reply, index: u32, item: Node<'_>, out: &mut Vec<ModelEvent>) {
    let parts = |key: &str| item.get(key).into_iter().flat_map(Node::elements);
    match item.get("type").and_then(Node::as_str) {
        Some("reasoning") => {
            let texts =
                parts("summary").chain(parts("content")).filter_map(|part| part.get("text")?.as_str());
            texts.for_each(|text| reply.reasoning(Some(text), out));
            item_done(reply, Some(item), out);
        }
        Some("message") => {
            reply.commentary = is_commentary(item).then_some(index);
            for part in parts("content") {
                text(reply, index, part.get("text"), out);
                reply.refusal(part.get("refusal").and_then(Node::as_str));
            }
            item_done(reply, Some(item), out);
        }
        Some("function_call") => {
            call(reply, index, (item.get("call_id"), item.get("name"), item.get("arguments")), out);
            item_done(reply, Some(item), out);
        }
        _ => {}
    }
}

/// Emits part of a function call: its ID, its name and a part of its arguments.
fn call(
    reply: &mut Reply,
    index: u32,
    (id, name, arguments): (Option<Node<'_>>, Option<Node<'_>>, Option<Node<'_>>),
    out: &mut Vec<ModelEvent>,
) {
    let text = |node: Option<Node<'_>>| Some(node?.as_str()?.to_owned());
    let (id, name, arguments) = (text(id), text(name), text(arguments).unwrap_or_default());
    reply.tool_call(ToolCallDelta { index, id, name, arguments, signature: None }, out);
}

/// Returns the index of the item that an event belongs to.
fn index(node: Node<'_>) -> u32 {
    node.get("output_index").and_then(Node::as_u64).and_then(|index| u32::try_from(index).ok()).unwrap_or(0)
}

fn is_commentary(item: Node<'_>) -> bool {
    item.get("phase").and_then(Node::as_str) == Some("commentary")
}

/// Reads an `error` event: `{code, message}`, or the same inside `error`.
fn stream_error(node: Node<'_>) -> VendorError {
    let error = node.get("error").filter(|error| error.is_object()).unwrap_or(node);
    let text = |key: &str| Some(error.get(key)?.as_str()?.to_owned());
    let code = text("code").or_else(|| text("type").filter(|kind| kind != "error"));
    text("message").map_or_else(VendorError::without_message, |message| VendorError {
        code,
        message,
        limit: None,
    })
}

fn finish_reason(status: &str, reason: Option<&str>, calls: bool) -> FinishReason {
    match (status, reason) {
        (_, Some("max_output_tokens")) => FinishReason::Length,
        (_, Some("content_filter")) => FinishReason::ContentFilter,
        (_, Some(other)) => FinishReason::Other(other.to_owned()),
        ("completed", None) if calls => FinishReason::ToolCalls,
        ("completed", None) => FinishReason::Stop,
        (other, None) => FinishReason::Other(other.to_owned()),
    }
}

/// Reads the token counts of a response, and the class of service beside them.
fn usage(response: Node<'_>) -> Option<Usage> {
    let node = response.get("usage")?;
    let count = |path: &str| node.pointer(path).and_then(Node::as_u64);
    Some(Usage {
        input_tokens: count("/input_tokens")?,
        output_tokens: count("/output_tokens").unwrap_or(0),
        cached_input_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_input_tokens: count("/input_tokens_details/cache_write_tokens"),
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
        service_tier: response.get("service_tier").and_then(Node::as_str).map(str::to_owned),
        ..Usage::default()
    })
}

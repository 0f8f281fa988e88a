use cog_json::{Node, Reader};
use cog_spec::{FinishReason, ModelEvent, ToolCallDelta, Usage};

use crate::protocol::{
    DecodeError,
    frames::Frame,
    reply::{Reply, StartKeys, check_error},
};

/// Reads lines of `{message, done}`; the last one has `done: true` and the counts.
pub(super) fn line(
    reply: &mut Reply,
    frame: &Frame<'_>,
    reader: &mut Reader,
    out: &mut Vec<ModelEvent>,
) -> Result<(), DecodeError> {
    let node = frame.json(reader)?;
    check_error(node)?;
    reply.start(node, StartKeys { model: "model", id: "id" }, out);
    if let Some(message) = node.get("message") {
        if let Some(thinking) = message.get("thinking").and_then(Node::as_str).filter(|text| !text.is_empty())
        {
            reply.reasoning(Some(thinking), out);
            reply.parts.text("thinking", thinking);
        }
        reply.text(message.get("content"), out);
        for call in message.get("tool_calls").into_iter().flat_map(Node::elements) {
            let index = reply.next_call();
            reply.tool_call(tool_call(index, call), out);
        }
    }
    if node.get("done").and_then(Node::as_bool) == Some(true) {
        reply.usage(usage(node), out);
        reply.stop(finish_reason(node.get("done_reason").and_then(Node::as_str)));
        reply.end(out);
    }
    Ok(())
}

fn tool_call(index: u32, call: Node<'_>) -> ToolCallDelta {
    let name = call.pointer("/function/name").and_then(Node::as_str).map(str::to_owned);
    let arguments = call.pointer("/function/arguments").map(|args| args.to_string()).unwrap_or_default();
    let id = call.get("id").and_then(Node::as_str).map(str::to_owned);
    ToolCallDelta { index, id, name, arguments, signature: None }
}

fn finish_reason(reason: Option<&str>) -> FinishReason {
    match reason {
        None | Some("stop" | "") => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(Node::as_u64);
    let output_tokens = count("eval_count")?;
    let input_tokens = count("prompt_eval_count").unwrap_or(0);
    Some(Usage { input_tokens, output_tokens, ..Usage::default() })
}

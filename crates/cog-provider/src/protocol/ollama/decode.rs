use cog_json::Node;
use cog_spec::{FinishReason, ModelEvent, ToolCallDelta, Usage};

use crate::protocol::{
    DecodeError, Decoder,
    frames::{Frame, Frames},
    reply::{Reply, StartKeys, fault_in},
};

/// Reads lines of `{message, done}`; the last one has `done: true` and the counts.
pub(super) struct OllamaDecoder {
    frames: Frames,
    reply: Reply,
    /// Calls so far: each arrives whole, without an index.
    calls: u32,
}

impl OllamaDecoder {
    pub(super) fn new() -> Self {
        Self { frames: Frames::lines(), reply: Reply::default(), calls: 0 }
    }
}

impl Decoder for OllamaDecoder {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let Self { frames, reply, calls } = self;
        frames.push(bytes, &mut |frame| line(reply, calls, &frame, out))
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let Self { frames, reply, calls } = self;
        frames.finish(&mut |frame| line(reply, calls, &frame, out))?;
        reply.close(out)
    }
}

fn line(
    reply: &mut Reply,
    calls: &mut u32,
    frame: &Frame<'_>,
    out: &mut Vec<ModelEvent>,
) -> Result<(), DecodeError> {
    let value = frame.json()?;
    let node = value.node();
    if node.get("error").is_some()
        && let Some(fault) = fault_in(node)
    {
        return Err(DecodeError::Vendor(fault));
    }
    reply.start(node, StartKeys { model: "model", id: "id" }, out);
    if let Some(message) = node.get("message") {
        reply.reasoning(message.get("thinking").and_then(Node::as_str), out);
        reply.text(message.get("content").and_then(Node::as_str), out);
        for call in message.get("tool_calls").into_iter().flat_map(Node::elements) {
            reply.tool_call(tool_call(*calls, call), out);
            *calls += 1;
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
    ToolCallDelta { index, id: None, name, arguments }
}

fn finish_reason(word: Option<&str>) -> FinishReason {
    match word {
        None | Some("stop" | "") => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(Node::as_u64);
    let output_tokens = count("eval_count")?;
    let input_tokens = count("prompt_eval_count").unwrap_or(0);
    Some(Usage { input_tokens, output_tokens, cached_input_tokens: None, reasoning_tokens: None })
}

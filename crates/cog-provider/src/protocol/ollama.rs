//! Ollama's own protocol: `POST /api/chat`, one JSON object per line.

use cog_harmony::{Message, Part, Role, ToolCall, ToolChoice, wire::write_arguments};
use cog_json::{Node, Reader, Writer};
use cog_spec::{Dialect, FinishReason, ModelEvent, ToolCallDelta, Usage};

use super::{Decoder, FrameDecoder, Protocol, RequestContext, frames::Frames, parts};
use crate::{
    ListedModel, OutputSchema, RequestError, WireRequest,
    protocol::{
        DecodeError,
        frames::Frame,
        parts::{Options, check_inline, inline, post},
        reply::{Reply, StartKeys, check_error},
        tools::{Turn, function_tool, media_message, turns},
    },
};

/// The Ollama protocol.
pub(crate) struct Ollama;

impl Protocol for Ollama {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        parts::check_inline(context)
    }

    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        request(context)
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        Box::new(FrameDecoder::new(Frames::lines(limit), line))
    }

    fn models_path(&self, _base_url: &str) -> String {
        "/api/tags".to_owned()
    }

    /// Reads `{models: [{name}]}`.
    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        let list = body.get("models").into_iter().flat_map(Node::elements);
        list.filter_map(|model| Some(ListedModel::named(model.get("name")?.as_str()?))).collect()
    }
}

/// Reads lines of `{message, done}`; the last one has `done: true` and the counts.
fn line(
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

const OPTIONS: Options = Options { max_tokens: "num_predict", seed: Some("seed"), stop: "stop" };

fn request(context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
    check_inline(context)?;
    let mut request = post(format!("{}/api/chat", context.base_url), true, |w| body(w, context));
    request.headers.retain(|(name, _)| *name != "accept");
    Ok(request)
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    w.field("model", context.model);
    w.key("messages").array(|w| {
        turns(context.request.messages.messages()).iter().for_each(|turn| write_turn(w, turn, context));
    });
    // The protocol has no member for the choice.
    let tools = context.request.tools.as_deref().filter(|tools| tools.choice != ToolChoice::None);
    if let Some(tools) = tools {
        w.key("tools").array(|w| tools.definitions.iter().for_each(|tool| function_tool(w, tool)));
    }
    if let Some(output) = context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt)
    {
        write_output(w, output);
    }
    if OPTIONS.are_set(&context.request.generation) {
        w.key("options").object(|w| OPTIONS.write(w, &context.request.generation));
    }
    context.write_effort_members(w);
    w.field("stream", &true);
    // By default the server silently drops the beginning of a prompt that exceeds its context window.
    w.field("truncate", &false).field("shift", &false);
}

fn write_output(w: &mut Writer<'_>, output: &OutputSchema) {
    match &output.schema {
        Some(schema) => w.field("format", schema),
        None => w.field("format", "json"),
    };
}

fn write_turn(w: &mut Writer<'_>, turn: &Turn<'_>, context: &RequestContext<'_>) {
    match turn {
        Turn::Message(message) => write_message(w, message, context),
        Turn::Text(text) => write_message(w, &Message::user(text.as_str()), context),
        Turn::Results(results) => {
            for result in results {
                w.object(|w| {
                    w.field("role", Role::Tool.as_str()).field("content", &result.message.text());
                    w.field("tool_name", result.name);
                });
            }
            if let Some(media) = media_message(results) {
                write_message(w, &media, context);
            }
        }
    }
}

fn write_message(w: &mut Writer<'_>, message: &Message, context: &RequestContext<'_>) {
    let images = || {
        message.content.iter().filter_map(|part| match part {
            Part::Image(image) => inline(image),
            _ => None,
        })
    };
    w.object(|w| {
        w.field("role", message.role.as_str()).field("content", &message.text());
        if images().next().is_some() {
            w.key("images").array(|w| {
                images().for_each(|(_, data)| {
                    w.item(data);
                });
            });
        }
        context.write_reasoning_members(w, message);
        if !message.tool_calls.is_empty() {
            w.key("tool_calls").array(|w| message.tool_calls.iter().for_each(|call| write_call(w, call)));
        }
    });
}

fn write_call(w: &mut Writer<'_>, call: &ToolCall) {
    w.object(|w| {
        w.key("function").object(|w| {
            w.field("name", &call.name);
            write_arguments(w.key("arguments"), call);
        });
    });
}

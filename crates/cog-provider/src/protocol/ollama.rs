//! Ollama's own protocol: `POST /api/chat`, one JSON object per line.

use cog_harmony::{Message, Part, Role, ToolCall, ToolChoice, wire::write_arguments};
use cog_json::{Node, Writer};
use cog_spec::{Dialect, FinishReason, ToolCallDelta, Usage};

use super::{
    DecodeError, Decoder, Protocol, RequestContext,
    decoder::{Event, FrameDecoder},
    parts::{Options, Turn, check_inline, function_tool, inline, media_message, turns},
    reply::{Reply, check_error, count, elements, string},
};
use crate::{ListedModel, OutputSchema, RequestError};

/// The Ollama protocol.
pub(crate) struct Ollama;

impl Protocol for Ollama {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        check_inline(context)
    }

    fn url(&self, context: &RequestContext<'_>) -> String {
        format!("{}/api/chat", context.base_url)
    }

    /// The server streams lines, whatever a request accepts.
    fn accept(&self, _context: &RequestContext<'_>) -> Option<&'static str> {
        None
    }

    fn write_body(&self, w: &mut Writer<'_>, context: &RequestContext<'_>) {
        body(w, context);
    }

    fn text_results(&self) -> bool {
        true
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        FrameDecoder::lines(limit, line)
    }

    fn models_path(&self, _base_url: &str) -> String {
        "/api/tags".to_owned()
    }

    /// Reads `{models: [{name}]}`.
    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        elements(body, "models")
            .filter_map(|model| Some(ListedModel::named(model.get_str("name")?)))
            .collect()
    }
}

/// Reads lines of `{message, done}`; the last one has `done: true` and the counts.
fn line(reply: &mut Reply<'_>, event: Event<'_>) -> Result<(), DecodeError> {
    let node = event.node;
    check_error(node)?;
    reply.start(node);
    if let Some(message) = node.get("message") {
        if let Some(thinking) = message.get_str("thinking").filter(|text| !text.is_empty()) {
            reply.reasoning(Some(thinking));
            reply.parts().text("thinking", thinking);
        }
        reply.text(message.get("content"));
        for call in elements(message, "tool_calls") {
            // A call arrives complete, and without an index.
            let index = reply.next_call();
            reply.tool_call(tool_call(index, call));
        }
    }
    let reason = node.get_str("done_reason").filter(|reason| !reason.is_empty());
    // Some servers that copy the protocol send only the reason.
    if node.get("done").and_then(Node::as_bool) == Some(true) || reason.is_some() {
        reply.usage(usage(node));
        reply.stop(finish_reason(reason));
        return reply.end();
    }
    Ok(())
}

fn tool_call(index: u32, call: Node<'_>) -> ToolCallDelta {
    let function = call.get("function");
    let arguments = function.and_then(|function| function.get("arguments"));
    ToolCallDelta {
        index,
        id: string(call, "id"),
        name: function.and_then(|function| string(function, "name")),
        arguments: arguments.map(|arguments| arguments.to_string()).unwrap_or_default(),
        signature: None,
    }
}

fn finish_reason(reason: Option<&str>) -> FinishReason {
    match reason {
        None | Some("stop") => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

fn usage(node: Node<'_>) -> Option<Usage> {
    let output_tokens = count(node, "/eval_count")?;
    // A prompt that the server has in its cache has no count.
    let input_tokens = count(node, "/prompt_eval_count").unwrap_or(0);
    Some(Usage { input_tokens, output_tokens, ..Usage::default() })
}

const OPTIONS: Options = Options { max_tokens: "num_predict", seed: Some("seed"), stop: "stop" };

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    w.field("model", context.model);
    let messages = context.messages();
    w.key("messages").array(|w| {
        turns(&*messages).iter().for_each(|turn| write_turn(w, turn, context));
    });
    // The protocol has no member for the choice: without tools the model calls none.
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
    let images: Vec<&str> = message.content.iter().filter_map(image_data).collect();
    w.object(|w| {
        w.field("role", message.role.as_str()).field("content", &message.text());
        if !images.is_empty() {
            w.field("images", &images);
        }
        context.write_reasoning_members(w, message);
        if !message.tool_calls.is_empty() {
            w.key("tool_calls").array(|w| message.tool_calls.iter().for_each(|call| write_call(w, call)));
        }
    });
}

/// Returns the base64 data of an image.
fn image_data(part: &Part) -> Option<&str> {
    match part {
        Part::Image(image) => inline(image).map(|(_, data)| data),
        _ => None,
    }
}

fn write_call(w: &mut Writer<'_>, call: &ToolCall) {
    w.object(|w| {
        w.key("function").object(|w| {
            w.field("name", &call.name);
            write_arguments(w.key("arguments"), call);
        });
    });
}

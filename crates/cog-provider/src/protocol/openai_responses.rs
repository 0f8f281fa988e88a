//! OpenAI Responses: `POST /responses`.
//!
//! Every request has `store: false`: the vendor does not store the response for later requests.

use std::borrow::Cow;

use cog_harmony::{
    Message, Part, Role, ToolChoice, ToolDefinition,
    wire::{Step, steps, write_responses_call, write_responses_part},
};
use cog_json::{Node, Reader, Value, Writer};
use cog_spec::{Dialect, FinishReason, Modality, ModelEvent, ToolCallDelta, Usage};

use super::{Decoder, FrameDecoder, Protocol, RequestContext, frames::Frames, openai_chat::OpenAiChat};
use crate::{
    ListedModel, OutputSchema, RequestError, ToolRequest, WireRequest,
    protocol::{
        DecodeError, VendorError,
        frames::Frame,
        parts::{self, cached_text, filename, has_text, modality, only_text, post, schema_name},
        reply::{Reply, StartKeys, vendor_error},
        tools::{ToolResult, Turn, choice_name, media_message, turns},
    },
};

/// The OpenAI Responses protocol.
pub(crate) struct OpenAiResponses;

impl Protocol for OpenAiResponses {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        check(context)
    }

    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        request(context)
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        Box::new(FrameDecoder::new(Frames::events(limit), event))
    }

    fn models_path(&self, base_url: &str) -> String {
        OpenAiChat.models_path(base_url)
    }

    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        OpenAiChat.models(body)
    }
}

const START: StartKeys = StartKeys { model: "model", id: "id" };

/// The marker that some servers send at the end of a stream.
const DONE: &str = "[DONE]";

/// Reads the events of a response stream, or one response body. Events about other matters are skipped; the final
/// event repeats what complete parts contain.
fn event(
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

/// Checks a request. The protocol has no parameter for a seed or stop sequences, and no part for audio and video.
fn check(context: &RequestContext<'_>) -> Result<(), RequestError> {
    parts::check(context)?;
    let generation = &context.request.generation;
    if generation.seed.is_some() {
        return Err(context.unsupported("seed"));
    }
    if !generation.stop.is_empty() {
        return Err(context.unsupported("stop"));
    }
    let vendor = context.vendor.title;
    let parts = context.request.messages.messages().iter().flat_map(|message| &message.content);
    match parts.map(modality).find(|kind| matches!(kind, Modality::Audio | Modality::Video)) {
        Some(modality) => Err(RequestError::Modality { vendor, modality }),
        None => Ok(()),
    }
}

fn request(context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
    check(context)?;
    let output = context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt);
    let streams = output.is_none() || context.vendor.quirks.streams_schema;
    let url = format!("{}/responses", context.base_url);
    Ok(post(url, streams, |w| body(w, context, output, streams)))
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>, output: Option<&OutputSchema>, streams: bool) {
    let quirks = &context.vendor.quirks;
    let verbosity = context.request.generation.verbosity;
    w.field("model", context.model);
    w.key("input").array(|w| {
        turns(context.request.messages.messages()).iter().for_each(|turn| write_turn(w, turn, context));
    });
    if let Some(tools) = &context.request.tools {
        write_tools(w, tools, context);
    }
    if output.is_some() || verbosity.is_some() {
        w.key("text").object(|w| {
            output.iter().for_each(|output| format(w.key("format"), output));
            w.optional("verbosity", &verbosity);
        });
    }
    options(w, context);
    w.field("store", &false).field("stream", &streams);
    if streams && quirks.pads_events && context.request.stream_options {
        w.key("stream_options").object(|w| {
            w.field("include_obfuscation", &false);
        });
    }
    for (key, value) in quirks.extra {
        w.optional(key, &Value::parse(value).ok());
    }
}

fn options(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    if let Some(effort) = context.effort() {
        w.key("reasoning").object(|w| {
            w.field("effort", effort);
        });
    }
    context.write_effort_members(w);
    w.optional("service_tier", &context.service_tier());
    context.write_cache_key(w);
    w.optional("max_output_tokens", &context.request.generation.max_tokens);
    w.optional("temperature", &context.request.generation.temperature);
}

fn format(w: &mut Writer<'_>, output: &OutputSchema) {
    let schema = output.schema.as_ref().filter(|_| output.dialect != Dialect::JsonObject);
    w.object(|w| match schema {
        None => {
            w.field("type", "json_object");
        }
        Some(schema) => {
            w.field("type", "json_schema").field("name", &schema_name(&output.name));
            w.field("strict", &(output.dialect == Dialect::OpenAiStrict)).field("schema", schema);
        }
    });
}

/// Writes the tools, which of them the model may call, and a request for its reasoning, which is sent back.
fn write_tools(w: &mut Writer<'_>, tools: &ToolRequest, context: &RequestContext<'_>) {
    let settings = context.tool_settings();
    w.key("tools").array(|w| tools.definitions.iter().for_each(|tool| function_tool(w, tool)));
    w.optional("tool_choice", &choice_name(tools));
    if let ToolChoice::Named(name) = &tools.choice {
        w.key("tool_choice").object(|w| {
            w.field("type", "function").field("name", name);
        });
    }
    if settings.limits_calls {
        w.field("parallel_tool_calls", &tools.parallel);
    }
    if settings.encrypted_reasoning {
        w.field("include", &["reasoning.encrypted_content"]);
    }
}

/// Writes a tool. Without `strict: false`, the vendor enforces the schema.
fn function_tool(w: &mut Writer<'_>, tool: &ToolDefinition) {
    w.object(|w| {
        w.field("type", "function").field("name", &tool.name).field("description", &tool.description);
        w.field("parameters", &tool.parameters).field("strict", &tool.strict);
    });
}

fn write_turn(w: &mut Writer<'_>, turn: &Turn<'_>, context: &RequestContext<'_>) {
    match turn {
        Turn::Message(message) if message.tool_calls.is_empty() => items(w, message, context),
        Turn::Message(message) => {
            let steps = steps(message, context.own_reasoning(message), "call_id");
            steps.iter().for_each(|step| write_step(w, message, step));
        }
        Turn::Text(text) => message(w, &Message::user(text.as_str()), context),
        Turn::Results(results) => {
            let has_media = context.tool_settings().result_media;
            results.iter().for_each(|result| write_result(w, result, has_media));
            if let Some(media) = media_message(results).filter(|_| !has_media) {
                message(w, &media, context);
            }
        }
    }
}

fn write_step(w: &mut Writer<'_>, message: &Message, step: &Step<'_>) {
    match step {
        Step::Reasoning(item) | Step::Call(_, Some(item)) => w.node(*item),
        Step::Content if !has_text(message) => {}
        Step::Content => w.object(|w| {
            w.field("role", Role::Assistant.as_str()).field("content", &message.text());
        }),
        Step::Call(call, None) => w.object(|w| write_responses_call(w, call)),
    }
}

fn write_result(w: &mut Writer<'_>, result: &ToolResult<'_>, has_media: bool) {
    w.object(|w| {
        w.field("type", "function_call_output").field("call_id", result.id).key("output");
        match has_media && result.media().next().is_some() {
            true => w.array(|w| result.message.content.iter().for_each(|part| block(w, part))),
            false => w.string(&result.message.text()),
        }
    });
}

/// Writes a message, after the reasoning that led to it.
fn items(w: &mut Writer<'_>, written: &Message, context: &RequestContext<'_>) {
    let is_reasoning = |item: &&Value| item.get("type").and_then(Node::as_str) == Some("reasoning");
    let reasoning = context.own_reasoning(written).iter().filter(is_reasoning);
    reasoning.for_each(|item| w.node(item.node()));
    message(w, written, context);
}

fn message(w: &mut Writer<'_>, message: &Message, context: &RequestContext<'_>) {
    w.object(|w| {
        w.field("role", message.role.as_str());
        content(w.key("content"), message, context);
    });
}

/// Writes the content of a message; only user messages contain anything but text.
fn content(w: &mut Writer<'_>, message: &Message, context: &RequestContext<'_>) {
    let text = match message.role {
        Role::User => only_text(message).map(Cow::Borrowed),
        _ => Some(Cow::Owned(message.text())),
    };
    match text {
        Some(text) if context.has_breakpoint(message) => cached_text(w, "input_text", &text),
        Some(text) => w.string(&text),
        None => w.array(|w| message.content.iter().for_each(|part| block(w, part))),
    }
}

fn block(w: &mut Writer<'_>, part: &Part) {
    w.object(|w| write_responses_part(w, part, filename(part).as_deref()));
}

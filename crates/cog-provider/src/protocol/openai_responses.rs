//! OpenAI Responses: `POST /responses`.
//!
//! Every request has `store: false`: the vendor does not store the response for later requests.

use std::{borrow::Cow, collections::HashSet};

use cog_harmony::{
    Message, Part, Role, ToolChoice, ToolDefinition,
    wire::{Step, steps, write_responses_call, write_responses_part},
};
use cog_json::{Node, Value, Writer};
use cog_spec::{Dialect, FinishReason, Modality, ToolCallDelta, Usage};

use super::{
    DecodeError, Decoder, Protocol, RequestContext, VendorError,
    decoder::{Event, FrameDecoder},
    openai_chat::{ALTERNATIVES, OpenAiChat, tokens},
    parts::{
        self, ToolResult, Turn, accepted, cached_text, choice_name, filename, has_text, media_message,
        modality, only_text, projected, schema_name, turns,
    },
    reply::{self, Reply, count, elements, string},
};
use crate::{ListedModel, OutputSchema, RequestError, ToolRequest};

/// The OpenAI Responses protocol.
pub(crate) struct OpenAiResponses;

impl Protocol for OpenAiResponses {
    /// Checks a request. The protocol has no parameter for a seed or stop sequences, and no part for audio and video.
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        parts::check(context)?;
        let generation = &context.request.generation;
        if generation.seed.is_some() {
            return Err(context.unsupported("seed"));
        }
        if !generation.stop.is_empty() {
            return Err(context.unsupported("stop"));
        }
        match context.parts().map(modality).find(|kind| matches!(kind, Modality::Audio | Modality::Video)) {
            Some(modality) => Err(RequestError::Modality { vendor: context.vendor.title, modality }),
            None => Ok(()),
        }
    }

    fn url(&self, context: &RequestContext<'_>) -> String {
        format!("{}/responses", context.base_url)
    }

    fn accept(&self, context: &RequestContext<'_>) -> Option<&'static str> {
        Some(accepted(streams(context)))
    }

    fn write_body(&self, w: &mut Writer<'_>, context: &RequestContext<'_>) {
        body(w, context);
    }

    /// Returns the modalities without audio and video, for which the protocol has no part.
    fn input_limits(&self, accepted: &'static [Modality]) -> &'static [Modality] {
        if accepted.contains(&Modality::Document) {
            &[Modality::Text, Modality::Image, Modality::Document]
        } else if accepted.contains(&Modality::Image) {
            &[Modality::Text, Modality::Image]
        } else {
            &[Modality::Text]
        }
    }

    fn recording_suffix(&self) -> Option<&'static str> {
        Some("responses")
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        FrameDecoder::events(limit, event)
    }

    fn models_path(&self, base_url: &str) -> String {
        OpenAiChat.models_path(base_url)
    }

    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        OpenAiChat.models(body)
    }
}

/// Reads the events of a response stream, or one response body. Events about other matters are skipped; the final
/// event repeats what complete parts contain.
fn event(reply: &mut Reply<'_>, event: Event<'_>) -> Result<(), DecodeError> {
    let node = event.node;
    let delta = node.get("delta");
    match event.kind() {
        "response.output_text.delta" => {
            text(reply, index(node), delta);
            reply.tokens(tokens(elements(node, "logprobs")));
        }
        "response.refusal.delta" => reply.refusal(delta.and_then(Node::as_str)),
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            reply.reasoning(delta.and_then(Node::as_str));
        }
        "response.function_call_arguments.delta" => {
            let arguments = string(node, "delta").unwrap_or_default();
            reply.tool_call(ToolCallDelta { index: index(node), arguments, ..ToolCallDelta::default() });
        }
        "response.output_item.added" => item_added(reply, node),
        "response.output_item.done" => item_done(reply, node.get("item")),
        "response.created" | "response.in_progress" | "response.queued" => {
            if let Some(response) = node.get("response") {
                reply.start(response);
            }
        }
        "response.completed" | "response.incomplete" | "response.failed" => {
            return node.get("response").map_or(Ok(()), |node| response(reply, node));
        }
        "error" => return Err(DecodeError::Vendor(VendorError::of_event(node))),
        "" => return response(reply, node),
        _ => {}
    }
    Ok(())
}

/// Emits text of the answer, or of a message that comments on the work towards it.
fn text(reply: &mut Reply<'_>, index: u32, node: Option<Node<'_>>) {
    match reply.is_commentary(index) {
        true => reply.reasoning(node.and_then(Node::as_str)),
        false => reply.text(node),
    }
}

fn item_added(reply: &mut Reply<'_>, node: Node<'_>) {
    let Some(item) = node.get("item") else { return };
    match item.get_str("type") {
        Some("message") if is_commentary(item) => reply.set_commentary(Some(index(node))),
        // The arguments follow in deltas. Those that an item has already are not part of them.
        Some("function_call") => {
            reply.tool_call(ToolCallDelta { arguments: String::new(), ..call(index(node), item) });
        }
        _ => {}
    }
}

/// Reads a complete item. Its text has arrived before; only complete reasoning can be sent back, with the calls and
/// comments between it.
fn item_done(reply: &mut Reply<'_>, item: Option<Node<'_>>) {
    let Some(item) = item else { return };
    let is_sent_back = match item.get_str("type") {
        Some("reasoning") => item.get("encrypted_content").is_some_and(Node::is_string),
        // Between the reasoning, the vendor expects the items that it sent there, in the same order.
        Some("function_call") => true,
        Some("message") => is_commentary(item),
        _ => false,
    };
    if is_sent_back {
        reply.reasoning_item(item.to_value());
    }
}

/// Reads a response in its final state: the body of a reply, or the end of a stream.
fn response(reply: &mut Reply<'_>, response: Node<'_>) -> Result<(), DecodeError> {
    if let Some(error) = VendorError::read(response) {
        return Err(DecodeError::Vendor(error));
    }
    let Some(status) = response.get_str("status") else { return Ok(()) };
    if status == "failed" {
        return Err(DecodeError::Vendor(VendorError::without_message()));
    }
    reply.start(response);
    // After a stream, the text has already arrived in deltas.
    if !reply.has_content() {
        let mut seen = HashSet::new();
        // A body and a stream number their items alike.
        for (index, item) in (0..).zip(elements(response, "output")) {
            // Some servers list an item twice, which would give the answer twice.
            if item.get_str("id").is_none_or(|id| seen.insert(id)) {
                complete_item(reply, index, item);
            }
        }
    }
    let calls = elements(response, "output").any(|item| item.get_str("type") == Some("function_call"));
    let reason = response.pointer("/incomplete_details/reason").and_then(Node::as_str);
    reply.stop(finish_reason(status, reason, calls));
    reply.usage(usage(response));
    reply.end()
}

/// Reads an item of a body.
fn complete_item(reply: &mut Reply<'_>, index: u32, item: Node<'_>) {
    match item.get_str("type") {
        Some("reasoning") => {
            let parts = elements(item, "summary").chain(elements(item, "content"));
            parts.for_each(|part| reply.reasoning(part.get_str("text")));
        }
        Some("message") => {
            reply.set_commentary(is_commentary(item).then_some(index));
            for part in elements(item, "content") {
                text(reply, index, part.get("text"));
                reply.tokens(tokens(elements(part, "logprobs")));
                reply.refusal(part.get_str("refusal"));
            }
        }
        Some("function_call") => reply.tool_call(call(index, item)),
        _ => return,
    }
    item_done(reply, Some(item));
}

/// Reads a function call.
fn call(index: u32, item: Node<'_>) -> ToolCallDelta {
    ToolCallDelta {
        index,
        id: string(item, "call_id"),
        name: string(item, "name"),
        arguments: string(item, "arguments").unwrap_or_default(),
        signature: None,
    }
}

/// Returns the index of the item that an event belongs to.
fn index(node: Node<'_>) -> u32 {
    reply::index(node, "output_index").unwrap_or(0)
}

fn is_commentary(item: Node<'_>) -> bool {
    item.get_str("phase") == Some("commentary")
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

/// Reads the token counts of a response, and its class of service.
fn usage(response: Node<'_>) -> Option<Usage> {
    let node = response.get("usage")?;
    Some(Usage {
        input_tokens: count(node, "/input_tokens")?,
        output_tokens: count(node, "/output_tokens").unwrap_or(0),
        cached_input_tokens: count(node, "/input_tokens_details/cached_tokens"),
        cache_write_input_tokens: count(node, "/input_tokens_details/cache_write_tokens"),
        reasoning_tokens: count(node, "/output_tokens_details/reasoning_tokens"),
        service_tier: string(response, "service_tier"),
        ..Usage::default()
    })
}

fn streams(context: &RequestContext<'_>) -> bool {
    projected(context).is_none() || context.vendor.quirks.streams_schema
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    let quirks = &context.vendor.quirks;
    let streams = streams(context);
    let output = projected(context);
    let verbosity = context.request.generation.verbosity;
    w.field("model", context.model);
    w.key("input").array(|w| {
        turns(&*context.messages()).iter().for_each(|turn| write_turn(w, turn, context));
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
    include(w, context);
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

/// Requests what a reply has only on request: the reasoning, which is sent back, and the probabilities of tokens.
fn include(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    let mut names = Vec::new();
    if context.request.tools.is_some() && context.tool_settings().encrypted_reasoning {
        names.push("reasoning.encrypted_content");
    }
    if context.asks_probabilities() {
        names.push("message.output_text.logprobs");
        w.field("top_logprobs", &ALTERNATIVES);
    }
    if !names.is_empty() {
        w.field("include", &names);
    }
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

/// Writes the tools, and which of them the model may call.
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
    let items = context.own_reasoning(written).iter().map(Value::node);
    items.filter(|item| item.get_str("type") == Some("reasoning")).for_each(|item| w.node(item));
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

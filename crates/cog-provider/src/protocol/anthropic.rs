//! Anthropic Messages: `POST /v1/messages`, API version 2026-10-21.

use cog_harmony::{
    Message, Part, ToolChoice, ToolDefinition,
    wire::{Step, reports_error, steps, write_anthropic_call, write_anthropic_part},
};
use cog_json::{Node, Value, Writer};
use cog_spec::{Dialect, FinishReason, ToolCallDelta, Usage};
use serde_json::json;

use super::{
    DecodeError, Decoder, Protocol, RequestContext, VendorError,
    decoder::{Event, FrameDecoder},
    parts::{self, ToolResult, Turn, has_text, list, only_text, split_system},
    reply::{self, Reply, check_error, count, elements, string},
};
use crate::{ListedModel, RequestError, ToolRequest, vendors::CacheMark};

/// The Anthropic Messages protocol.
pub(crate) struct Anthropic;

/// The API version of the requests.
const VERSION: &str = "2026-10-21";

impl Protocol for Anthropic {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        parts::check(context)
    }

    fn url(&self, context: &RequestContext<'_>) -> String {
        format!("{}{}/messages", context.base_url, version_path(context.base_url))
    }

    fn write_body(&self, w: &mut Writer<'_>, context: &RequestContext<'_>) {
        body(w, context);
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("anthropic-version", VERSION.to_owned())]
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        FrameDecoder::events(limit, event)
    }

    fn models_path(&self, base_url: &str) -> String {
        format!("{}/models?limit=1000", version_path(base_url))
    }

    /// Reads `{data: [{id, max_input_tokens, …}]}`.
    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        elements(body, "data").filter_map(ListedModel::from_anthropic).collect()
    }
}

/// Returns `/v1`, unless the base URL ends with it.
pub(crate) fn version_path(base_url: &str) -> &'static str {
    if base_url.ends_with("/v1") { "" } else { "/v1" }
}

/// Reads the events of a message stream, or one message body.
fn event(reply: &mut Reply<'_>, event: Event<'_>) -> Result<(), DecodeError> {
    let node = event.node;
    match event.kind() {
        "message_start" => {
            if let Some(message) = node.get("message") {
                reply.start(message);
                reply.usage(usage(reply, message));
            }
        }
        "content_block_start" => {
            if let Some(inner) = node.get("content_block") {
                block(reply, index(node), inner);
                start_reasoning(reply, inner);
            }
        }
        "content_block_delta" => {
            if let Some(delta) = node.get("delta") {
                block(reply, index(node), delta);
                if matches!(kind(delta), "thinking_delta" | "signature_delta") {
                    reply.parts().block(delta.get_str("thinking"), delta.get_str("signature"));
                }
            }
        }
        "content_block_stop" => {
            if let Some(item) = reply.parts().end_block() {
                reply.reasoning_item(item);
            }
        }
        "message_delta" => {
            stop(reply, node.get("delta"));
            reply.usage(usage(reply, node));
        }
        "message_stop" => return reply.end(),
        "message" => return complete(reply, node),
        "error" => return Err(DecodeError::Vendor(VendorError::of_event(node))),
        // A gateway's error has no type.
        "" => return check_error(node),
        _ => {}
    }
    Ok(())
}

/// Reads a complete message in one body.
fn complete(reply: &mut Reply<'_>, message: Node<'_>) -> Result<(), DecodeError> {
    reply.start(message);
    for (index, inner) in (0..).zip(elements(message, "content")) {
        block(reply, index, inner);
        start_reasoning(reply, inner);
        if let Some(item) = reply.parts().end_block() {
            reply.reasoning_item(item);
        }
        if let Some(input) = inner.get("input") {
            reply.tool_call(ToolCallDelta {
                index,
                arguments: input.to_string(),
                ..ToolCallDelta::default()
            });
        }
    }
    stop(reply, Some(message));
    reply.usage(usage(reply, message));
    reply.end()
}

/// Reads the reasoning in a block, which is sent back unchanged. The position of a call among it is part of it.
fn start_reasoning(reply: &mut Reply<'_>, block: Node<'_>) {
    match kind(block) {
        "thinking" => reply.parts().block(block.get_str("thinking"), block.get_str("signature")),
        "redacted_thinking" => {
            reply.parts().complete_block();
            reply.reasoning_item(block.to_value());
        }
        "tool_use" if reply.parts().has_blocks() => {
            let call =
                json!({ "type": "tool_use", "id": block.get_str("id"), "name": block.get_str("name") });
            reply.reasoning_item(call.into());
        }
        _ => {}
    }
}

fn kind(node: Node<'_>) -> &str {
    node.get_str("type").unwrap_or_default()
}

/// Reads a content block or a delta of one; their fields identify the kind.
fn block(reply: &mut Reply<'_>, index: u32, node: Node<'_>) {
    reply.reasoning(node.get_str("thinking"));
    reply.text(node.get("text"));
    match kind(node) {
        "tool_use" => reply.tool_call(ToolCallDelta {
            index,
            id: string(node, "id"),
            name: string(node, "name"),
            ..ToolCallDelta::default()
        }),
        "input_json_delta" => reply.tool_call(ToolCallDelta {
            index,
            arguments: string(node, "partial_json").unwrap_or_default(),
            ..ToolCallDelta::default()
        }),
        _ => {}
    }
}

fn index(node: Node<'_>) -> u32 {
    reply::index(node, "index").unwrap_or(0)
}

fn stop(reply: &mut Reply<'_>, delta: Option<Node<'_>>) {
    let Some(delta) = delta else { return };
    let Some(reason) = delta.get_str("stop_reason") else { return };
    reply.stop(match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::Refusal(refusal(delta)),
        other => FinishReason::Other(other.to_owned()),
    });
}

/// Returns why the model refused, as far as the vendor says.
fn refusal(delta: Node<'_>) -> Option<String> {
    let details = delta.get("stop_details")?;
    string(details, "explanation").or_else(|| {
        details.get_str("category").map(|category| format!("the request is in the category `{category}`"))
    })
}

/// Reads the token counts. Later counts are partial: missing values stay unchanged.
fn usage(reply: &Reply<'_>, node: Node<'_>) -> Option<Usage> {
    let node = node.get("usage").filter(|usage| usage.is_object())?;
    let before = reply.usage_so_far();
    let cached = count(node, "/cache_read_input_tokens");
    let written = count(node, "/cache_creation_input_tokens");
    // Anthropic's `input_tokens` are only those after the cached part; everywhere else in this program they include it.
    let input = count(node, "/input_tokens")
        .map(|fresh| fresh.saturating_add(written.unwrap_or(0)).saturating_add(cached.unwrap_or(0)));
    Some(Usage {
        input_tokens: input.unwrap_or(before.input_tokens),
        output_tokens: count(node, "/output_tokens").unwrap_or(before.output_tokens),
        cached_input_tokens: cached.or(before.cached_input_tokens),
        cache_write_input_tokens: written.or(before.cache_write_input_tokens),
        cache_write_1h_input_tokens: count(node, "/cache_creation/ephemeral_1h_input_tokens")
            .or(before.cache_write_1h_input_tokens),
        reasoning_tokens: count(node, "/output_tokens_details/thinking_tokens").or(before.reasoning_tokens),
        service_tier: string(node, "service_tier").or(before.service_tier),
        ..Usage::default()
    })
}

/// The default token limit, since Anthropic requires one. Reasoning counts towards it, so it is large.
const MAX_TOKENS: u64 = 16_384;

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    let generation = &context.request.generation;
    let (system, turns) = split_system(context);
    w.field("model", context.model);
    w.field("max_tokens", &generation.max_tokens.unwrap_or(MAX_TOKENS));
    if let Some(text) = system {
        write_system(w.key("system"), &text, context);
    }
    w.key("messages").array(|w| turns.iter().for_each(|turn| write_turn(w, turn, context)));
    if let Some(tools) = &context.request.tools {
        write_tools(w, tools);
    }
    let output = context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt);
    let schema = output.and_then(|output| output.schema.as_ref());
    if schema.is_some() || context.effort().is_some() {
        output_config(w.key("output_config"), schema, context.effort());
    }
    context.write_effort_members(w);
    list(w, "stop_sequences", &generation.stop);
    w.optional("service_tier", &context.service_tier());
    w.field("stream", &true);
}

/// Writes the system text. The vendor caches it if it is marked.
fn write_system(w: &mut Writer<'_>, text: &str, context: &RequestContext<'_>) {
    if !context.cache_mark().is_some_and(|(mark, _)| mark == CacheMark::Control) {
        return w.string(text);
    }
    w.array(|w| {
        w.object(|w| {
            w.field("type", "text").field("text", text).key("cache_control").object(|w| {
                w.field("type", "ephemeral");
            });
        });
    });
}

fn output_config(w: &mut Writer<'_>, schema: Option<&Value>, effort: Option<&str>) {
    w.object(|w| {
        w.optional("effort", &effort);
        if let Some(schema) = schema {
            w.key("format").object(|w| {
                w.field("type", "json_schema").field("schema", schema);
            });
        }
    });
}

/// Writes the tools, and which of them the model may call. The choice also limits the number of calls.
fn write_tools(w: &mut Writer<'_>, tools: &ToolRequest) {
    w.key("tools").array(|w| tools.definitions.iter().for_each(|tool| write_tool(w, tool)));
    let (kind, name) = match &tools.choice {
        ToolChoice::Auto if tools.parallel => return,
        ToolChoice::Auto => ("auto", None),
        ToolChoice::None => ("none", None),
        ToolChoice::Required => ("any", None),
        ToolChoice::Named(name) => ("tool", Some(name)),
    };
    w.key("tool_choice").object(|w| {
        w.field("type", kind).optional("name", &name);
        if !tools.parallel && tools.choice != ToolChoice::None {
            w.field("disable_parallel_tool_use", &true);
        }
    });
}

fn write_tool(w: &mut Writer<'_>, tool: &ToolDefinition) {
    w.object(|w| {
        w.field("name", &tool.name).field("description", &tool.description);
        w.field("input_schema", &tool.parameters);
        if tool.strict {
            w.field("strict", &true);
        }
    });
}

fn write_turn(w: &mut Writer<'_>, turn: &Turn<'_>, context: &RequestContext<'_>) {
    w.object(|w| match turn {
        Turn::Text(text) => {
            w.field("role", "user").field("content", text);
        }
        Turn::Message(message) if message.tool_calls.is_empty() => {
            w.field("role", message.role.as_str());
            content(w.key("content"), message);
        }
        Turn::Message(message) => {
            let steps = steps(message, context.own_reasoning(message), "id");
            w.field("role", message.role.as_str()).key("content");
            w.array(|w| steps.iter().for_each(|step| write_step(w, message, step)));
        }
        Turn::Results(results) => {
            w.field("role", "user").key("content");
            w.array(|w| results.iter().for_each(|result| write_result(w, result)));
        }
    });
}

fn write_step(w: &mut Writer<'_>, message: &Message, step: &Step<'_>) {
    match step {
        Step::Reasoning(item) => w.node(*item),
        Step::Content if !has_text(message) => {}
        Step::Content => write_block(w, &Part::text(message.text())),
        Step::Call(call, _) => w.object(|w| {
            write_anthropic_call(w, call);
        }),
    }
}

fn write_result(w: &mut Writer<'_>, result: &ToolResult<'_>) {
    w.object(|w| {
        w.field("type", "tool_result").field("tool_use_id", result.id);
        content(w.key("content"), result.message);
        if reports_error(result.message) {
            w.field("is_error", &true);
        }
    });
}

fn content(w: &mut Writer<'_>, message: &Message) {
    match only_text(message) {
        Some(text) => w.string(text),
        None => w.array(|w| message.content.iter().for_each(|part| write_block(w, part))),
    }
}

fn write_block(w: &mut Writer<'_>, part: &Part) {
    w.object(|w| write_anthropic_part(w, part));
}

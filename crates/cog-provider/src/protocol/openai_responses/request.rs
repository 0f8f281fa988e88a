use std::borrow::Cow;

use cog_harmony::{
    Message, Part, Role, ToolChoice, ToolDefinition,
    wire::{Step, openai_responses, steps},
};
use cog_json::{Node, Value, Writer};
use cog_spec::{Dialect, Modality};

use crate::{
    OutputSchema, RequestError, ToolRequest, WireRequest,
    protocol::{
        RequestContext,
        parts::{self, cached_text, filename, has_text, modality, only_text, post, schema_name},
        tools::{ToolResult, Turn, choice_name, media_message, turns},
    },
};

/// Checks a request. The protocol has no parameter for a seed or stop sequences, and no part for audio and video.
pub(super) fn check(context: &RequestContext<'_>) -> Result<(), RequestError> {
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

pub(super) fn request(context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
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
        Step::Call(call, None) => w.object(|w| openai_responses::write_call(w, call)),
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
    w.object(|w| openai_responses::write_part(w, part, filename(part).as_deref()));
}

use cog_harmony::{Message, Part, Role, ToolChoice, wire::openai_chat};
use cog_json::{Value, Writer};
use cog_spec::{Dialect, Effort, Modality};

use crate::{
    OutputSchema, RequestError, ToolRequest, WireRequest,
    protocol::{
        RequestContext, parts,
        parts::{Options, cached_text, filename, only_text, post, schema_name},
        tools::{self, Turn, choice_name, function_tool, turns},
    },
    vendors::ToolSupport,
};

pub(super) fn check(context: &RequestContext<'_>) -> Result<(), RequestError> {
    parts::check(context)?;
    context.check_tools_over_chat()
}

pub(super) fn request(context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
    check(context)?;
    let output = context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt);
    // Audio is streamed only as raw samples without a file header.
    let speaks = context.output_media().any(|kind| kind == Modality::Audio);
    let streams = !speaks && (output.is_none() || context.vendor.quirks.streams_schema);
    let url = format!("{}/chat/completions", context.base_url);
    Ok(post(url, streams, |w| body(w, context, output, streams)))
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>, output: Option<&OutputSchema>, streams: bool) {
    let quirks = &context.vendor.quirks;
    w.field("model", context.model);
    w.key("messages").array(|w| {
        turns(context.request.messages.messages()).iter().for_each(|turn| write_turn(w, turn, context));
    });
    if let Some(tools) = &context.request.tools {
        write_tools(w, tools, context);
    }
    if let Some(output) = output {
        response_format(w.key("response_format"), output);
    }
    modalities(w, &context.output_media().collect::<Vec<_>>());
    let options = Options { max_tokens: quirks.max_tokens, seed: quirks.seed, stop: "stop" };
    options.write(w, &context.request.generation);
    w.optional("reasoning_effort", &effort(context));
    context.write_effort_members(w);
    w.optional("verbosity", &context.request.generation.verbosity);
    w.optional("service_tier", &context.service_tier());
    context.write_cache_key(w);
    w.field("stream", &streams);
    if streams && quirks.stream_options && context.request.stream_options {
        w.key("stream_options").object(|w| {
            w.field("include_usage", &true);
        });
    }
    for (key, value) in quirks.extra {
        w.optional(key, &Value::parse(value).ok());
    }
}

/// Returns the effort. Some models accept tools only if it is `none`.
fn effort(context: &RequestContext<'_>) -> Option<&'static str> {
    let only_none =
        context.request.tools.is_some() && context.tool_settings().over_chat == ToolSupport::WithoutReasoning;
    if only_none { Some(Effort::None.as_str()) } else { context.effort() }
}

/// Writes the tools, and which of them the model may call.
fn write_tools(w: &mut Writer<'_>, tools: &ToolRequest, context: &RequestContext<'_>) {
    w.key("tools").array(|w| tools.definitions.iter().for_each(|tool| function_tool(w, tool)));
    w.optional("tool_choice", &choice_name(tools));
    if let ToolChoice::Named(name) = &tools.choice {
        w.key("tool_choice").object(|w| {
            w.field("type", "function").key("function").object(|w| {
                w.field("name", name);
            });
        });
    }
    if context.tool_settings().limits_calls {
        w.field("parallel_tool_calls", &tools.parallel);
    }
}

/// Writes the requested modalities of the answer; omitted for text alone. Audio requires a voice, which a module
/// cannot configure.
fn modalities(w: &mut Writer<'_>, media: &[Modality]) {
    if !media.is_empty() {
        let names = [Modality::Text].iter().chain(media).map(|kind| kind.as_str());
        w.field("modalities", &names.collect::<Vec<_>>());
    }
    if media.contains(&Modality::Audio) {
        w.key("audio").object(|w| {
            w.field("voice", "alloy").field("format", "mp3");
        });
    }
}

fn response_format(w: &mut Writer<'_>, output: &OutputSchema) {
    let schema = output.schema.as_ref().filter(|_| output.dialect != Dialect::JsonObject);
    w.object(|w| match schema {
        None => {
            w.field("type", "json_object");
        }
        Some(schema) => w.field("type", "json_schema").key("json_schema").object(|w| {
            w.field("name", &schema_name(&output.name));
            if output.dialect == Dialect::OpenAiStrict {
                w.field("strict", &true);
            }
            w.field("schema", schema);
        }),
    });
}

fn write_turn(w: &mut Writer<'_>, turn: &Turn<'_>, context: &RequestContext<'_>) {
    match turn {
        Turn::Message(message) => write_message(w, message, context),
        Turn::Text(text) => write_message(w, &Message::user(text.as_str()), context),
        Turn::Results(results) => {
            for result in results {
                w.object(|w| {
                    w.field("role", Role::Tool.as_str()).field("tool_call_id", result.id);
                    w.field("content", &result.message.text());
                });
            }
            if let Some(media) = tools::media_message(results) {
                write_message(w, &media, context);
            }
        }
    }
}

fn write_message(w: &mut Writer<'_>, message: &Message, context: &RequestContext<'_>) {
    w.object(|w| {
        w.field("role", message.role.as_str()).optional("name", &message.name).key("content");
        match only_text(message) {
            Some("") if !message.tool_calls.is_empty() => w.null(),
            Some(text) if context.has_breakpoint(message) => cached_text(w, "text", text),
            Some(text) => w.string(text),
            None => w.array(|w| message.content.iter().for_each(|part| block(w, part, message.role))),
        }
        context.write_reasoning_members(w, message);
        if !message.tool_calls.is_empty() {
            w.key("tool_calls").array(|w| {
                message.tool_calls.iter().for_each(|call| w.object(|w| openai_chat::write_call(w, call)));
            });
        }
    });
}

/// Writes a part; only user messages contain anything but text.
fn block(w: &mut Writer<'_>, part: &Part, role: Role) {
    if role == Role::User || part.as_text().is_some() {
        w.object(|w| openai_chat::write_part(w, part, filename(part).as_deref()));
    }
}

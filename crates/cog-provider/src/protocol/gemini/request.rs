use bytes::Bytes;
use cog_harmony::{
    Message, Part, Role, ToolCall, ToolChoice, ToolDefinition,
    wire::{gemini, write_object},
};
use cog_json::Writer;
use cog_spec::{Dialect, Modality};

use super::{bare_name, version_path};
use crate::{
    OutputSchema, RequestError, ToolRequest, WireRequest,
    protocol::{
        RequestContext,
        parts::{Options, check_inline, post, split_system},
        tools::{ToolResult, Turn, media_message},
    },
};

const OPTIONS: Options = Options { max_tokens: "maxOutputTokens", seed: Some("seed"), stop: "stopSequences" };

pub(super) fn check(context: &RequestContext<'_>) -> Result<(), RequestError> {
    check_inline(context)?;
    checked_name(context.model).map(drop)
}

pub(super) fn request(context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
    check(context)?;
    let model = checked_name(context.model)?;
    let version = version_path(context.base_url);
    let url = format!("{}{version}/models/{model}:streamGenerateContent?alt=sse", context.base_url);
    Ok(post(url, true, |w| body(w, context)))
}

/// Adds the token of a reply to the body of its request, which then continues the reply.
pub(super) fn with_token(body: &[u8], token: &str) -> Bytes {
    let members = body.strip_suffix(b"}").unwrap_or(body);
    let mut body = String::new();
    Writer::compact(&mut body).string(token);
    Bytes::from([members, b",\"continuationToken\":", body.as_bytes(), b"}"].concat())
}

/// Rejects a model name that would change the request path, since the name is part of it.
fn checked_name(model: &str) -> Result<&str, RequestError> {
    let name = bare_name(model);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    match !name.is_empty() && !name.starts_with('.') && name.chars().all(plain) {
        true => Ok(name),
        false => Err(RequestError::BadModel { model: model.to_owned() }),
    }
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    let (system, turns) = split_system(context);
    if let Some(text) = system {
        w.key("systemInstruction").object(|w| {
            w.key("parts").array(|w| text_part(w, &text));
        });
    }
    w.key("contents").array(|w| turns.iter().for_each(|turn| content(w, turn, context)));
    if let Some(tools) = &context.request.tools {
        write_tools(w, tools);
    }
    let output = context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt);
    let generation = &context.request.generation;
    let media: Vec<Modality> = context.output_media().collect();
    if output.is_some() || !media.is_empty() || OPTIONS.are_set(generation) || generation.effort.is_some() {
        w.key("generationConfig").object(|w| {
            if let Some(output) = output {
                write_output(w, output);
            }
            write_modalities(w, &media);
            OPTIONS.write(w, generation);
            if generation.effort.is_some() {
                thinking_config(w.key("thinkingConfig"), context);
            }
        });
    }
    w.optional("serviceTier", &context.service_tier());
}

/// Writes the level or the budget of the reasoning.
fn thinking_config(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    w.object(|w| {
        w.optional("thinkingLevel", &context.effort().map(str::to_ascii_uppercase));
        context.write_effort_members(w);
    });
}

/// Writes the requested modalities of the answer; omitted for text alone.
fn write_modalities(w: &mut Writer<'_>, media: &[Modality]) {
    if !media.is_empty() {
        let names = [Modality::Text].iter().chain(media).map(|kind| kind.as_str().to_ascii_uppercase());
        w.field("responseModalities", &names.collect::<Vec<_>>());
    }
}

fn write_output(w: &mut Writer<'_>, output: &OutputSchema) {
    w.field("responseMimeType", "application/json");
    w.optional("responseJsonSchema", &output.schema);
}

/// Writes the tools, and which of them the model may call.
fn write_tools(w: &mut Writer<'_>, tools: &ToolRequest) {
    w.key("tools").array(|w| {
        w.object(|w| {
            w.key("functionDeclarations")
                .array(|w| tools.definitions.iter().for_each(|tool| write_declaration(w, tool)));
        });
    });
    let (mode, name) = match &tools.choice {
        ToolChoice::Auto => return,
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Named(name) => ("ANY", Some([name])),
    };
    w.key("toolConfig").object(|w| {
        w.key("functionCallingConfig").object(|w| {
            w.field("mode", mode).optional("allowedFunctionNames", &name);
        });
    });
}

fn write_declaration(w: &mut Writer<'_>, tool: &ToolDefinition) {
    w.object(|w| {
        w.field("name", &tool.name).field("description", &tool.description);
        w.field("parametersJsonSchema", &tool.parameters);
    });
}

fn content(w: &mut Writer<'_>, turn: &Turn<'_>, context: &RequestContext<'_>) {
    let settings = context.tool_settings();
    w.object(|w| match turn {
        Turn::Text(text) => w.field("role", "user").key("parts").array(|w| text_part(w, text)),
        Turn::Message(message) => w.field("role", role(message)).key("parts").array(|w| {
            message.content.iter().for_each(|part| write_part(w, part));
            write_calls(w, &message.tool_calls, settings.placeholder);
        }),
        Turn::Results(results) => w.field("role", "user").key("parts").array(|w| {
            results.iter().for_each(|result| write_result(w, result, settings.result_media));
            let media = media_message(results).filter(|_| !settings.result_media);
            media.iter().flat_map(|media| &media.content).for_each(|part| write_part(w, part));
        }),
    });
}

/// Writes the calls of a message. Its first call must have a signature, which another provider does not send.
fn write_calls(w: &mut Writer<'_>, calls: &[ToolCall], placeholder: Option<&str>) {
    let mut placeholder = placeholder.filter(|_| calls.iter().all(|call| call.signature.is_none()));
    for call in calls {
        w.object(|w| {
            w.key("functionCall").object(|w| {
                gemini::write_call(w, call);
            });
            w.optional("thoughtSignature", &call.signature.as_deref().or(placeholder.take()));
        });
    }
}

fn write_result(w: &mut Writer<'_>, result: &ToolResult<'_>, has_media: bool) {
    w.object(|w| {
        w.key("functionResponse").object(|w| {
            w.field("id", result.id).field("name", result.name);
            write_object(w.key("response"), &result.message.text(), "output");
            if has_media && result.media().next().is_some() {
                w.key("parts").array(|w| result.media().for_each(|part| write_part(w, part)));
            }
        });
    });
}

fn role(message: &Message) -> &'static str {
    if message.role == Role::Assistant { "model" } else { "user" }
}

fn write_part(w: &mut Writer<'_>, part: &Part) {
    w.object(|w| gemini::write_part(w, part));
}

fn text_part(w: &mut Writer<'_>, text: &str) {
    w.object(|w| {
        w.field("text", text);
    });
}
